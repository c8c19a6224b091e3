package retention

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Contexts are the contexts of a namespace.
type Contexts interface {
	// Stored yields all contexts. The time of one is at least that of its last activity, unless its session is open.
	Stored(ctx context.Context) iter.Seq2[archive.Stored, error]
	LastActivity(ctx context.Context, contextName string) (time.Time, error)
	Details(ctx context.Context, contextName string) (reducer.Details, error)
	// StartDeletion starts a deletion that keeps the context if it was active since options.InactiveSince.
	StartDeletion(ctx context.Context, contextName string, options client.DeleteOptions) error
}

// Sweeper applies rules. The first one that matches a context decides, so specific rules come first.
type Sweeper struct {
	Rules    []Rule
	Contexts Contexts
	Log      *slog.Logger

	// seen are contexts that need no look until rereadAfter: rules keep them for their labels or archive mark, or a deletion
	// was started. It may have kept the context, because it waits.
	seen map[string]seen
	// failed are contexts whose failure was logged. Each round tries them again.
	failed map[string]bool
}

type seen struct{ storedAt, at time.Time }

const (
	// maxDeletions bounds the deletions that a round starts.
	maxDeletions = 100
	// interval is the time between two rounds, unless a rule is shorter; fullInterval follows a round with maxDeletions.
	interval, fullInterval = time.Hour, time.Minute
	rereadAfter            = 24 * time.Hour // at least interval, if a rule is shorter
)

// Run applies the rules until ctx ends, first after a random part of a minute.
func (s *Sweeper) Run(ctx context.Context) {
	wait := min(interval, s.shortest(isAny))
	for next := rand.N(min(wait, time.Minute)); pause.For(ctx, next); {
		if next = wait; s.round(ctx) == maxDeletions {
			next = min(wait, fullInterval)
		}
	}
}

func isAny(Rule) bool { return true }

// shortest returns the shortest duration of the rules for which a condition holds; 0: there is none.
func (s *Sweeper) shortest(isFor func(Rule) bool) (shortest time.Duration) {
	for _, r := range s.Rules {
		if isFor(r) && (shortest == 0 || r.After < shortest) {
			shortest = r.After
		}
	}
	return shortest
}

// round applies the rules once, and returns the number of deletions that it started.
func (s *Sweeper) round(ctx context.Context) (started int) {
	now := time.Now()
	reread := min(rereadAfter, max(interval, s.shortest(isAny)))
	next := map[string]seen{}
	for stored, err := range s.Contexts.Stored(ctx) {
		if err != nil {
			s.warn(ctx, "retention: cannot list the contexts", err)
			return started
		}
		before, isSeen := s.seen[stored.ContextName]
		if isSeen && before.storedAt.Equal(stored.At) && now.Sub(before.at) < reread {
			next[stored.ContextName] = before
			continue
		}
		rule, isKept, err := s.decide(ctx, stored, now)
		if err == nil && rule != nil {
			err = s.start(ctx, stored.ContextName, *rule, now)
		}
		if err == nil && (rule != nil || isKept) {
			next[stored.ContextName] = seen{stored.At, now}
		}
		if err == nil {
			delete(s.failed, stored.ContextName)
		}
		switch {
		case errors.Is(err, client.ErrDeleting), errors.Is(err, client.ErrNoContext): // another worker was faster
		case err != nil:
			s.warnOnce(ctx, stored.ContextName, err)
		case rule != nil:
			started++
		}
		if started == maxDeletions {
			s.Log.Info("retention: started the maximum number of deletions of a round", "deletions", started)
			if s.seen == nil {
				s.seen = next
			}
			maps.Copy(s.seen, next) // the next round passes over these
			return started
		}
	}
	s.seen = next
	return started
}

// decide returns the rule that deletes a context; nil: none does now. IsKept means that none does until its details change.
func (s *Sweeper) decide(ctx context.Context, stored archive.Stored, now time.Time) (_ *Rule, isKept bool, err error) {
	isFor := func(r Rule) bool { return r.isFor(stored.ContextName) }
	shortest := s.shortest(isFor)
	if shortest == 0 || now.Sub(stored.At) < shortest {
		return nil, false, nil
	}
	last, err := s.Contexts.LastActivity(ctx, stored.ContextName)
	if err != nil || now.Sub(last) < shortest {
		return nil, false, err
	}
	var details reducer.Details
	if slices.ContainsFunc(s.Rules, func(r Rule) bool { return isFor(r) && r.needsDetails() }) {
		if details, err = s.Contexts.Details(ctx, stored.ContextName); err != nil {
			return nil, false, err
		}
	}
	i := slices.IndexFunc(s.Rules, func(r Rule) bool { return isFor(r) && r.matches(details) })
	switch {
	case i < 0:
		return nil, true, nil
	case now.Sub(last) < s.Rules[i].After:
		return nil, false, nil
	}
	return &s.Rules[i], false, nil
}

func (s *Sweeper) start(ctx context.Context, contextName string, rule Rule, now time.Time) error {
	err := s.Contexts.StartDeletion(ctx, contextName, client.DeleteOptions{Forks: rule.Forks, InactiveSince: now.Add(-rule.After)})
	if err == nil {
		s.Log.Info("retention: deleting a context", "context", contextName, "rule", rule.String())
	}
	return err
}

func (s *Sweeper) warnOnce(ctx context.Context, contextName string, err error) {
	if !s.failed[contextName] {
		s.warn(ctx, "retention: cannot delete a context, and tries again in each round", err, "context", contextName)
	}
	if s.failed == nil {
		s.failed = map[string]bool{}
	}
	s.failed[contextName] = true
}

func (s *Sweeper) warn(ctx context.Context, message string, err error, fields ...any) {
	if ctx.Err() == nil {
		s.Log.Warn(message, append(fields, "error", err)...)
	}
}
