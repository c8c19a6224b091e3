package e2e

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	sdkclient "go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/connect"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

func (w *world) otherStore() (store *blobs.Store, id string) {
	w.t.Helper()
	store, err := blobs.Open(w.ctx, "file://"+filepath.ToSlash(w.t.TempDir()), "default")
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, store.Close()) })
	id, err = store.Identity(w.ctx)
	require.NoError(w.t, err)
	return store, id
}

func (w *world) requireUnused(store *blobs.Store) {
	w.t.Helper()
	var names []string
	for name, err := range store.Names(w.ctx, "") {
		require.NoError(w.t, err)
		names = append(names, name)
	}
	require.Equal(w.t, []string{"store.json"}, names)
}

func (w *world) workerWith(store *blobs.Store, id string) (stop func()) {
	w.t.Helper()
	conn := w.connection()
	conn.Temporal, conn.Archive, conn.StoreID = w.dial(store), archive.New(store), id
	return w.workerOn(conn, w.workerOptions())
}

// awaitStoreMismatch waits until a workflow task of the newest run fails with an error that
// names the given stores.
func (w *world) awaitStoreMismatch(c *client.Context, ids ...string) {
	w.t.Helper()
	history := w.temporal.GetWorkflowHistory(w.ctx, wire.WorkflowID(c.Name()), "", true, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for {
		h, err := history.Next()
		require.NoError(w.t, err)
		if failed := h.GetWorkflowTaskFailedEventAttributes(); failed != nil {
			for _, id := range ids {
				require.Contains(w.t, failed.GetFailure().GetMessage(), id)
			}
			return
		}
	}
}

func TestAWorkerWithAnotherBlobStoreIsRejected(t *testing.T) {
	t.Parallel()
	for name, isClosed := range map[string]bool{"in a session": false, "in the next session": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, llmtest.Func(echo))
			stop := w.worker()
			c := w.open("other-store")
			w.say(c, "m0")
			if isClosed {
				w.close(c, "for today")
			}
			before := w.from(c, "")
			stop()
			other, id := w.otherStore()
			stop = w.workerWith(other, id)
			_, err := c.Send(w.ctx, event.New(event.UserMessage{Content: "m1", TriggersTurn: new(false)}))
			require.NoError(t, err)
			w.awaitStoreMismatch(c, w.storeID, id)
			stop()
			require.Equal(t, before, w.from(c, ""))
			w.requireUnused(other)
			w.worker()
			w.say(c, "m2")
			require.Equal(t, "m0|You said: m0|m1|m2|You said: m2", texts(w.from(c, "")))
		})
	}
}

func TestAClientWithAnotherBlobStoreIsRejected(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Func(echo))
	w.worker()
	c := w.open("other-client")
	w.say(c, "m0")
	before := w.from(c, "")
	other, id := w.otherStore()
	stranger := client.New(client.Options{Temporal: w.dial(other), Archive: archive.New(other), TaskQueue: w.queue})
	theirs, err := stranger.Open(c.Name())
	require.NoError(t, err)
	for name, change := range map[string]func(context.Context) error{
		"send": func(ctx context.Context) error {
			_, err := theirs.Send(ctx, event.New(event.UserMessage{Content: "m1"}))
			return err
		},
		"interrupt": theirs.Interrupt,
		"close":     func(ctx context.Context) error { return theirs.Close(ctx, "") },
		"import":    func(ctx context.Context) error { return importLog(ctx, theirs, before) },
		"fork":      func(ctx context.Context) error { return theirs.Fork(ctx, before[0].ID, c.Name()+".fork") },
	} {
		err := change(w.ctx)
		require.ErrorIs(t, err, client.ErrOtherStore, name)
		require.ErrorContains(t, err, "it belongs to blob store "+w.storeID+", but this process uses "+id, name)
	}
	require.Equal(t, before, w.from(c, ""))
	w.requireUnused(other)

	// A client compares stores with the namespace or an existing context. Without either, the worker rejects the store.
	bound, err := connect.BoundStore(w.ctx, w.temporal, sdkclient.DefaultNamespace)
	require.NoError(t, err)
	if bound != "" {
		return
	}
	copied, err := stranger.Open(c.Name() + ".copy")
	require.NoError(t, err)
	var moved []event.Event
	for _, e := range before {
		moved = append(moved, e.MovedTo(copied.Name()))
	}
	require.NoError(t, importLog(w.ctx, copied, moved))
	w.awaitStoreMismatch(copied, w.storeID, id)
}

func importLog(ctx context.Context, c *client.Context, events []event.Event) error {
	_, err := c.Import(ctx, func(yield func(event.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}, client.ImportOptions{})
	return err
}

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
	w := newWorldOn(t, environment{waitForUpdate: true}, llmtest.Func(byteCount))
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
	w := newWorld(t, llmtest.Answer(large70K), llmtest.Answer(large70K))
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
