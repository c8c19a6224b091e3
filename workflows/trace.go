package workflows

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/internal/tracing"
	"github.com/seed-9ed7edd4/chronicle/internal/tracing/intercept"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// maxTracedInputs bounds the inputs that a turn refers to besides its parent.
const maxTracedInputs = 4

// traces chooses the parents of activities and the links between turns. It depends on the history
// only: on headers of input and results of attempts. Without tracing, Inputs, Parent and Ended stay empty.
type traces struct {
	// Inputs are the traceparents of input since the start of the turn, oldest first.
	Inputs []string `json:"inputs,omitempty"`
	// IsUntraced means that the newest input has no traceparent and arrived after Inputs.
	IsUntraced bool `json:"isUntraced,omitempty"`
	// RequestID is the newest turn, Parent the parent of its activities; empty: a new trace begins.
	RequestID  string `json:"requestId,omitempty"`
	Parent     string `json:"parent,omitempty"`
	IsFallback bool   `json:"isFallback,omitempty"`
	// Ended is the newest attempt that the next activity links to. Zero: none.
	Ended activities.TraceLink `json:"ended,omitzero"`
}

// receive is called with each signal and update. An input without a trace context begins a new trace.
func (t *traces) receive(in signal) {
	if in.name != wire.SignalEvent {
		return
	}
	parent := in.trace
	t.IsUntraced = parent == "" && len(t.Inputs) > 0
	if parent == "" {
		return
	}
	t.Inputs = append(slices.DeleteFunc(t.Inputs, func(p string) bool { return p == parent }), parent)
	t.Inputs = t.Inputs[max(0, len(t.Inputs)-maxTracedInputs-1):]
}

// newest returns the traceparent of the newest input since the turn began, or that of the turn if there is no such
// input or it has no traceparent.
func (t *traces) newest() string {
	if n := len(t.Inputs); n > 0 && !t.IsUntraced {
		return t.Inputs[n-1]
	}
	return t.Parent
}

// begin returns the links of the next activity of a request. A new turn belongs to the trace of the
// newest input, or to a new one if that has none.
func (t *traces) begin(start reducer.StartAttempt) (links []activities.TraceLink) {
	if t.Ended.Trace != "" {
		link := t.Ended
		if start.Fallback && !t.IsFallback && start.RequestID == t.RequestID {
			link.Reason = tracing.LinkFallback
		}
		links = append(links, link)
	}
	if start.RequestID != t.RequestID {
		t.RequestID, t.Parent = start.RequestID, ""
		others := t.Inputs
		if n := len(others); n > 0 && !t.IsUntraced {
			t.Parent, others = others[n-1], others[:n-1]
		}
		for _, other := range others {
			links = append(links, activities.TraceLink{Trace: other, Reason: tracing.LinkInput})
		}
		t.Inputs, t.IsUntraced = nil, false
	}
	t.Ended, t.IsFallback = activities.TraceLink{}, start.Fallback
	return links
}

// end is called with the result of an attempt.
func (t *traces) end(outcome reducer.Outcome, attempt string) {
	if attempt == "" {
		return
	}
	if t.Parent == "" {
		t.Parent = attempt // the input had no header: later activities join the trace of the attempt
	}
	reason, isLinked := map[reducer.Outcome]string{
		reducer.Interrupted: tracing.LinkInterrupts, reducer.Failed: tracing.LinkRetries,
		reducer.HandedBack: tracing.LinkRetries, reducer.TooLong: tracing.LinkRetries, reducer.Lost: tracing.LinkReplaces,
	}[outcome]
	if isLinked {
		t.Ended = activities.TraceLink{Trace: attempt, Reason: reason}
	}
}

// kept returns what the next run needs; nil: nothing.
func (t traces) kept() *traces {
	if len(t.Inputs) == 0 && t.Parent == "" && t.Ended == (activities.TraceLink{}) {
		return nil
	}
	return &t
}

// traced returns the context for activities of the newest turn.
func (r *run) traced(ctx workflow.Context) workflow.Context {
	return intercept.WithParent(ctx, r.trace.Parent)
}

type receivedKey struct{}

// withReceived keeps the header of an input, which the SDK removes from the context of handlers.
func withReceived(ctx workflow.Context) workflow.Context {
	if parent := intercept.Received(ctx); parent != "" {
		return workflow.WithValue(ctx, receivedKey{}, parent)
	}
	return ctx
}

func received(ctx workflow.Context) string {
	parent, _ := ctx.Value(receivedKey{}).(string)
	return parent
}
