package e2e

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	historypb "go.temporal.io/api/history/v1"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"
	logs "go.uber.org/zap/zaptest/observer"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// said is a message without a client event id.
func said(text string) map[string]any {
	return map[string]any{"_tag": "UserMessage", "content": text, "triggersTurn": false}
}

func (w *world) terminate(c *client.Context) {
	w.t.Helper()
	require.NoError(w.t, w.temporal.TerminateWorkflow(w.ctx, wire.WorkflowID(c.Name()), "", "a test"))
}

// users returns the texts of the messages of users in the log. The log checks its ids.
func (w *world) users(c *client.Context) (users []string) {
	w.t.Helper()
	w.log(c)
	for _, e := range w.from(c, "") {
		if body, ok := e.Body.(event.UserMessage); ok {
			users = append(users, body.Content)
		}
	}
	return users
}

func TestTheNextRunRecordsWhatATerminatedRunAccepted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Func(echo))
	stop := w.worker()
	c := w.open("unrecorded")
	w.say(c, "m0")
	w.signal(c, said("recorded"))
	w.awaitText(c, "recorded")
	stop()
	large := strings.Repeat("large ", 20_000)
	for _, text := range []string{"one", "two", "two"} {
		w.signal(c, said(text))
	}
	_, err := c.Send(w.ctx, note("", large)) // as a reference
	require.NoError(t, err)
	require.NoError(t, w.temporal.SignalWorkflow(w.ctx, wire.WorkflowID(c.Name()), "", "typo", "x"))
	w.signal(c, said("three"))
	w.terminate(c)

	w.worker()
	w.say(c, "m1")
	require.Equal(t, []string{"m0", "recorded", "one", "two", "two", large, "three", "m1"}, w.users(c))
	require.Contains(t, w.log(c), "InputRejected signal typo")
	recovering := w.runs(c)[0]
	w.close(c, "for today")
	w.say(c, "m2")
	require.Len(t, w.users(c), 9, "nothing is recorded again")
	w.replayRun(c, recovering, "")
}

// No worker has opened the first two runs, so nothing but the memo of each next run names them.
func TestTheNextRunRecordsWhatUnopenedRunsAccepted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Func(echo))
	c := w.open("unopened")
	for _, text := range []string{"one", "two", "three"} {
		_, err := c.Send(w.ctx, note(text, text))
		require.NoError(t, err)
		w.signal(c, said(text+" more"))
		w.terminate(c)
	}
	w.worker()
	w.say(c, "m0")
	require.Equal(t, []string{"one", "one more", "two", "two more", "three", "three more", "m0"}, w.users(c))
	w.terminate(c)
	state, err := c.State(w.ctx)
	require.NoError(t, err)
	require.Equal(t, wire.StatusClosed, state.Status)
	w.say(c, "m1")
	require.Len(t, w.users(c), 8, "nothing is recorded again")
}

// Recovering 8 MB takes several activities and workflow tasks. It is cut off by a termination, and by the death of a worker.
func TestRecoveringInputOfATerminatedRunIsCutOff_Alone(t *testing.T) {
	needsTimelyHeartbeats(t)
	w := newWorld(t, llmtest.Func(func(llmtest.Request) llmtest.Step { return llmtest.Answer("Done.") }))
	c := w.open("cut-off")
	var want []string
	text := noise(rand.New(rand.NewPCG(5, 6)), 60_000)
	_, err := c.Send(w.ctx, note("", "first"))
	require.NoError(t, err)
	for i := range 140 {
		want = append(want, fmt.Sprint(i, text))
		w.signal(c, said(want[i]))
	}
	w.terminate(c)
	want = append([]string{"first"}, want...)

	_, err = c.Send(w.ctx, note("", "second"))
	require.NoError(t, err)
	first := w.processWith(workerSettings{})
	w.awaitHistory(c, func(h *historypb.HistoryEvent) bool {
		return h.GetActivityTaskCompletedEventAttributes() != nil
	})
	w.terminate(c)
	_, err = c.Send(w.ctx, note("", "third"))
	require.NoError(t, err)
	w.awaitHistory(c, func(h *historypb.HistoryEvent) bool {
		return h.GetActivityTaskCompletedEventAttributes() != nil
	})
	first.kill()
	w.processWith(workerSettings{})
	w.awaitText(c, "third")
	require.Equal(t, append(want, "second", "third"), w.users(c))
}

func (w *world) awaitText(c *client.Context, text string) {
	w.t.Helper()
	for e, err := range c.Follow(w.ctx, client.FollowOptions{}) {
		require.NoError(w.t, err)
		if body, ok := e.Body.(event.UserMessage); ok && body.Content == text {
			return
		}
	}
	w.t.Fatalf("%q was not recorded", text)
}

// The server accepts an update while the worker loads the input before it. Its sender does not wait for it.
func TestTheNextRunRecordsAnAcceptedUpdate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Func(echo))
	stop := w.worker()
	c := w.open("accepted")
	w.say(c, "m0")
	stop()
	large := strings.Repeat("large ", 20_000)
	_, err := c.Send(w.ctx, note("", large))
	require.NoError(t, err)
	options := w.workerOptions()
	options.Part = contexts.OnlyWorkflows // no worker loads the input
	stop = w.workerOn(w.connection(), options)
	_, err = w.temporal.UpdateWorkflow(w.ctx, sdkclient.UpdateWorkflowOptions{
		WorkflowID: wire.WorkflowID(c.Name()), UpdateName: wire.UpdateAppend, Args: []any{note("", "updated")},
		WaitForStage: sdkclient.WorkflowUpdateStageAccepted,
	})
	require.NoError(t, err)
	w.terminate(c)
	stop()
	w.worker()
	w.say(c, "m1")
	require.Equal(t, []string{"m0", large, "updated", "m1"}, w.users(c))
}

func TestALostHistoryOfATerminatedRunIsLogged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Func(echo))
	stop := w.worker()
	c := w.open("gone")
	w.say(c, "m0")
	before := w.from(c, "")
	_, err := eventlog.New(w.temporal, "", w.archive).Archive(w.ctx, c.Name(), len(before))
	require.NoError(t, err)
	stop()
	w.signal(c, said("lost"))
	ended := w.runs(c)[0]
	w.terminate(c)
	w.deleteRuns(c, ended)
	core, logged := logs.New(zap.WarnLevel)
	conn := w.connection()
	conn.Temporal = w.dial(w.archive.Store(), func(o *sdkclient.Options) {
		o.Logger = log.NewStructuredLogger(slog.New(zapslog.NewHandler(core)))
	})
	w.workerOn(conn, w.workerOptions())
	w.say(c, "m1")
	require.Equal(t, []string{"m0", "m1"}, w.users(c))
	require.Equal(t, 1, logged.FilterMessageSnippet("the history of an earlier run is gone").Len())
}
