package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// keeper keeps the contexts of activities, by type, and of timers, by summary.
type keeper struct {
	interceptor.WorkerInterceptorBase
	contexts map[string][]workflow.Context
}

func (k *keeper) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	i := &keeperInbound{keeper: k}
	i.Next = next
	return i
}

type keeperInbound struct {
	interceptor.WorkflowInboundInterceptorBase
	keeper *keeper
}

func (i *keeperInbound) Init(next interceptor.WorkflowOutboundInterceptor) error {
	o := &keeperOutbound{keeper: i.keeper}
	o.Next = next
	return i.Next.Init(o)
}

type keeperOutbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	keeper *keeper
}

func (o *keeperOutbound) ExecuteActivity(ctx workflow.Context, activityType string, args ...any) workflow.Future {
	o.keeper.contexts[activityType] = append(o.keeper.contexts[activityType], ctx)
	return o.Next.ExecuteActivity(ctx, activityType, args...)
}

func (o *keeperOutbound) NewTimerWithOptions(ctx workflow.Context, d time.Duration, options workflow.TimerOptions) workflow.Future {
	o.keeper.contexts[options.Summary] = append(o.keeper.contexts[options.Summary], ctx)
	return o.Next.NewTimerWithOptions(ctx, d, options)
}

// A context of the SDK keeps its children until they are cancelled.
func TestEndedWorkIsNotKept(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	kept := &keeper{contexts: map[string][]workflow.Context{}}
	w, _ := newPuppet(t, map[string][]reducer.Effect{
		"call": {calling(reducer.Call{})}, "wake": {reducer.WakeAt{At: start.Add(time.Hour)}},
	}, kept)
	w.SetStartTime(start)
	w.generates(answers("Hi"))
	w.OnActivity(acts.CallTool, mock.Anything, mock.Anything).Return(activities.CallToolResult{}, nil).Once()
	w.at(time.Minute, func() { w.says("Hello") })
	w.at(2*time.Minute, func() { w.notes("call") })
	w.at(3*time.Minute, func() { w.notes("wake") })
	w.at(2*time.Hour, func() {
		for _, name := range []string{"Generate", "CallTool", "next deadline"} {
			require.NotZero(t, len(kept.contexts[name]), name)
			for _, ctx := range kept.contexts[name] {
				require.ErrorIs(t, ctx.Err(), workflow.ErrCanceled, name)
			}
		}
	})
	w.at(3*time.Hour, w.close)
	w.complete()
}
