package workflows_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/workflows"
)

// puppet is a step function with effects that a test chooses: those of a message are listed under its
// text, in addition to its usual ones. It keeps the inputs about tools.
type puppet struct {
	effects map[string][]reducer.Effect
	inputs  []reducer.Input
	// request is the running request of the session; nil for none.
	request *reducer.Request
}

func (p *puppet) step(s reducer.Session, in reducer.Input) (next reducer.Session, _ []reducer.Effect) {
	defer func() { next.Request = p.request }()
	switch in := in.(type) {
	case reducer.ToolEnded:
		in.At = time.Time{}
		p.inputs = append(p.inputs, in)
		return s, nil
	case reducer.Woken, reducer.Continued:
		p.inputs = append(p.inputs, in)
		return s, nil
	case reducer.Received:
		text := in.Events[0].Body.(event.UserMessage).Content
		s, effects := reducer.Step(s, in)
		return s, append(effects, p.effects[text]...)
	default:
		return reducer.Step(s, in)
	}
}

func newPuppet(t *testing.T, effects map[string][]reducer.Effect, interceptors ...interceptor.WorkerInterceptor) (*testRun, *puppet) {
	p := &puppet{effects: effects}
	w := bareRun(t, "context:demo", append(interceptors, workflows.Interceptor())...)
	w.RegisterWorkflowWithOptions(workflows.WithStep(p.step), workflow.RegisterOptions{Name: wire.WorkflowType, DisableAlreadyRegisteredCheck: true})
	w.OnActivity(acts.Archive, mock.Anything, mock.Anything).Return(nil).Maybe()
	w.registers()
	return w, p
}

// stubborn lets activities end after their cancellation. Temporal's test environment ignores
// WaitForCancellation.
type stubborn struct {
	interceptor.WorkerInterceptorBase
}

func (*stubborn) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	i := &stubbornInbound{}
	i.Next = next
	return i
}

type stubbornInbound struct {
	interceptor.WorkflowInboundInterceptorBase
}

func (i *stubbornInbound) Init(next interceptor.WorkflowOutboundInterceptor) error {
	o := &stubbornOutbound{}
	o.Next = next
	return i.Next.Init(o)
}

type stubbornOutbound struct {
	interceptor.WorkflowOutboundInterceptorBase
}

func (o *stubbornOutbound) ExecuteActivity(ctx workflow.Context, activityType string, args ...any) workflow.Future {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	return o.Next.ExecuteActivity(ctx, activityType, args...)
}

func (w *testRun) notes(text string) {
	w.SignalWorkflow(wire.SignalEvent, map[string]any{"_tag": "UserMessage", "content": text, "triggersTurn": false})
}

func (w *testRun) complete() {
	w.t.Helper()
	w.ExecuteWorkflow(wire.WorkflowType)
	require.True(w.t, w.IsWorkflowCompleted())
	require.NoError(w.t, w.GetWorkflowError())
	w.AssertExpectations(w.t)
}

func calling(call reducer.Call) reducer.Effect {
	call.ID, call.Name, call.Arguments = "call_1", "weather", json.RawMessage(`{"city":"Paris"}`)
	return reducer.CallTool{RequestID: "demo:r0001", Call: call}
}

func ended(outcome reducer.CallOutcome) reducer.ToolEnded {
	return reducer.ToolEnded{RequestID: "demo:r0001", CallID: "call_1", Outcome: outcome}
}

func TestAToolCallIsAnActivity(t *testing.T) {
	w, p := newPuppet(t, map[string][]reducer.Effect{"call": {calling(reducer.Call{TimeoutMs: 2000})}})
	w.OnActivity(acts.CallTool, mock.Anything, activities.CallToolInput{
		ContextName: "demo", RequestID: "demo:r0001", ToolCallID: "call_1", Name: "weather", Arguments: json.RawMessage(`{"city":"Paris"}`), TimeoutMs: 2000,
	}).Return(activities.CallToolResult{Value: json.RawMessage(`"sunny"`), DurationMs: 5}, nil).Once()
	w.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
		if info.ActivityType.Name == "CallTool" {
			require.Equal(t, activities.DefaultFailover, info.HeartbeatTimeout)
		}
	})
	w.at(time.Minute, func() { w.notes("call") })
	w.at(time.Hour, w.close)
	w.complete()
	want := ended(reducer.CallReturned)
	want.Value, want.Duration = json.RawMessage(`"sunny"`), 5*time.Millisecond
	require.Equal(t, []reducer.Input{want}, p.inputs)
}

func TestACallIsRepeatedOnlyIfItIsIdempotent(t *testing.T) {
	for name, test := range map[string]struct {
		call    reducer.Call
		err     error
		times   int
		outcome reducer.CallOutcome
	}{
		"a dead worker":                             {reducer.Call{}, temporal.NewHeartbeatTimeoutError(), 1, reducer.CallLost},
		"a stuck worker":                            {reducer.Call{}, temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_START_TO_CLOSE, nil), 1, reducer.CallLost},
		"an error":                                  {reducer.Call{}, errors.New("no"), 1, reducer.CallLost},
		"dead workers of an idempotent tool":        {reducer.Call{Idempotent: true}, temporal.NewHeartbeatTimeoutError(), 1 + workflows.SpareAttempts, reducer.CallLost},
		"attempts of an idempotent tool":            {reducer.Call{Idempotent: true, Attempts: 3}, errors.New("no"), 3 + workflows.SpareAttempts, reducer.CallLost},
		"attempts of a tool that is not idempotent": {reducer.Call{Attempts: 3}, errors.New("no"), 1, reducer.CallLost},
	} {
		t.Run(name, func(t *testing.T) {
			w, p := newPuppet(t, map[string][]reducer.Effect{"call": {calling(test.call)}})
			w.OnActivity(acts.CallTool, mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.CallToolInput) (activities.CallToolResult, error) {
				if test.call.Idempotent {
					require.Equal(t, max(1, test.call.Attempts), in.MaxAttempts)
				} else {
					require.Zero(t, in.MaxAttempts)
				}
				return activities.CallToolResult{}, test.err
			}).Times(test.times)
			w.at(time.Minute, func() { w.notes("call") })
			w.at(time.Hour, w.close)
			w.complete()
			require.Equal(t, []reducer.Input{ended(test.outcome)}, p.inputs)
		})
	}
}

func TestACancelledCallReportsItsEnd(t *testing.T) {
	w, p := newPuppet(t, map[string][]reducer.Effect{
		"call": {calling(reducer.Call{})}, "stop": {reducer.CancelTools{RequestID: "demo:r0001"}}, "other": {reducer.CancelTools{RequestID: "demo:r0002"}},
	})
	cancelled := make(chan struct{})
	isOver := false
	w.SetOnActivityCanceledListener(func(*activity.Info) { close(cancelled) })
	w.OnActivity(acts.CallTool, mock.Anything, mock.Anything).Return(func(context.Context, activities.CallToolInput) (activities.CallToolResult, error) {
		w.notes("other")
		w.notes("stop")
		select {
		case <-cancelled:
		case <-t.Context().Done():
		}
		isOver = true
		return activities.CallToolResult{}, temporal.NewCanceledError()
	}).Once()
	w.at(time.Minute, func() { w.notes("call") })
	w.at(time.Hour, w.close)
	w.complete()
	require.True(t, isOver)
	require.Equal(t, []reducer.Input{ended(reducer.CallCancelled)}, p.inputs)
}

func TestTheTimerIsReplaced(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w, p := newPuppet(t, map[string][]reducer.Effect{
		"late":  {reducer.WakeAt{At: start.Add(3 * time.Hour)}},
		"soon":  {reducer.WakeAt{At: start.Add(time.Hour)}},
		"again": {reducer.WakeAt{At: start.Add(time.Hour)}},
		"never": {reducer.WakeAt{}},
		"past":  {reducer.WakeAt{At: start}},
	})
	w.SetStartTime(start)
	w.at(time.Minute, func() { w.notes("late") })
	w.at(2*time.Minute, func() { w.notes("soon") })
	w.at(3*time.Minute, func() { w.notes("again") })
	w.at(2*time.Hour, func() { w.notes("late") })
	w.at(150*time.Minute, func() { w.notes("never") })
	w.at(4*time.Hour, func() { w.notes("past") })
	w.at(5*time.Hour, w.close)
	w.complete()
	require.Equal(t, []reducer.Input{
		reducer.Woken{At: start.Add(time.Hour)}, reducer.Woken{At: start.Add(4 * time.Hour)},
	}, p.inputs)
}

// A run with a running call continues as new only if the server would terminate it.
func TestARunningCallDelaysContinueAsNew(t *testing.T) {
	for name, test := range map[string]struct {
		length      int
		isContinued bool
	}{"due": {5_000, false}, "urgent": {50_000, true}} {
		t.Run(name, func(t *testing.T) {
			w, p := newPuppet(t, map[string][]reducer.Effect{"call": {calling(reducer.Call{})}})
			w.OnActivity(acts.CallTool, mock.Anything, mock.Anything).After(time.Hour).Return(activities.CallToolResult{Value: json.RawMessage(`1`)}, nil).Once()
			w.at(time.Minute, func() { w.notes("call") })
			w.at(2*time.Minute, func() {
				w.SetCurrentHistoryLength(test.length)
				w.notes("hello")
			})
			w.ExecuteWorkflow(wire.WorkflowType)
			require.True(t, w.IsWorkflowCompleted())
			var next *workflow.ContinueAsNewError
			require.ErrorAs(t, w.GetWorkflowError(), &next)
			if test.isContinued {
				require.Empty(t, p.inputs)
				return
			}
			want := ended(reducer.CallReturned)
			want.Value = json.RawMessage(`1`)
			require.Equal(t, []reducer.Input{want}, p.inputs, "the result is applied before the run ends")
		})
	}
}

func TestTheResultOfACancelledCallIsAppliedBeforeContinueAsNew(t *testing.T) {
	for name, test := range map[string]struct {
		length    int
		isApplied bool
	}{"due": {5_000, true}, "urgent": {50_000, false}} {
		t.Run(name, func(t *testing.T) {
			w, p := newPuppet(t, map[string][]reducer.Effect{
				"call": {calling(reducer.Call{})}, "stop": {reducer.CancelTools{RequestID: "demo:r0001"}},
			}, &stubborn{})
			w.OnActivity(acts.CallTool, mock.Anything, mock.Anything).Return(func(context.Context, activities.CallToolInput) (activities.CallToolResult, error) {
				w.notes("stop")
				w.at(0, func() { w.SetCurrentHistoryLength(test.length) })
				w.notes("hello") // the workflow receives it before the result
				return activities.CallToolResult{Value: json.RawMessage(`1`)}, nil
			}).Once()
			w.at(time.Minute, func() { w.notes("call") })
			w.at(time.Hour, w.close)
			w.ExecuteWorkflow(wire.WorkflowType)
			var next *workflow.ContinueAsNewError
			require.ErrorAs(t, w.GetWorkflowError(), &next)
			if test.isApplied {
				require.Len(t, p.inputs, 1)
			} else {
				require.Empty(t, p.inputs)
			}
		})
	}
}

func TestTheNextRunLearnsWhichCallsHaveNotStarted(t *testing.T) {
	w, p := newPuppet(t, map[string][]reducer.Effect{"call": {calling(reducer.Call{}), reducer.WakeAt{}}})
	p.request = &reducer.Request{ID: "demo:r0001"}
	w.at(time.Minute, func() {
		w.SetCurrentHistoryLength(5000)
		w.notes("call")
	})
	w.ExecuteWorkflow(wire.WorkflowType)
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, w.GetWorkflowError(), &next)
	var input map[string]any
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &input))
	require.Equal(t, []any{"call_1"}, input["notStarted"])

	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w, p = newPuppet(t, nil)
	w.SetContinuedExecutionRunID("previous")
	w.SetStartTime(start)
	w.at(time.Hour, w.close)
	w.ExecuteWorkflow(wire.WorkflowType, input)
	require.NoError(t, w.GetWorkflowError())
	require.Equal(t, []reducer.Input{reducer.Continued{At: start, NotStarted: []string{"call_1"}}}, p.inputs)
}
