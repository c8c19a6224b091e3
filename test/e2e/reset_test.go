package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

// resetPoint returns the history id of the last workflow task that completed before the
// event after counter was recorded. For counter 0 it is the first task.
func (w *world) resetPoint(c *client.Context, runID string, counter int) (task int64) {
	w.t.Helper()
	history := w.temporal.GetWorkflowHistory(w.ctx, wire.WorkflowID(c.Name()), runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	var first int64
	for history.HasNext() {
		h, err := history.Next()
		require.NoError(w.t, err)
		if h.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			if first == 0 {
				first = h.GetEventId()
			}
			task = h.GetEventId()
		}
		events, err := eventlog.Decode(h)
		require.NoError(w.t, err)
		for _, e := range events {
			if event.Counter(e.ID) > counter {
				return max(task, first)
			}
		}
	}
	return task
}

// reset resets a run to the end of the workflow task that recorded an event and returns
// the new run. Later input is lost.
func (w *world) reset(c *client.Context, runID string, counter int) string {
	w.t.Helper()
	return w.resetWithout(c, runID, counter, allInput...)
}

var allInput = []enumspb.ResetReapplyExcludeType{enumspb.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL, enumspb.RESET_REAPPLY_EXCLUDE_TYPE_UPDATE}

// resetWithout is reset that reapplies later input except for excluded types.
func (w *world) resetWithout(c *client.Context, runID string, counter int, excluded ...enumspb.ResetReapplyExcludeType) string {
	w.t.Helper()
	answer, err := w.temporal.WorkflowService().ResetWorkflowExecution(w.ctx, &workflowservice.ResetWorkflowExecutionRequest{
		Namespace:         "default",
		WorkflowExecution: &common.WorkflowExecution{WorkflowId: wire.WorkflowID(c.Name()), RunId: runID},
		Reason:            "a test", WorkflowTaskFinishEventId: w.resetPoint(c, runID, counter), RequestId: fmt.Sprint(w.t.Name(), counter, runID),
		ResetReapplyExcludeTypes: excluded,
	})
	require.NoError(w.t, err)
	return answer.GetRunId()
}

func texts(log []event.Event) string {
	var contents []string
	for _, e := range log {
		switch b := e.Body.(type) {
		case event.UserMessage:
			contents = append(contents, b.Content)
		case event.AssistantMessage:
			contents = append(contents, b.Content)
		}
	}
	return strings.Join(contents, "|")
}

func TestAfterAResetReadersAndTheModelSeeTheSameLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Func(echo))
	w.worker()
	c := w.open("reset")
	for i := range 4 {
		w.say(c, fmt.Sprintf("m%d", i))
	}
	before := w.from(c, "")
	base := w.runs(c)[0]
	var cut int // the last event of the second turn
	for _, e := range before {
		if e.Tag() == event.TagLLMRequestCompleted && texts(before[:event.Counter(e.ID)]) != texts(before[:cut]) && strings.Count(texts(before[:event.Counter(e.ID)]), "|") == 3 {
			cut = event.Counter(e.ID)
		}
	}
	require.Positive(t, cut)
	run := w.reset(c, base, cut)
	w.say(c, "other")
	w.log(c)
	after := w.from(c, "")
	require.Equal(t, before[:cut], after[:cut])
	require.Contains(t, texts(after), "other")
	require.NotContains(t, texts(after), "m3")
	requests := w.model.Requests()
	var shown []string
	for _, m := range requests[len(requests)-1].Messages {
		shown = append(shown, m.Content)
	}
	require.NotContains(t, shown, "m3", "the model must see the log that readers see")

	// The abandoned branch stays readable, and the new one can be reset again.
	var abandoned []event.Event
	for e, err := range c.RunEvents(w.ctx, base, "") {
		require.NoError(t, err)
		abandoned = append(abandoned, e)
	}
	require.Equal(t, before, abandoned)
	again := w.reset(c, run, cut)
	w.say(c, "third")
	require.NotContains(t, texts(w.from(c, "")), "other")
	w.close(c, "for good")
	require.NoError(t, w.temporal.GetWorkflow(w.ctx, wire.WorkflowID(c.Name()), again).Get(w.ctx, nil), "closing must complete")
	w.say(c, "fourth")
	require.Contains(t, texts(w.from(c, "")), "third")
	found, err := c.Verify(w.ctx)
	require.NoError(t, err)
	require.Empty(t, found.Problems)
	w.replayRun(c, again, "")
}

// Temporal delivers it to the new run, where it must not count as expired.
func TestAResetKeepsALaterUpdateThatHasExpired(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Func(echo))
	w.worker()
	c := w.open("reset-expired")
	w.say(c, "m0")
	cut := len(w.from(c, ""))
	later := event.New(event.UserMessage{Content: "later", TriggersTurn: new(false)})
	later.ClientEventID = "later"
	expires, isExpired := time.Time{}, true
	for wait := 2 * time.Second; isExpired; wait *= 2 { // a busy worker handles it too late
		expires = time.Now().Add(wait)
		update, err := w.temporal.UpdateWorkflow(w.ctx, sdkclient.UpdateWorkflowOptions{
			WorkflowID: wire.WorkflowID(c.Name()), UpdateName: wire.UpdateAppend, Args: []any{later, wire.Sent{Expires: expires}},
			WaitForStage: sdkclient.WorkflowUpdateStageCompleted,
		})
		require.NoError(t, err)
		var failed *temporal.ApplicationError
		err = update.Get(w.ctx, nil)
		isExpired = errors.As(err, &failed) && failed.Type() == wire.ErrorExpired
		require.True(t, err == nil || isExpired, err)
	}
	time.Sleep(time.Until(expires)) // the clock alone tells that it has expired
	w.resetWithout(c, w.runs(c)[0], cut)
	w.say(c, "m1")
	require.Equal(t, 1, strings.Count(texts(w.from(c, "")), "later"))
}

func TestAResetToTheFirstWorkflowTaskRestoresThePreviousSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Func(echo))
	w.worker()
	c := w.open("reset-first")
	w.say(c, "m0")
	w.close(c, "once")
	w.say(c, "m1")
	base := w.runs(c)[0]
	before := w.from(c, "")
	w.reset(c, base, 0)
	w.say(c, "other")
	log := w.from(c, "")
	require.Contains(t, texts(log), "m0")
	require.Contains(t, texts(log), "other")
	require.NotContains(t, texts(log), "m1")
	require.Equal(t, before[0], log[0])
}
