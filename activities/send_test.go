package activities_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// inbox is a Temporal client that keeps what is sent to it. err is the result of requests, outcome that of an update.
type inbox struct {
	sdkclient.Client
	err, outcome error
	sent         map[string]string // by context
}

func (inbox) NewWithStartWorkflowOperation(sdkclient.StartWorkflowOptions, any, ...any) sdkclient.WithStartWorkflowOperation {
	return nil
}

func (i inbox) UpdateWithStartWorkflow(_ context.Context, o sdkclient.UpdateWithStartWorkflowOptions) (sdkclient.WorkflowUpdateHandle, error) {
	i.sent[o.UpdateOptions.WorkflowID] = string(o.UpdateOptions.Args[0].(converter.RawValue).Payload().GetData())
	return outcome{err: i.outcome}, i.err
}

func (inbox) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return nil, serviceerror.NewNotFound("no such workflow")
}

func (i inbox) SignalWithStartWorkflow(context.Context, string, string, any, sdkclient.StartWorkflowOptions, any, ...any) (sdkclient.WorkflowRun, error) {
	return nil, i.err
}

type outcome struct {
	sdkclient.WorkflowUpdateHandle
	err error
}

func (o outcome) Get(context.Context, any) error { return o.err }

func send(i inbox, contextName, data string) error {
	return activities.New(activities.Options{Client: client.New(client.Options{Temporal: i})}).Send(context.Background(), activities.SendInput{
		ContextName: contextName, ClientEventID: "schedule:daily-1", Event: []byte(data),
	})
}

func TestSendReplacesTheClientEventID(t *testing.T) {
	i := inbox{sent: map[string]string{}}
	require.NoError(t, send(i, "demo", `{"_tag":"UserMessageEvent","clientEventId":"always the same","content":"Hi"}`))
	require.Len(t, i.sent, 1)
	events, err := event.DecodeInput([]byte(i.sent[wire.WorkflowID("demo")]))
	require.NoError(t, err)
	require.Len(t, events, 1)
	require.Equal(t, "schedule:daily-1", events[0].ClientEventID)
	require.Equal(t, event.UserMessage{Content: "Hi"}, events[0].Body)
}

func TestSendRetriesOnlyWhatMaySucceed(t *testing.T) {
	const message = `{"_tag":"UserMessageEvent","content":"Hi"}`
	rejected := temporal.NewNonRetryableApplicationError("an answer is running", wire.ErrorRejected, nil, "demo:0007")
	for name, test := range map[string]struct {
		contextName, event string
		inbox              inbox
		want               string
		final              bool
	}{
		"an unreachable server": {"demo", message, inbox{err: serviceerror.NewUnavailable("down")}, "down", false},
		"a full history":        {"demo", message, inbox{err: serviceerror.NewResourceExhausted(0, "full")}, "full", false},
		"a rejected message":    {"demo", message, inbox{outcome: rejected}, "an answer is running", true},
		"an invalid name":       {"de mo", message, inbox{}, "de mo", true},
		"an invalid event":      {"demo", `{"_tag":"UserMessageEvent","content":7}`, inbox{}, `send to context "demo": `, true},
		"a misspelt setting":    {"demo", `{"_tag":"UserMessage","content":"x","settings":{"topp":1}}`, inbox{}, `UserMessageEvent.settings: unknown field "topp"`, true},
		"an event of a session": {"demo", `{"_tag":"SessionEndedEvent","reason":"x"}`, inbox{}, `send to context "demo": `, true},
		"no event":              {"demo", ``, inbox{}, `send to context "demo": `, true},
		"two events":            {"demo", `[` + message + `,` + message + `]`, inbox{}, "the input has 2 events (want one)", true},
	} {
		t.Run(name, func(t *testing.T) {
			test.inbox.sent = map[string]string{}
			err := send(test.inbox, test.contextName, test.event)
			require.ErrorContains(t, err, test.want)
			var failed *temporal.ApplicationError
			require.Equal(t, test.final, errors.As(err, &failed) && failed.NonRetryable())
			require.Equal(t, test.inbox.err != nil || test.inbox.outcome != nil, len(test.inbox.sent) == 1)
		})
	}
}
