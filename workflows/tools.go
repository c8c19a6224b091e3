package workflows

import (
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// toolCalls are the CallTool activities that have not ended, in the order of their start.
type toolCalls []toolCall

type toolCall struct {
	requestID, callID string
	tool              string
	future            workflow.Future
	cancel            workflow.CancelFunc
	isCancelled       bool // no request waits for the result; a late one is still recorded
}

func (c toolCalls) isReady() bool {
	return slices.ContainsFunc(c, func(call toolCall) bool { return call.future.IsReady() })
}

// spareAttempts is the maximum number of attempts of a repeatable call after workers died, beyond its own.
const spareAttempts = 2

// toolSlack is the time beyond the timeout of a call after which its worker counts as stuck.
const toolSlack = 30 * time.Second

func (r *run) callTool(effect reducer.CallTool) {
	call := effect.Call
	in := activities.CallToolInput{
		ContextName: r.name, RequestID: effect.RequestID, ToolCallID: call.ID, Name: call.Name, Arguments: call.Arguments,
		TimeoutMs: call.TimeoutMs, Schema: json.RawMessage(effect.Schema),
	}
	// A call that is not idempotent is made once, even if its worker dies.
	retry := &temporal.RetryPolicy{InitialInterval: time.Second, MaximumInterval: 30 * time.Second, MaximumAttempts: 1}
	switch {
	case effect.Schema != nil:
		retry.MaximumAttempts = 1 + spareAttempts
	case call.Idempotent:
		in.MaxAttempts = max(1, call.Attempts)
		retry.MaximumAttempts = int32(in.MaxAttempts + spareAttempts)
	}
	message := "tool call started"
	if effect.Schema != nil {
		message = "edited arguments are validated" // the client executes the call
	}
	r.logRequest(effect.RequestID, func() event.Line {
		return event.Line{Level: slog.LevelInfo, Message: message, Fields: []any{"tool", event.LoggedName(call.Name), "call", event.LoggedName(call.ID)}}
	})
	started := toolCall{requestID: effect.RequestID, callID: call.ID, tool: call.Name}
	var ctx workflow.Context
	ctx, started.cancel = workflow.WithCancel(r.traced(r.ctx))
	started.future = workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: in.Timeout() + toolSlack,
		HeartbeatTimeout:    r.failover(),
		WaitForCancellation: true,
		RetryPolicy:         retry,
		Summary:             "call " + call.Name,
	}), acts.CallTool, in)
	r.calls = append(r.calls, started)
}

func (r *run) cancelTools(cancel reducer.CancelTools) {
	for i, call := range r.calls {
		if call.requestID == cancel.RequestID && !call.isCancelled {
			r.logRequest(call.requestID, func() event.Line {
				return event.Line{Level: slog.LevelInfo, Message: "tool call cancelled", Fields: []any{"tool", event.LoggedName(call.tool), "call", event.LoggedName(call.callID)}}
			})
			r.calls[i].isCancelled = true
			call.cancel()
		}
	}
}

func (r *run) endCalls() {
	for i := 0; i < len(r.calls); {
		call := r.calls[i]
		if !call.future.IsReady() {
			i++
			continue
		}
		r.calls = slices.Delete(r.calls, i, i+1)
		call.cancel()
		r.apply(r.resultOf(call))
	}
}

func (r *run) resultOf(call toolCall) reducer.ToolEnded {
	var result activities.CallToolResult
	err := call.future.Get(r.ctx, &result)
	ended := reducer.ToolEnded{
		At: r.now(), RequestID: call.requestID, CallID: call.callID, Outcome: reducer.CallReturned,
		Value: result.Value, Error: result.Error, IsError: result.IsError, Duration: milliseconds(result.DurationMs),
	}
	var cancelled *temporal.CanceledError
	switch {
	case errors.As(err, &cancelled):
		ended.Outcome = reducer.CallCancelled
	case err != nil:
		// The worker died or is stuck, or the last attempt was handed back.
		ended.Outcome = reducer.CallLost
	}
	return ended
}

// wake is the timer of the next deadline.
type wake struct {
	at     time.Time       // zero: none
	timer  workflow.Future // nil: none
	cancel workflow.CancelFunc
}

func (w wake) isReady() bool { return w.timer != nil && w.timer.IsReady() }

func (r *run) wakeAt(effect reducer.WakeAt) {
	if effect.At.Equal(r.wake.at) {
		return
	}
	if r.wake.cancel != nil {
		r.wake.cancel()
	}
	r.wake = wake{at: effect.At}
	if effect.At.IsZero() {
		return
	}
	var ctx workflow.Context
	ctx, r.wake.cancel = workflow.WithCancel(r.ctx)
	r.wake.timer = workflow.NewTimerWithOptions(ctx, effect.At.Sub(r.now()), workflow.TimerOptions{Summary: "next deadline"})
}

func (r *run) woken() {
	at := r.now()
	if at.Before(r.wake.at) {
		at = r.wake.at // the clocks of the server's hosts may differ
	}
	r.wake.cancel()
	r.wake = wake{}
	r.apply(reducer.Woken{At: at})
}
