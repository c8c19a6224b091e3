package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
	"github.com/seed-9ed7edd4/chronicle/internal/index"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// deleteRuns deletes ended runs from the server, as its retention does. This takes up to a
// minute in total.
func (w *world) deleteRuns(c *client.Context, runs ...string) {
	w.t.Helper()
	for _, run := range runs {
		_, err := w.temporal.WorkflowService().DeleteWorkflowExecution(w.ctx, &workflowservice.DeleteWorkflowExecutionRequest{
			Namespace:         "default",
			WorkflowExecution: &common.WorkflowExecution{WorkflowId: wire.WorkflowID(c.Name()), RunId: run},
		})
		require.NoError(w.t, err)
	}
	for _, run := range runs {
		isDeleted := func() bool { // the server reports no event
			_, err := w.temporal.GetWorkflowHistory(w.ctx, wire.WorkflowID(c.Name()), run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT).Next()
			// The history can be deleted before the workflow execution.
			return errors.As(err, new(*serviceerror.NotFound)) ||
				err != nil && strings.Contains(err.Error(), "history not found, may have passed retention period")
		}
		require.Eventually(w.t, isDeleted, testTimeout, 500*time.Millisecond)
	}
}

// The runs continued as new, were terminated, and were closed.
func TestAContextSurvivesTheDeletionOfItsRuns(t *testing.T) {
	t.Parallel()
	for name, isClosed := range map[string]bool{"in a session": false, "after the last session": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, llmtest.Func(echo))
			w.worker(shortRuns)
			c := w.open("forgotten")
			for w.say(c, "Hello"); len(w.runs(c)) < 2; {
				w.say(c, "Hello again")
			}
			ended := w.runs(c)
			w.terminate(c)
			w.say(c, "And now?")
			current := w.runs(c)[0]
			require.NotContains(t, ended, current)
			if isClosed {
				w.close(c, "for good")
				ended = append(ended, current)
			}
			before := w.log(c)
			w.deleteRuns(c, ended...)
			require.Equal(t, before, w.log(c))
			if isClosed {
				w.continueFromArchive(c)
			}
		})
	}
}

// continueFromArchive continues a closed context of two sessions, of which only the archive remains.
func (w *world) continueFromArchive(c *client.Context) {
	w.t.Helper()
	before := w.log(c)
	x, err := index.Open(w.client, index.Options{})
	require.NoError(w.t, err)
	defer x.Close()
	w.eventually(func() bool {
		hits, _, err := x.Search(w.ctx, index.Query{Text: `"And now"`, ContextName: c.Name(), Limit: 10})
		require.NoError(w.t, err)
		return len(hits) == 2 // the question and its echo
	})
	found, _, err := x.List(w.ctx, index.Filter{Part: c.Name(), Limit: 1})
	require.NoError(w.t, err)
	require.Len(w.t, found, 1)
	require.Equal(w.t, client.Status("closed"), found[0].Status)
	require.Equal(w.t, len(w.users(c)), found[0].Turns)
	said := w.say(c, "Goodbye")
	require.Equal(w.t, event.TagLLMRequestCompleted, said[len(said)-1].Tag())
	require.Equal(w.t, before, w.log(c)[:len(before)])
	state, err := c.State(w.ctx)
	require.NoError(w.t, err)
	require.Equal(w.t, 2*len(w.users(c)), state.MessageCount)
	require.Equal(w.t, 3, countOf(w, c, event.TagSessionStarted))
}

func archivedThrough(w *world, a *archive.Archive, c *client.Context) (last int) {
	w.t.Helper()
	folder, err := a.Folder(w.ctx, c.Name())
	require.NoError(w.t, err)
	parts, err := folder.View(w.ctx, "", 0)
	require.NoError(w.t, err)
	for _, p := range parts {
		last = max(last, p.ArchivedThrough())
	}
	return last
}

// TestAnotherWorkerRetriesTheArchiveOfAKilledWorker_Alone blocks the archive with a pipe in place of
// the registration of the run, and kills the worker that reads the pipe.
func TestAnotherWorkerRetriesTheArchiveOfAKilledWorker_Alone(t *testing.T) {
	needsTimelyHeartbeats(t)
	w := newWorld(t)
	folder, ok := strings.CutPrefix(w.blobURL, "file://")
	if !ok {
		t.Skip("blob folder tests, not run on a bucket")
	}
	first := w.process(contexts.Both)
	c := w.open("half-archived")
	w.send(c, note("one", "One"))
	entry := filepath.Join(folder, "default", "contexts", c.Name(), "runs", "000000000001.json")
	require.NoError(t, os.Rename(entry, entry+".tmp"))
	require.NoError(t, syscall.Mkfifo(entry, 0o600))
	require.NoError(t, c.Close(w.ctx, "for today"))
	pipe, err := os.OpenFile(entry, os.O_WRONLY, 0) // returns when the worker reads
	require.NoError(t, err)
	first.kill()
	require.NoError(t, os.Rename(entry+".tmp", entry))
	require.NoError(t, pipe.Close())

	w.process(contexts.Both)
	require.NoError(t, w.temporal.GetWorkflow(w.ctx, wire.WorkflowID(c.Name()), "").Get(w.ctx, nil))
	require.Equal(t, 3, archivedThrough(w, w.archive, c))
	require.Equal(t, []enumspb.TimeoutType{enumspb.TIMEOUT_TYPE_HEARTBEAT}, w.activityTimeouts(c), "the retry must not wait for %v", activities.ArchiveTimeout)
}

// activityTimeouts returns the timeout of the last failed attempt of each retried activity, zero for
// another failure.
func (w *world) activityTimeouts(c *client.Context) (timeouts []enumspb.TimeoutType) {
	w.t.Helper()
	events := w.temporal.GetWorkflowHistory(w.ctx, wire.WorkflowID(c.Name()), "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(w.t, err)
		for _, failure := range []*failurepb.Failure{
			e.GetActivityTaskStartedEventAttributes().GetLastFailure(), e.GetActivityTaskTimedOutEventAttributes().GetFailure(),
		} {
			if failure != nil {
				timeouts = append(timeouts, failure.GetTimeoutFailureInfo().GetTimeoutType())
			}
		}
	}
	return timeouts
}

func TestAConversationContinuesDuringAnArchiveOutage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Func(echo))
	bucket := blobstest.New(t)
	conn := w.connection()
	conn.Archive, conn.StoreID = archive.New(bucket.Store), ""
	w.workerOn(conn, w.workerOptions(shortRuns))
	w.client = client.New(client.Options{Temporal: w.temporal, Stream: w.stream, Archive: archive.New(bucket.Store), TaskQueue: w.queue})
	c := w.open("away")
	w.say(c, "Hello") // opening a context reads the archive
	bucket.Fail(errors.New("no route to the store"))
	const turns = 10
	for i := range turns {
		w.say(c, fmt.Sprintf("Message %d", i))
	}
	require.Len(t, w.runs(c), 1, "a run must not end before it is archived")
	require.NoError(t, c.Close(w.ctx, "for today"))
	w.await(c, isTag(event.TagSessionEnded))
	d := w.described(c, "")
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, d.GetWorkflowExecutionInfo().GetStatus())

	bucket.Fail(nil)
	require.NoError(t, w.temporal.GetWorkflow(w.ctx, wire.WorkflowID(c.Name()), "").Get(w.ctx, nil))
	last := archivedThrough(w, archive.New(bucket.Store), c)
	newest := 0
	for _, e := range w.from(c, "") {
		newest = event.Counter(e.ID)
	}
	require.Equal(t, newest, last, "the whole log must be archived")
}
