package tool

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
)

var _ activities.Tools = (*Set)(nil)

// Options configure a [Set].
type Options struct {
	Sources  map[string]Source // further tools, by the prefix of their canonical names, such as "mcp:"
	Disabled map[string]string // how to enable tools, by canonical name, for error messages
	Logger   *slog.Logger      // of failures of the store; nil: [slog.Default]
}

// Set is the tools of a worker. It is safe for concurrent use.
type Set struct {
	options Options
	tools   []Tool // in the order of their canonical names
	byName  map[string]Tool
}

// NewSet returns a set with [ReadResult] and the tools, whose names must be unique.
func NewSet(options Options, tools ...Tool) (*Set, error) {
	options.Logger = cmp.Or(options.Logger, slog.Default())
	s := &Set{options: options, byName: map[string]Tool{}}
	s.tools = append(slices.Clone(tools), readResult())
	slices.SortFunc(s.tools, func(a, b Tool) int { return strings.Compare(a.spec.Canonical, b.spec.Canonical) })
	for i, t := range s.tools {
		if t.call == nil {
			return nil, fmt.Errorf("tool %q: not created by New", t.spec.Name)
		}
		for prefix := range options.Sources {
			if strings.HasPrefix(t.spec.Canonical, prefix) {
				return nil, fmt.Errorf("tool %q: the prefix %s belongs to another source", t.spec.Canonical, prefix)
			}
		}
		if _, exists := s.byName[t.spec.Name]; exists || i > 0 && s.tools[i-1].spec.Canonical == t.spec.Canonical {
			return nil, fmt.Errorf("tool %q: the name is used twice", t.spec.Name)
		}
		s.byName[t.spec.Name] = t
	}
	return s, nil
}

// Names returns the canonical names of the tools, without those of sources and [ReadResult].
func (s *Set) Names() (names []string) {
	for _, t := range s.tools {
		if t.spec.Canonical != ReadResult {
			names = append(names, t.spec.Canonical)
		}
	}
	return names
}

// Offer returns the tools that a context names, in the order of its patterns and, within a pattern,
// of their names. [ReadResult] follows if there are any, then those that are [Withheld]. For a name that the worker does not have,
// the error is a [*activities.ModelError] with [event.FailureBadRequest].
func (s *Set) Offer(ctx context.Context, r activities.OfferRequest) ([]activities.Tool, error) {
	patterns := r.Config.Patterns()
	if len(patterns) == 0 {
		return nil, nil
	}
	known, err := s.candidates(ctx, r, patterns)
	if err != nil {
		return nil, err
	}
	var offered []activities.Tool
	byName := map[string]string{}
	withheld := map[string]activities.Tool{}
	for _, pattern := range patterns {
		isFound := false
		for _, t := range known {
			if !event.MatchTool(pattern, t.spec.Canonical) {
				continue
			}
			isFound = true
			if t.spec.Withheld != "" {
				withheld[t.spec.Canonical] = t.spec
				continue
			}
			switch other := byName[t.spec.Name]; other {
			case "":
				byName[t.spec.Name] = t.spec.Canonical
				offered = append(offered, t.spec)
			case t.spec.Canonical:
			default:
				return nil, badRequest(r, "%s and %s have the same name %s for models (name only one of them)",
					other, t.spec.Canonical, t.spec.Name)
			}
		}
		if !isFound && !s.isOfSource(pattern) {
			return nil, s.unknown(r, pattern)
		}
	}
	if _, isOffered := byName[ReadResult]; !isOffered && len(offered) > 0 {
		offered = append(offered, s.byName[ReadResult].spec)
	}
	if len(offered) > event.MaxTools {
		return nil, badRequest(r, "%d tools are out of range (at most %d; name fewer)", len(offered), event.MaxTools)
	}
	for _, name := range slices.Sorted(maps.Keys(withheld)) {
		offered = append(offered, withheld[name])
	}
	return offered, nil
}

// candidates returns the tools of the set, and those of sources that patterns may name, in the order
// of their canonical names.
func (s *Set) candidates(ctx context.Context, r activities.OfferRequest, patterns []string) ([]Tool, error) {
	known := slices.Clone(s.tools)
	for _, prefix := range slices.Sorted(maps.Keys(s.options.Sources)) {
		var own []string
		for _, pattern := range patterns {
			if mayName(pattern, prefix) {
				own = append(own, pattern)
			}
		}
		if len(own) == 0 {
			continue
		}
		tools, err := s.options.Sources[prefix].Offer(ctx, OfferRequest{ContextName: r.ContextName, Patterns: own})
		if err != nil {
			return nil, err
		}
		known = append(known, tools...)
	}
	slices.SortStableFunc(known, func(a, b Tool) int { return strings.Compare(a.spec.Canonical, b.spec.Canonical) })
	return known, nil
}

// isOfSource reports whether a pattern may name tools of a source. The source itself reports
// unknown names, and its tools may be missing at present.
func (s *Set) isOfSource(pattern string) bool {
	for prefix := range s.options.Sources {
		if mayName(pattern, prefix) {
			return true
		}
	}
	return false
}

// mayName reports whether a pattern matches a name that begins with a prefix.
func mayName(pattern, prefix string) bool {
	head, _, hasStar := strings.Cut(pattern, "*")
	return strings.HasPrefix(head, prefix) || hasStar && strings.HasPrefix(prefix, head)
}

func (s *Set) unknown(r activities.OfferRequest, pattern string) error {
	if how, ok := s.options.Disabled[pattern]; ok {
		return badRequest(r, "%s is not enabled on this worker (%s)", pattern, how)
	}
	names := append(s.Names(), ReadResult)
	for _, prefix := range slices.Sorted(maps.Keys(s.options.Sources)) {
		names = append(names, prefix+"…")
	}
	return badRequest(r, "no tool matches %q (this worker has %s)", pattern, strings.Join(names, ", "))
}

func badRequest(r activities.OfferRequest, format string, args ...any) error {
	return &activities.ModelError{Kind: "unknown-tool", Failure: event.FailureBadRequest,
		Err: fmt.Errorf("tools of context %s: "+format, append([]any{r.ContextName}, args...)...)}
}
