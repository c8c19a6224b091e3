package e2e

import (
	"context"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
)

// waitForUpdate is an interceptor of a client. It extends the time for an update to the end of the test.
type waitForUpdate struct {
	interceptor.ClientInterceptorBase
	until context.Context
}

func (w *waitForUpdate) InterceptClient(next interceptor.ClientOutboundInterceptor) interceptor.ClientOutboundInterceptor {
	return &waitingForUpdate{interceptor.ClientOutboundInterceptorBase{Next: next}, w.until}
}

type waitingForUpdate struct {
	interceptor.ClientOutboundInterceptorBase
	until context.Context
}

func (w *waitingForUpdate) UpdateWithStartWorkflow(
	ctx context.Context, in *interceptor.ClientUpdateWithStartWorkflowInput,
) (client.WorkflowUpdateHandle, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(w.until, cancel)()
	return w.Next.UpdateWithStartWorkflow(ctx, in)
}
