package e2e

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// A signal of plain temporal sets them, continuations and forks keep them, and Temporal finds contexts by them.
func TestDetailsStayWithAContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Answer("Yes."))
	w.worker(shortRuns)
	c := w.open("details")
	id := wire.WorkflowID(c.Name())
	w.temporalCommand("workflow", "signal-with-start", "--workflow-id", id, "--type", "Context", "--task-queue", w.queue,
		"--signal-name", "event", "--signal-input", `{"_tag":"SetDetails","title":"Plan of the trip","labels":{"team":"support"},"owner":"ann"}`)
	w.say(c, "Anyone?")
	w.continueAsNew(c)
	w.temporalCommand("workflow", "signal", "--workflow-id", id, "--name", "event", "--input", `{"_tag":"SetDetailsEvent","archived":true,"owner":"bob"}`)
	w.await(c, func(e event.Event) bool {
		details, ok := e.Body.(event.SetDetails)
		return ok && details.Owner == "bob"
	})

	var answer struct {
		QueryResult []json.RawMessage `json:"queryResult"`
	}
	out := w.temporalCommand("workflow", "query", "--workflow-id", id, "--type", "state", "--output", "json")
	require.NoError(t, json.Unmarshal([]byte(out), &answer), out)
	var state wire.State
	require.NoError(t, json.Unmarshal(answer.QueryResult[0], &state))
	labels := map[string]string{"team": "support"}
	require.Equal(t, reducer.Details{Title: "Plan of the trip", Labels: labels, Archived: true, Owner: "ann"}, state.Details)

	fork := c.Name() + "-copy"
	require.NoError(t, c.Fork(w.ctx, state.LastEventID, fork))
	copied, err := w.client.Open(fork)
	require.NoError(t, err)
	state, err = copied.State(w.ctx)
	require.NoError(t, err)
	require.Equal(t, reducer.Details{Title: "Plan of the trip", Labels: labels}, state.Details)

	listed := func(name string) (found client.Summary) {
		query := fmt.Sprintf("WorkflowId = '%s' AND ContextTitle STARTS_WITH 'Plan' AND ContextLabels = 'team=support'", wire.WorkflowID(name))
		for s, err := range w.client.List(w.ctx, query) {
			require.NoError(t, err)
			return s
		}
		return found
	}
	for _, name := range []string{c.Name(), fork} {
		w.eventually(func() bool { return listed(name).Title == "Plan of the trip" })
		require.Equal(t, labels, listed(name).Labels)
	}
	_, err = copied.Send(w.ctx, event.New(event.SetDetails{Title: new(""), Labels: map[string]string{}}))
	require.NoError(t, err)
	w.eventually(func() bool { return listed(fork).ContextName == "" })
	w.replay(copied, "details")
}
