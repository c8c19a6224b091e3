package backend_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/backend"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// server is a Temporal client whose updates have the result err. There is no signal and no history.
type server struct {
	sdkclient.Client
	err error
}

func (server) NewWithStartWorkflowOperation(sdkclient.StartWorkflowOptions, any, ...any) sdkclient.WithStartWorkflowOperation {
	return nil
}

func (s server) UpdateWithStartWorkflow(context.Context, sdkclient.UpdateWithStartWorkflowOptions) (sdkclient.WorkflowUpdateHandle, error) {
	return nil, s.err
}

func (server) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return nil, serviceerror.NewNotFound("no such workflow")
}

func (s server) SignalWithStartWorkflow(context.Context, string, string, any, sdkclient.StartWorkflowOptions, any, ...any) (sdkclient.WorkflowRun, error) {
	return nil, s.err
}

func TestOnlyMessagesThatMayBeAcceptedAreSentAgain(t *testing.T) {
	hello := event.New(event.UserMessage{Content: "Hello"})
	for name, test := range map[string]struct {
		contextName string
		event       event.Event
		err         error
		final       bool
	}{
		"an invalid name":       {"de mo", hello, nil, true},
		"an event of a session": {"demo", event.New(event.SessionEnded{}), nil, true},
		"an unreachable server": {"demo", hello, serviceerror.NewUnavailable("down"), false},
		"a full history":        {"demo", hello, serviceerror.NewResourceExhausted(0, "full"), false},
		"a rejected message":    {"demo", hello, refused{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var s sdkclient.Client = server{err: test.err}
			if test.err == (refused{}) {
				s = refusing{}
			}
			err := backend.Sender(client.New(client.Options{Temporal: s})).Send(t.Context(), test.contextName, test.event)
			require.Error(t, err)
			if test.final {
				require.ErrorIs(t, err, activities.ErrNotAccepted)
			} else {
				require.NotErrorIs(t, err, activities.ErrNotAccepted)
			}
		})
	}
}

// refused is the error of a context that rejects an event.
type refused struct{}

func (refused) Error() string { return "rejected" }

// refusing is a server with a context that rejects all events.
type refusing struct{ server }

func (refusing) UpdateWithStartWorkflow(context.Context, sdkclient.UpdateWithStartWorkflowOptions) (sdkclient.WorkflowUpdateHandle, error) {
	return refusal{}, nil
}

type refusal struct{ sdkclient.WorkflowUpdateHandle }

func (refusal) Get(context.Context, any) error {
	return temporal.NewNonRetryableApplicationError("an answer is running", wire.ErrorRejected, nil, "demo:0007")
}
