package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

// The turn of a message is known while no worker has recorded it, after its answer, and after a termination.
func TestTheTurnOfAMessageNeedsNoWorker(t *testing.T) {
	t.Parallel()
	gate := llmtest.NewGate()
	defer gate.Open()
	w := newWorld(t, llmtest.Answer("Hello"), llmtest.Answer("one", " two").HoldAfter(1, gate))
	c := w.open("turns")
	turnOf := func(id string, wait time.Duration) client.Turn {
		t.Helper()
		turn, err := client.TurnOf(w.ctx, c, id, wait)
		require.NoError(t, err)
		return turn
	}
	sent, err := c.Send(w.ctx, event.New(event.UserMessage{Content: "Hi"}))
	require.NoError(t, err)
	require.Empty(t, sent.EventIDs)
	require.Equal(t, client.Turn{Status: client.TurnQueued}, turnOf(sent.ClientEventIDs[0], 0))
	_, err = client.TurnOf(w.ctx, c, "another", 0)
	require.ErrorIs(t, err, client.ErrNoEvent)

	stop := w.worker()
	answered := turnOf(sent.ClientEventIDs[0], testTimeout)
	require.Equal(t, client.TurnCompleted, answered.Status)
	require.Equal(t, "Hello", answered.Answer)
	stop()
	require.Equal(t, answered, turnOf(answered.EventIDs[0], 0))

	w.worker()
	asked := w.ask(c, "Count")
	id := asked.seen[len(asked.seen)-1].ID
	asked.until(isTag(event.TagTextDelta))
	require.Equal(t, client.TurnRunning, turnOf(id, 0).Status)
	w.terminate(c)
	require.Equal(t, client.TurnFailed, turnOf(id, 0).Status)
}
