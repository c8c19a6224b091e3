package agent

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
)

// events are the events first to last of a run, as a hook receives them.
func events(runID string, epoch, first, last int) hook.Events {
	out := hook.Events{ContextName: "demo", RunID: runID, Epoch: epoch, Cursor: event.FormatID("demo", last)}
	if first > 1 {
		out.After = event.FormatID("demo", first-1)
	}
	for n := first; n <= last; n++ {
		e := event.New(event.UserMessage{Content: runID})
		e.ID = event.FormatID("demo", n)
		out.Events = append(out.Events, e)
	}
	return out
}

func TestDeliveriesAreInOrder(t *testing.T) {
	const a, b = "run-a", "run-b"
	changed := events(a, 1, 2, 2)
	changed.Events[0].Body = event.UserMessage{Content: "other"}
	misplaced := events(a, 1, 1, 2)
	misplaced.After = event.FormatID("demo", 1)
	for name, test := range map[string]struct {
		deliveries        []hook.Events
		runs              []string // of the events that remain
		repeated, ignored int
		problem           string
	}{
		"in order":                     {deliveries: []hook.Events{events(a, 1, 1, 2), events(b, 2, 3, 3)}, runs: []string{a, a, b}},
		"repeated":                     {deliveries: []hook.Events{events(a, 1, 1, 2), events(a, 1, 1, 3)}, runs: []string{a, a, a}, repeated: 2},
		"after a reset":                {deliveries: []hook.Events{events(a, 1, 1, 3), events(b, 2, 2, 2)}, runs: []string{a, b}},
		"late, of an abandoned branch": {deliveries: []hook.Events{events(a, 1, 1, 2), events(b, 2, 2, 2), events(a, 1, 3, 4)}, runs: []string{a, b}, ignored: 2},
		"a gap":                        {deliveries: []hook.Events{events(a, 1, 1, 1), events(a, 1, 3, 3)}, runs: []string{a}, problem: "demo:0003 of run run-a in epoch 1 was delivered after 1 events"},
		"not from the start":           {deliveries: []hook.Events{events(a, 1, 2, 2)}, problem: "was delivered after 0 events"},
		"repeated with a change":       {deliveries: []hook.Events{events(a, 1, 1, 2), changed}, runs: []string{a, a}, repeated: 1, problem: "with another content"},
		"a wrong place":                {deliveries: []hook.Events{misplaced}, runs: []string{a, a}, problem: `begins after "demo:0001"`},
	} {
		t.Run(name, func(t *testing.T) {
			var d Delivered
			for _, delivery := range test.deliveries {
				require.NoError(t, d.add(delivery))
			}
			var runs []string
			for _, e := range d.Events {
				runs = append(runs, e.RunID)
			}
			require.Equal(t, test.runs, runs)
			require.Equal(t, test.repeated, d.Repeated)
			require.Equal(t, test.ignored, d.Ignored)
			if test.problem == "" {
				require.Empty(t, d.Problems)
				return
			}
			require.ErrorContains(t, errors.Join(d.Problems...), test.problem)
		})
	}
}
