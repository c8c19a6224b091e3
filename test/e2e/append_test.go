package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// A note triggers no turn.
func note(clientEventID, text string) event.Event {
	no := false
	e := event.New(event.UserMessage{Content: text, TriggersTurn: &no})
	e.ClientEventID = clientEventID
	return e
}

func TestSendReturnsTheIDsOfItsEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.worker()
	c := w.open("appended")
	sent := w.sendForIDs(c, note("one", "One"), note("two", "Two"))
	first := event.Counter(sent[0])
	require.Equal(t, []string{event.FormatID(c.Name(), first), event.FormatID(c.Name(), first+1)}, sent)

	// Repeats are deduplicated: alone, as a signal, and together with new events.
	require.Equal(t, sent[1:], w.sendForIDs(c, note("two", "Two")))
	require.NoError(t, w.temporal.SignalWorkflow(w.ctx, wire.WorkflowID(c.Name()), "", wire.SignalEvent,
		map[string]any{"_tag": "UserMessage", "content": "One", "triggersTurn": false, "clientEventId": "one"}))
	more := w.sendForIDs(c, note("two", "Two"), note("three", "Three"))
	require.Equal(t, []string{sent[1], event.FormatID(c.Name(), first+2)}, more)

	w.close(c, "for today")
	require.Equal(t, sent[:1], w.sendForIDs(c, note("one", "One")), "the next session must deduplicate")
	require.Equal(t, story(`
		SessionStarted after 0
		UserMessage "One"
		UserMessage "Two"
		UserMessage "Three"
		SessionEnded for today
		SessionStarted after 5
	`), w.log(c))
	w.replay(c, "appended")
}

func TestInputSentWithoutAWorkerIsRecordedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.open("patient")
	for _, text := range []string{"One", "Two"} {
		sent, err := c.Send(w.ctx, note(text, text))
		require.NoError(t, err)
		require.Empty(t, sent.EventIDs, "no worker has recorded the event")
	}
	// The server has both the unanswered updates and the signals sent in their place.
	w.worker()
	require.Len(t, w.sendForIDs(c, note("Three", "Three")), 1)
	var said []string
	for _, e := range w.from(c, "") {
		if body, ok := e.Body.(event.UserMessage); ok {
			said = append(said, body.Content)
		}
	}
	require.ElementsMatch(t, []string{"One", "Two", "Three"}, said)
}

func TestInvalidUpdatesDoNotEnterTheHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.worker()
	c := w.open("strict")
	w.sendForIDs(c, note("one", "One"))
	before := w.historyLength(c)
	for name, input := range map[string]any{
		"a string":       "Hello",
		"an unknown tag": map[string]any{"_tag": "Nonsense"},
		"a raw key":      map[string]any{"_tag": "UserMessage", "content": "x", "apiKey": "sk-live-abcdefghijkl"},
		"a long input":   map[string]any{"_tag": "UserMessage", "content": strings.Repeat("x", wire.MaxAppendBytes)},
		"an empty array": []any{},
	} {
		t.Run(name, func(t *testing.T) {
			handle, err := w.temporal.UpdateWorkflow(w.ctx, sdkclient.UpdateWorkflowOptions{
				WorkflowID: wire.WorkflowID(c.Name()), UpdateName: wire.UpdateAppend,
				Args: []any{input}, WaitForStage: sdkclient.WorkflowUpdateStageCompleted,
			})
			if err == nil {
				err = handle.Get(w.ctx, nil)
			}
			var invalid *temporal.ApplicationError
			require.ErrorAs(t, err, &invalid)
			require.Equal(t, wire.ErrorInvalid, invalid.Type())
			require.NotContains(t, err.Error(), "sk-live")
		})
	}
	require.Equal(t, before, w.historyLength(c))
	w.send(c, note("two", "Two"))
}

func (w *world) historyLength(c *client.Context) int64 {
	w.t.Helper()
	d := w.described(c, "")
	return d.GetWorkflowExecutionInfo().GetHistoryLength()
}

func TestConcurrentFirstSendsStartOneSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.worker()
	c := w.open("shared")
	const clients = 8
	sendAll := func(round string) {
		begin, sent := make(chan struct{}), make(chan error, clients)
		for i := range clients {
			go func() {
				<-begin
				_, err := c.Send(w.ctx, note(fmt.Sprintf("%s-%d", round, i), round))
				sent <- err
			}()
		}
		close(begin)
		for range clients {
			require.NoError(t, <-sent)
		}
	}
	sendAll("first")
	w.close(c, "for today")
	sendAll("second")
	for i := range clients {
		w.await(c, func(e event.Event) bool { return e.ClientEventID == fmt.Sprintf("second-%d", i) })
	}
	w.log(c)
	require.Equal(t, 2, countOf(w, c, event.TagSessionStarted), "one event per session")
	require.Equal(t, 2*clients, countOf(w, c, event.TagUserMessage))
}
