package e2e

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/internal/retention"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

// sweep applies rules to the contexts of the world until the test ends.
func (w *world) sweep(rules string) {
	w.t.Helper()
	parsed, err := retention.Parse("rules", rules)
	require.NoError(w.t, err)
	s := &retention.Sweeper{
		Rules: parsed, Log: slog.New(slog.DiscardHandler), Contexts: retention.NewContexts(w.temporal, "default", w.archive, w.client),
	}
	ctx, cancel := context.WithCancel(w.ctx)
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	w.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

// view returns what the stream of a gateway of its own contained when it ended.
func (w *world) view(c *client.Context, path string) <-chan string {
	w.t.Helper()
	g := gateway.New(w.client, gateway.Options{Log: slog.New(slog.DiscardHandler)})
	served := httptest.NewServer(g)
	w.t.Cleanup(func() {
		g.Close()
		served.Close()
	})
	request, err := http.NewRequestWithContext(w.ctx, http.MethodGet, served.URL+"/contexts/"+c.Name()+"/"+path, nil)
	require.NoError(w.t, err)
	request.Header.Set("Accept", "text/event-stream")
	answer, err := http.DefaultClient.Do(request)
	require.NoError(w.t, err)
	require.Equal(w.t, http.StatusOK, answer.StatusCode)
	seen := make(chan string, 1)
	go func() {
		defer answer.Body.Close()
		data, _ := io.ReadAll(answer.Body) // up to the end of the test
		seen <- string(data)
	}()
	return seen
}

func (w *world) awaitDeletion(c *client.Context) (receipt client.Deletion) {
	w.t.Helper()
	w.eventually(func() bool {
		var err error
		receipt, err = c.Deletion(w.ctx)
		return err == nil && !receipt.EndedAt.IsZero()
	})
	return receipt
}

func TestRulesDeleteInactiveContexts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Func(func(r llmtest.Request) llmtest.Step {
		if len(r.Tools) > 0 {
			return llmtest.Calls(llmtest.Call{ID: "call_1", Name: "ask_user", Arguments: `{"question":"Which?"}`})
		}
		return llmtest.Answer("Hello.")
	}))
	w.worker()
	temporary := map[string]string{"keep": "no"}
	begin := func(name string, labels map[string]string, settings ...event.Event) *client.Context {
		c := w.open(name)
		w.send(c, append(settings, event.New(event.SetDetails{Labels: labels}))...)
		return c
	}
	old, closed := begin("old", temporary), begin("closed", temporary)
	young, other := begin("young", map[string]string{}), begin("other", map[string]string{"keep": "yes"})
	waits := begin("waits", temporary, event.New(event.SetTools{Tools: event.ToolList{askUser}}))
	for _, c := range []*client.Context{old, closed, young, other} {
		w.say(c, "Hello")
	}
	w.send(waits, event.New(event.UserMessage{Content: "Ask me."}))
	w.await(waits, isTag(event.TagToolCall))
	require.NoError(t, closed.Close(w.ctx, ""))
	w.await(closed, isTag(event.TagSessionEnded))
	events := w.from(old, "")
	fork := w.open("fork")
	require.NoError(t, old.Fork(w.ctx, events[len(events)-1].ID, fork.Name()))
	w.send(fork, event.New(event.SetDetails{Labels: map[string]string{}}))

	// Viewers of gateways that do not know of the deletion.
	var viewers []<-chan string
	for _, path := range []string{"events", "transcript"} {
		for _, c := range []*client.Context{old, closed} {
			viewers = append(viewers, w.view(c, path))
		}
	}
	w.sweep(`
[[retention]]
after = "2s"
labels = { keep = "no" }
[[retention]]
after = "90d"
`)
	for _, c := range []*client.Context{old, closed} {
		receipt := w.awaitDeletion(c)
		require.Empty(t, receipt.Error)
		require.Positive(t, removedFrom(receipt, wire.PlaceRuns))
		require.Positive(t, removedFrom(receipt, wire.PlaceLog))
		for _, err := range c.Events(w.ctx, "") {
			require.ErrorIs(t, err, client.ErrNoContext)
		}
	}
	for _, viewer := range viewers {
		require.Contains(t, <-viewer, `event: problem
data: {"type":"urn:chronicle:problem:deleted","title":"The context was deleted","status":410`)
	}
	require.Equal(t, wire.StillActive, w.awaitDeletion(waits).Error)
	require.Equal(t, len(events)+2, len(w.from(fork, "")), "it has a copy of what it shared, its start and its labels")
	for _, c := range []*client.Context{young, other, fork} {
		_, err := c.Deletion(w.ctx)
		require.ErrorIs(t, err, client.ErrNoContext, c.Name())
	}
	for _, c := range []*client.Context{young, other, fork, waits} {
		require.NotEmpty(t, w.from(c, ""))
	}
}

// Input that arrives when a deletion has begun to delete is not lost.
func TestInputDuringADeletionBeginsANewContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Func(func(llmtest.Request) llmtest.Step { return llmtest.Answer("Hello.") }))
	w.worker()
	c := w.open("again")
	w.say(c, "First")
	last := w.from(c, "")
	last = last[len(last)-1:]
	require.NoError(t, c.StartDeletion(w.ctx, client.DeleteOptions{InactiveSince: last[0].Timestamp}))
	w.awaitHistoryOf(wire.DeletionID(c.Name()), isScheduled("DeleteRuns"))
	_, err := c.Send(w.ctx, event.New(event.UserMessage{Content: "Second"}))
	require.NoError(t, err)
	require.Empty(t, w.awaitDeletion(c).Error)
	w.await(c, isTag(event.TagLLMRequestCompleted))
	events := w.from(c, "")
	require.Equal(t, event.FormatID(c.Name(), 1), events[0].ID)
	require.Equal(t, "Second", events[1].Body.(event.UserMessage).Content)
	requests := w.model.Requests()
	require.Len(t, requests[len(requests)-1].Messages, 1, "without the deleted conversation")
}

// A deletion that requires inactivity keeps a context that got input since.
func TestInputBeforeADeletionPreventsIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Func(func(llmtest.Request) llmtest.Step { return llmtest.Answer("Hello.") }))
	w.worker()
	c := w.open("kept")
	w.say(c, "First")
	before := time.Now()
	w.say(c, "Second")
	require.NoError(t, c.StartDeletion(w.ctx, client.DeleteOptions{InactiveSince: before}))
	require.Equal(t, wire.StillActive, w.awaitDeletion(c).Error)
	w.say(c, "Third")
}

// The run whose session the deletion ends takes no more input. That of later input waits until the deletion has ended.
func TestInputDuringADeletionBeginsAnotherContext(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"active", "idle"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, llmtest.Answer("Hello."))
			w.worker()
			c := w.open(name)
			w.say(c, "First")
			if name == "idle" {
				require.NoError(t, c.Close(w.ctx, ""))
				require.NoError(t, w.temporal.GetWorkflow(w.ctx, wire.WorkflowID(c.Name()), "").Get(w.ctx, nil))
			}
			require.NoError(t, c.StartDeletion(w.ctx, client.DeleteOptions{}))
			var later []string
			w.awaitHistoryOf(wire.DeletionID(c.Name()), func(h *historypb.HistoryEvent) bool {
				note := event.New(event.Note{Kind: event.NoteSystem, Content: "later"})
				note.ClientEventID = fmt.Sprintf("note-%d", len(later))
				_, err := w.temporal.SignalWithStartWorkflow(w.ctx, wire.WorkflowID(c.Name()), wire.SignalEvent, note,
					sdkclient.StartWorkflowOptions{ID: wire.WorkflowID(c.Name()), TaskQueue: w.queue}, wire.WorkflowType)
				require.NoError(t, err)
				later = append(later, note.ClientEventID)
				return h.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED
			})
			require.Empty(t, w.awaitDeletion(c).Error)
			require.False(t, w.endedSession(c).WasTerminated)
			w.await(c, func(e event.Event) bool { return e.ClientEventID == later[len(later)-1] })
			var recorded []string
			for _, e := range w.from(c, "") {
				if e.ClientEventID != "" {
					recorded = append(recorded, e.ClientEventID)
				}
			}
			require.Equal(t, later, recorded)
		})
	}
}

// endedSession returns how the deletion of a context ended its session.
func (w *world) endedSession(c *client.Context) (ended activities.EndedSession) {
	w.t.Helper()
	w.awaitHistoryOf(wire.DeletionID(c.Name()), func(h *historypb.HistoryEvent) bool { // the result of its first activity
		completed := h.GetActivityTaskCompletedEventAttributes()
		if completed != nil {
			require.NoError(w.t, converter.GetDefaultDataConverter().FromPayloads(completed.GetResult(), &ended))
		}
		return completed != nil
	})
	return ended
}
