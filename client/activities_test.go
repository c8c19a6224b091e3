package client_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdkclient "go.temporal.io/sdk/client"
	sdktemporal "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/tool"
	"github.com/seed-9ed7edd4/chronicle/worker/chronicletest"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// askOnce is a workflow with one step.
func askOnce(ctx workflow.Context, in client.Question) (answer string, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute, HeartbeatTimeout: 3 * time.Second,
		RetryPolicy: &sdktemporal.RetryPolicy{InitialInterval: 10 * time.Millisecond},
	})
	var asker *client.Activities
	err = workflow.ExecuteActivity(ctx, asker.Ask, in).Get(ctx, &answer)
	return answer, err
}

func register(w worker.Registry, conn *contexts.Connection) {
	w.RegisterWorkflow(askOnce)
	w.RegisterActivity(client.NewActivities(conn.Client()))
}

func startAsking(t *testing.T, conn *contexts.Connection) (stop func()) {
	t.Helper()
	w := worker.New(conn.Temporal, "orders", worker.Options{})
	register(w, conn)
	require.NoError(t, w.Start())
	return w.Stop
}

func connectTo(t *testing.T, server *chronicletest.Server) *contexts.Connection {
	t.Helper()
	conn, err := contexts.Connect(t.Context(), server.Config())
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	refund := func(context.Context, struct{}) (string, error) { return "refunded", nil }
	tools, err := tool.NewSet(tool.Options{}, tool.Must(tool.New("refund", "Refund the order", refund)))
	require.NoError(t, err)
	w, err := conn.NewWorker(contexts.Options{Models: llm.New(llm.Options{Defaults: server.Defaults()}), Tools: tools})
	require.NoError(t, err)
	register(w, conn)
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	return conn
}

func TestAskIsAStepThatSurvivesItsWorker(t *testing.T) {
	server := chronicletest.Start(t, llmtest.Calls(llmtest.Call{ID: "call_1", Name: "refund", Arguments: "{}"}), llmtest.Answer("Done."))
	conn := connectTo(t, server)
	stop := startAsking(t, conn)
	run, err := conn.Temporal.ExecuteWorkflow(t.Context(), sdkclient.StartWorkflowOptions{TaskQueue: "orders"}, askOnce, client.Question{
		ContextName: "demo",
		Events: []event.Event{
			event.New(event.SetTools{Tools: event.ToolList{{Pattern: "refund"}}, Approve: event.ApprovalRules{{Tool: "refund"}}}),
			event.New(event.UserMessage{Content: "Refund it"}),
		},
	})
	require.NoError(t, err)
	demo, err := conn.Client().Open("demo")
	require.NoError(t, err)
	asked := event.Event{}
	for e, err := range demo.Follow(t.Context(), client.FollowOptions{}) {
		require.NoError(t, err)
		if asked = e; e.Tag() == event.TagApprovalRequested {
			break
		}
	}
	stop()
	t.Cleanup(startAsking(t, conn))
	require.Eventually(t, func() bool {
		d, err := conn.Temporal.DescribeWorkflowExecution(t.Context(), run.GetID(), "")
		return err == nil && len(d.GetPendingActivities()) == 1 && d.GetPendingActivities()[0].GetAttempt() > 1 &&
			d.GetPendingActivities()[0].GetHeartbeatDetails() != nil
	}, time.Minute, 20*time.Millisecond, "another attempt waits for the same answer")
	_, err = demo.Send(t.Context(), event.New(event.ApprovalDecided{ToolCallID: asked.Body.(event.ApprovalRequested).ToolCallID, Decision: event.Approve}))
	require.NoError(t, err)

	var answer string
	require.NoError(t, run.Get(t.Context(), &answer))
	require.Equal(t, "Done.", answer)
	messages := 0
	for e, err := range demo.Events(t.Context(), "") {
		require.NoError(t, err)
		if e.Tag() == event.TagUserMessage {
			messages++
		}
	}
	require.Equal(t, 1, messages)
}

func TestAskReportsWhatANewAttemptWouldNotChange(t *testing.T) {
	server := chronicletest.Start(t, llmtest.Error(401, "invalid_api_key", "no key"))
	conn := connectTo(t, server)
	t.Cleanup(startAsking(t, conn))
	hello := []event.Event{event.New(event.UserMessage{Content: "Hello"})}
	for _, test := range []struct {
		taskQueue string
		question  client.Question
		kind      string
		text      string
	}{
		{"orders", client.Question{ContextName: "demo", Events: hello}, string(event.TagLLMRequestFailed), "ask context demo: the request failed: "},
		{"orders", client.Question{ContextName: "de mo", Events: hello}, "Invalid", `ask context "de mo": `},
		{"orders", client.Question{ContextName: "demo"}, "Invalid", "the input has no events"},
		{"contexts", client.Question{ContextName: "demo", Events: hello}, "Invalid", "register Ask with a worker of another task queue"},
	} {
		run, err := conn.Temporal.ExecuteWorkflow(t.Context(), sdkclient.StartWorkflowOptions{TaskQueue: test.taskQueue}, askOnce, test.question)
		require.NoError(t, err)
		err = run.Get(t.Context(), nil)
		var failure *sdktemporal.ApplicationError
		require.ErrorAs(t, err, &failure)
		require.Equal(t, test.kind, failure.Type())
		require.ErrorContains(t, failure, test.text)
	}
}
