package retention_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/retention"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

const day = 24 * time.Hour

// stored is a context of the tests. Ages are those at the beginning of the test.
type stored struct {
	name        string
	age, active time.Duration // since the archive stored something, and since the last activity; active 0: the same
	details     reducer.Details
	err         error // of the deletion
}

// contexts are the contexts of a namespace.
type contexts struct {
	began    time.Time
	mu       sync.Mutex
	stored   []stored
	err      error // of the list
	read     []string
	detailed []string
	deleted  []string
	since    []time.Time
}

func (c *contexts) Stored(context.Context) iter.Seq2[archive.Stored, error] {
	return func(yield func(archive.Stored, error) bool) {
		c.mu.Lock()
		all, err := slices.Clone(c.stored), c.err
		c.mu.Unlock()
		for _, s := range all {
			if !yield(archive.Stored{ContextName: s.name, At: c.began.Add(-s.age)}, nil) {
				return
			}
		}
		if err != nil {
			yield(archive.Stored{}, err)
		}
	}
}

func (c *contexts) find(name string) stored {
	return c.stored[slices.IndexFunc(c.stored, func(s stored) bool { return s.name == name })]
}

func (c *contexts) LastActivity(_ context.Context, name string) (time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = append(c.read, name)
	s := c.find(name)
	if s.active == 0 {
		s.active = s.age
	}
	return c.began.Add(-s.active), nil
}

func (c *contexts) Details(_ context.Context, name string) (reducer.Details, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.detailed = append(c.detailed, name)
	return c.find(name).details, nil
}

func (c *contexts) StartDeletion(_ context.Context, name string, o client.DeleteOptions) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.find(name).err; err != nil {
		return err
	}
	c.deleted, c.since = append(c.deleted, name+" "+string(o.Forks)), append(c.since, o.InactiveSince)
	return nil
}

// sweep applies rules for a time, and returns what it logged.
func sweep(t *testing.T, c *contexts, rules []retention.Rule, lasts time.Duration) (logged string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c.began = time.Now()
		var log bytes.Buffer
		s := &retention.Sweeper{Rules: rules, Contexts: c, Log: slog.New(slog.NewTextHandler(&log, nil))}
		ctx, cancel := context.WithTimeout(t.Context(), lasts)
		defer cancel()
		s.Run(ctx)
		logged = log.String()
	})
	return logged
}

var old = retention.Rule{After: 90 * day, Forks: client.KeepForks}

func TestTheFirstRuleThatMatchesDecides(t *testing.T) {
	free := reducer.Details{Labels: map[string]string{"tier": "free", "team": "a"}}
	legal := reducer.Details{Labels: map[string]string{"hold": "legal"}}
	c := &contexts{stored: []stored{
		{name: "young", age: 2 * day},
		{name: "old", age: 91 * day},
		{name: "used", age: 91 * day, active: time.Hour},
		{name: "free", age: 8 * day, details: free},
		{name: "otherlabel", age: 8 * day, details: reducer.Details{Labels: map[string]string{"tier": "paid"}}},
		{name: "hold", age: 1000 * day, details: legal},
		{name: "archived", age: 8 * day, details: reducer.Details{Archived: true}},
		{name: "acme/old", age: 31 * day},
		{name: "acme/free", age: 8 * day, details: free},
	}}
	logged := sweep(t, c, []retention.Rule{
		{After: 36500 * day, Labels: map[string]string{"hold": "legal"}, Forks: client.KeepForks},
		{After: 30 * day, Tenant: "acme", Forks: client.DeleteForks},
		{After: 7 * day, Labels: map[string]string{"tier": "free"}, Forks: client.KeepForks},
		{After: 7 * day, Archived: true, Forks: client.KeepForks},
		old,
	}, time.Minute)
	require.Equal(t, []string{"old keep", "free keep", "archived keep", "acme/old delete"}, c.deleted)
	require.NotContains(t, c.read, "young", "the list shows it")
	require.NotContains(t, c.detailed, "used")
	require.Contains(t, logged, `msg="retention: deleting a context" context=free rule="after 7d, tier=free"`)
	for i, after := range []time.Duration{90 * day, 7 * day, 7 * day, 30 * day} {
		require.WithinDuration(t, c.began.Add(-after), c.since[i], time.Minute)
	}
}

func TestWithoutRulesForTheDetailsNoLogIsRead(t *testing.T) {
	c := &contexts{stored: []stored{{name: "old", age: 91 * day}}}
	sweep(t, c, []retention.Rule{old}, time.Minute)
	require.Equal(t, []string{"old keep"}, c.deleted)
	require.Empty(t, c.detailed)
}

func TestRulesApplyHourly(t *testing.T) {
	c := &contexts{stored: []stored{{name: "soon", age: 90*day - 90*time.Minute}}}
	sweep(t, c, []retention.Rule{old}, 90*time.Minute)
	require.Empty(t, c.deleted)
	c = &contexts{stored: c.stored}
	sweep(t, c, []retention.Rule{old}, 3*time.Hour)
	require.Len(t, c.deleted, 1)
}

func TestAShortRuleAppliesOften(t *testing.T) {
	c := &contexts{stored: []stored{{name: "demo", age: time.Second}}}
	sweep(t, c, []retention.Rule{{After: 2 * time.Second, Forks: client.KeepForks}}, 5*time.Second)
	require.NotEmpty(t, c.deleted)
}

func TestARoundStartsALimitedNumberOfDeletions(t *testing.T) {
	c := &contexts{}
	for i := range 250 {
		c.stored = append(c.stored, stored{name: fmt.Sprintf("c%03d", i), age: 91 * day})
	}
	sweep(t, c, []retention.Rule{old}, time.Minute)
	require.Len(t, c.deleted, 100)
	for _, name := range c.deleted {
		c.stored = slices.DeleteFunc(c.stored, func(s stored) bool { return s.name+" keep" == name })
	}
	require.Len(t, c.stored, 150)
}

// Deletions of contexts that wait keep them, so that the list still begins with them.
func TestContextsThatWaitDoNotKeepLaterOnes(t *testing.T) {
	c := &contexts{}
	for i := range 150 {
		c.stored = append(c.stored, stored{name: fmt.Sprintf("c%03d", i), age: 91 * day})
	}
	sweep(t, c, []retention.Rule{old}, 3*time.Minute)
	require.Len(t, c.deleted, 150)
	require.Contains(t, c.deleted, "c149 keep")
}

// A context that rules keep, or whose deletion found that it waits, is not read in every round.
func TestAContextThatStaysIsReadOnceADay(t *testing.T) {
	c := &contexts{stored: []stored{{name: "kept", age: 91 * day}, {name: "waits", age: 91 * day, details: reducer.Details{Archived: true}}}}
	sweep(t, c, []retention.Rule{{After: 90 * day, Archived: true, Forks: client.KeepForks}}, 23*time.Hour)
	require.Equal(t, []string{"kept", "waits"}, c.detailed)
	require.Equal(t, []string{"waits keep"}, c.deleted)
	c = &contexts{stored: c.stored}
	sweep(t, c, []retention.Rule{{After: 90 * day, Archived: true, Forks: client.KeepForks}}, 30*time.Hour)
	require.Equal(t, []string{"kept", "waits", "kept", "waits"}, c.detailed)
}

// The deletion of a context that waits keeps it, and writes to its history.
func TestAShortRuleTriesAContextThatWaitsHourly(t *testing.T) {
	c := &contexts{stored: []stored{{name: "waits", age: 91 * day}}}
	sweep(t, c, []retention.Rule{{After: 2 * time.Second, Forks: client.KeepForks}}, 150*time.Minute)
	require.Len(t, c.deleted, 3)
}

func TestFailuresAreLoggedAndTheNextRoundRepeats(t *testing.T) {
	c := &contexts{stored: []stored{
		{name: "broken", age: 91 * day, err: errors.New("no route")},
		{name: "running", age: 91 * day, err: client.ErrDeleting},
		{name: "fine", age: 91 * day},
	}}
	logged := sweep(t, c, []retention.Rule{old}, 90*time.Minute)
	require.Equal(t, []string{"fine keep"}, c.deleted)
	require.Contains(t, logged, `level=WARN msg="retention: cannot delete a context, and tries again in each round" context=broken error="no route"`)
	require.NotContains(t, logged, "context=running")
	require.Equal(t, []string{"broken", "running", "fine", "broken", "running"}, c.read)
	require.Equal(t, 1, strings.Count(logged, "context=broken"), "one warning for each context")

	c = &contexts{err: errors.New("the store is unavailable")}
	require.Contains(t, sweep(t, c, []retention.Rule{old}, time.Minute), `msg="retention: cannot list the contexts" error="the store is unavailable"`)
}
