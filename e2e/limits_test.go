package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

func TestManyLargeMessagesThatWaitedForAWorkerAreAllRecorded(t *testing.T) {
	w := newWorld(t, llmtest.Answer("That was a lot."))
	c := w.open("large")
	no := false
	const messages = 6
	for range messages {
		// Together they are more than one workflow task may carry.
		_, err := c.Send(w.ctx, event.New(event.UserMessage{Content: strings.Repeat("<", 900_000), TriggersTurn: &no}))
		require.NoError(t, err)
	}
	w.worker()
	last := w.say(c, "Done")
	require.Equal(t, event.TagLLMRequestCompleted, last[len(last)-1].Tag())
	require.Len(t, w.model.Requests()[0].Messages, messages+1)
	w.replay(c, "")
}

func TestAMessageThatCannotBeRecordedIsRefusedToItsSender(t *testing.T) {
	w := newWorld(t)
	c := w.open("too-large")
	_, err := c.Send(w.ctx, event.New(event.UserMessage{Content: strings.Repeat("x", wire.MaxEventBytes)}))
	var refused *event.FieldError
	require.ErrorAs(t, err, &refused)
	require.ErrorContains(t, err, "at most 1500000 can be recorded")
}
