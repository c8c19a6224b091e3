package e2e

import (
	"context"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/seed-9ed7edd4/chronicle/activities"
)

const patientHeartbeatTimeout = time.Minute

// patient is an interceptor of the connection of a worker. It raises the heartbeat timeout of activities,
// because another attempt after a late heartbeat would change the result of a test.
func patient(
	ctx context.Context, method string, request, response any,
	conn *grpc.ClientConn, next grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	if completed, ok := request.(*workflowservice.RespondWorkflowTaskCompletedRequest); ok {
		for _, command := range completed.GetCommands() {
			activity := command.GetScheduleActivityTaskCommandAttributes()
			if activity.GetHeartbeatTimeout().AsDuration() == activities.HeartbeatTimeout {
				activity.HeartbeatTimeout = durationpb.New(patientHeartbeatTimeout)
			}
		}
	}
	return next(ctx, method, request, response, conn, options...)
}

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
