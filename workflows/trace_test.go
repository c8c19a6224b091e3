package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/internal/tracing"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func input(trace string) signal { return signal{name: wire.SignalEvent, trace: trace} }

func TestTracesChooseParentsAndLinks(t *testing.T) {
	link := func(reason, trace string) activities.TraceLink {
		return activities.TraceLink{Reason: reason, Trace: trace}
	}
	first := reducer.StartAttempt{RequestID: "demo:r0001"}
	second := reducer.StartAttempt{RequestID: "demo:r0002"}
	for name, test := range map[string]struct {
		story  func(*traces)
		next   reducer.StartAttempt
		parent string
		links  []activities.TraceLink
	}{
		"a turn belongs to the trace of the newest input": {
			story: func(t *traces) {
				t.receive(input("settings"))
				t.receive(input("message"))
			},
			next:   first,
			parent: "message", links: []activities.TraceLink{link(tracing.LinkInput, "settings")},
		},
		"input without a trace begins one": {
			story: func(t *traces) {
				t.receive(input("settings"))
				t.receive(input(""))
			},
			next:  first,
			links: []activities.TraceLink{link(tracing.LinkInput, "settings")},
		},
		"later activities join the trace of an attempt without a parent": {
			story: func(t *traces) {
				t.begin(first)
				t.end(reducer.Called, "attempt")
			},
			next:   first,
			parent: "attempt",
		},
		"input that repeats a trace is the newest": {
			story: func(t *traces) {
				t.receive(input("one"))
				t.receive(input("two"))
				t.receive(input("one"))
			},
			next:   first,
			parent: "one", links: []activities.TraceLink{link(tracing.LinkInput, "two")},
		},
		"input that waits while a turn retries": {
			story: func(t *traces) {
				t.receive(input("one"))
				t.begin(first)
				t.receive(input("two"))
				t.begin(first)
			},
			next:   second,
			parent: "two",
		},
		"an interruption": {
			story: func(t *traces) {
				t.receive(input("one"))
				t.begin(first)
				t.receive(input("two"))
				t.end(reducer.Interrupted, "attempt")
			},
			next:   second,
			parent: "two", links: []activities.TraceLink{link(tracing.LinkInterrupts, "attempt")},
		},
		"a fallback": {
			story: func(t *traces) {
				t.receive(input("one"))
				t.begin(first)
				t.end(reducer.Failed, "attempt")
			},
			next:   reducer.StartAttempt{RequestID: first.RequestID, Fallback: true},
			parent: "one", links: []activities.TraceLink{link(tracing.LinkFallback, "attempt")},
		},
		"a lost worker": {
			story: func(t *traces) {
				t.receive(input("one"))
				t.begin(first)
				t.end(reducer.Lost, "attempt")
			},
			next:   first,
			parent: "one", links: []activities.TraceLink{link(tracing.LinkReplaces, "attempt")},
		},
		"a continuation": {
			story: func(t *traces) {
				t.receive(input("one"))
				t.begin(first)
				next := *t.kept()
				*t = next
			},
			next:   first,
			parent: "one",
		},
		"a complete answer has no link": {
			story: func(t *traces) {
				t.receive(input("one"))
				t.begin(first)
				t.end(reducer.Completed, "attempt")
				t.receive(input("two"))
			},
			next:   second,
			parent: "two",
		},
	} {
		t.Run(name, func(t *testing.T) {
			traced := new(traces)
			test.story(traced)
			require.Equal(t, test.links, traced.begin(test.next))
			require.Equal(t, test.parent, traced.Parent)
		})
	}
}

func TestNothingIsKeptWithoutTraces(t *testing.T) {
	traced := new(traces)
	traced.receive(input(""))
	require.Empty(t, traced.begin(reducer.StartAttempt{RequestID: "demo:r0001"}))
	traced.end(reducer.Interrupted, "")
	require.Nil(t, traced.kept(), "the input of the next run does not grow")
}

func TestTracesAreBounded(t *testing.T) {
	traced := new(traces)
	for _, trace := range []string{"1", "2", "3", "4", "5", "6", "6", "7"} {
		traced.receive(input(trace))
	}
	require.Len(t, traced.begin(reducer.StartAttempt{RequestID: "demo:r0001"}), maxTracedInputs)
	require.Equal(t, "7", traced.Parent)
}
