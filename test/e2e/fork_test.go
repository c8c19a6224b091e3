package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

func TestAForkIsIndependentOfItsOrigin(t *testing.T) {
	t.Parallel()
	w := newWorldOn(t, environment{timeout: buildTimeout}, llmtest.Func(echo))
	w.worker(shortRuns)
	c := w.open("origin")
	for w.say(c, "Hello"); len(w.runs(c)) < 2; {
		w.say(c, "Hello again")
	}
	said := w.say(c, "Is this in the history alone?")
	at := said[len(said)-1].ID
	archived := archivedThrough(w, w.archive, c)
	require.Less(t, archived, event.Counter(at))
	shared := w.starter("", "export", "-n", c.Name())
	w.say(c, "This is the origin's")

	fork := w.open("fork")
	w.starter("", "fork", "-n", c.Name(), "--at", at, "--as", fork.Name())
	w.say(fork, "This is the fork's")
	log := w.starter("", "export", "-n", fork.Name())
	require.True(t, strings.HasPrefix(log, strings.ReplaceAll(shared, c.Name(), fork.Name())), log)
	own := w.from(fork, event.FormatID(fork.Name(), event.Counter(at)))
	require.Equal(t, event.SessionStarted{LoadedEventCount: event.Counter(at), ForkedFrom: at}, own[0].Body)
	require.Equal(t, "This is the fork's", own[1].Body.(event.UserMessage).Content)
	require.Contains(t, w.log(c), "This is the origin's")
	require.NotContains(t, w.log(c), "This is the fork's")

	// A new session of the fork must not change where it begins.
	w.close(fork, "for today")
	w.say(fork, "And on")
	require.Equal(t, 1, strings.Count(w.starter("", "export", "-n", fork.Name()), `"forkedFrom":"`+at+`"`))
	require.Contains(t, w.starter("", "verify", "-n", fork.Name()), "ok: ")
	require.Contains(t, w.starter("", "verify", "-n", c.Name()), "ok: ")
	_, errOut, err := w.tryStarter("", "fork", "-n", c.Name(), "--at", at, "--as", fork.Name())
	require.Error(t, err)
	require.Contains(t, errOut, "context already exists (choose another name)")
}

func TestAForkWithinARequestInterruptsIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Func(echo))
	w.worker()
	c := w.open("whole")
	said := w.say(c, "Hello", event.New(event.SetDeliveryPolicy{Policy: event.PolicyQueue}))
	var started event.Event
	for _, e := range said {
		if e.Tag() == event.TagLLMRequestStarted {
			started = e
		}
	}
	fork := w.open("cut")
	require.NoError(t, c.Fork(w.ctx, started.ID, fork.Name()))
	w.await(fork, func(e event.Event) bool { return e.Tag() == event.TagLLMRequestInterrupted })
	own := w.from(fork, event.FormatID(fork.Name(), event.Counter(started.ID)))
	require.Len(t, own, 2)
	require.Equal(t, started.ID, own[0].Body.(event.SessionStarted).ForkedFrom)
	require.Equal(t, started.MovedTo(fork.Name()).Body.(event.LLMRequestStarted).RequestID, own[1].Body.(event.LLMRequestInterrupted).RequestID)
	again := w.say(fork, "Hello again")
	require.Equal(t, event.TagLLMRequestCompleted, again[len(again)-1].Tag())
	require.Equal(t, 1, w.usageOf(fork).Attempts, "the other attempt is that of the original")
}

func (w *world) from(c *client.Context, id string) (events []event.Event) {
	w.t.Helper()
	for e, err := range c.Events(w.ctx, id) {
		require.NoError(w.t, err)
		events = append(events, e)
	}
	return events
}
