package e2e

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/wire"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// largePatience is the patience of a test with megabytes of text, of which the
// race detector watches every byte.
const largePatience = 5 * time.Minute

func TestManyLargeMessagesThatWaitedForAWorkerAreAllRecorded(t *testing.T) {
	w := newWorldOn(t, surroundings{patience: largePatience}, llmtest.Answer("That was a lot."))
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
}

func TestAClosedContextThatIsLargeGoesOn(t *testing.T) {
	w := newWorldOn(t, surroundings{patience: largePatience}, llmtest.Answer("I remember."))
	w.worker()
	c := w.open("large-closed")
	no := false
	random := rand.New(rand.NewPCG(1, 2))
	const messages = 3
	for range messages {
		// Noise, which does not get smaller when it is compressed.
		noise := make([]byte, 900_000)
		for i := range noise {
			noise[i] = ' ' + byte(random.IntN(95))
		}
		w.send(c, event.New(event.UserMessage{Content: string(noise), TriggersTurn: &no}))
	}
	w.close(c, "")
	last := w.say(c, "And?")
	require.Equal(t, event.TagLLMRequestCompleted, last[len(last)-1].Tag())
	require.Len(t, w.model.Requests()[0].Messages, messages+1)
}

func TestALargeConversationIsAnsweredByAWorkerThatHasOnlyActivities(t *testing.T) {
	w := newWorldOn(t, surroundings{patience: largePatience}, llmtest.Answer("I have read it all."))
	w.worker(func(o *contexts.Options) { o.Part = contexts.OnlyWorkflows })
	w.worker(func(o *contexts.Options) { o.Part = contexts.OnlyActivities })
	c := w.open("large-split")
	no := false
	const messages = 5
	for range messages {
		w.send(c, event.New(event.UserMessage{Content: strings.Repeat("x", 1<<20), TriggersTurn: &no}))
	}
	// A query could not carry it.
	last := w.say(c, "Done")
	require.Equal(t, event.TagLLMRequestCompleted, last[len(last)-1].Tag())
	require.Len(t, w.model.Requests()[0].Messages, messages+1)
}

func TestAMessageThatCannotBeRecordedIsRefusedToItsSender(t *testing.T) {
	w := newWorld(t)
	c := w.open("too-large")
	_, err := c.Send(w.ctx, event.New(event.UserMessage{Content: strings.Repeat("x", wire.MaxEventBytes)}))
	var refused *event.FieldError
	require.ErrorAs(t, err, &refused)
	require.ErrorContains(t, err, "at most 1500000 can be recorded")
}
