package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

// storeless opens a context with a client without a blob store.
func (w *world) storeless(c *client.Context) *client.Context {
	w.t.Helper()
	opened, err := client.New(client.Options{Temporal: w.dial(nil), Stream: w.stream, TaskQueue: w.queue}).Open(c.Name())
	require.NoError(w.t, err)
	return opened
}

// large70K is a text whose record is in the blob store.
var large70K = strings.Repeat("x", 70_000)

func TestAClientWithoutABlobStoreReadsItsTurnAfterALargeMessage(t *testing.T) {
	t.Parallel()
	w := newWorldOn(t, environment{timeout: buildTimeout, waitForUpdate: true}, llmtest.Func(byteCount))
	w.worker()
	c := w.open("storeless")
	require.Equal(t, "70000 bytes.", deltaText(w.say(c, large70K)))
	turn := w.say(w.storeless(c), "Hi")
	require.Equal(t, event.TagLLMRequestCompleted, turn[len(turn)-1].Tag())
	require.Equal(t, "2 bytes.", deltaText(turn))

	w.blobURL = "none"
	require.Equal(t, "3 bytes.\n", w.starter("", "send", "-n", c.Name(), "-m", "you"))
	largest := strings.Repeat("y", 61_000)
	require.Equal(t, "61000 bytes.\n", w.starter(largest, "send", "-n", c.Name()))
	_, errOut, err := w.tryStarter(large70K, "send", "-n", c.Name())
	require.Error(t, err)
	require.Contains(t, errOut, "(at most 61440 without a blob store; set --blob-url or BLOB_URL")
}

func TestAClientWithoutABlobStoreReportsAnAnswerThatItCannotRead(t *testing.T) {
	t.Parallel()
	w := newWorldOn(t, environment{timeout: buildTimeout}, llmtest.Answer(large70K), llmtest.Answer(large70K))
	w.worker()
	c := w.open("unreadable")
	const problem = "the input was accepted, but its turn cannot be read: "
	last := func(events ...event.Event) (err error) {
		for _, err = range w.storeless(c).Ask(w.ctx, events...) {
		}
		return err
	}
	err := last(event.New(event.UserMessage{Content: "Hello"}))
	require.ErrorIs(t, err, client.ErrNoArchive)
	require.ErrorContains(t, err, problem)

	// Both records of the turn are unreadable, and the client asks in the middle of the first.
	question := event.New(event.UserMessage{Content: "known by its id"})
	question.ClientEventID = "question"
	w.say(c, "And?", event.New(event.Note{Kind: event.NoteSystem, Content: large70K}), question)
	err = last(question)
	require.ErrorIs(t, err, client.ErrNoArchive)
	require.ErrorContains(t, err, problem)
}
