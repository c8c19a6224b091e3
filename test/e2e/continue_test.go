package e2e

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

func echo(r llmtest.Request) llmtest.Step { return llmtest.Answer("You said: ", r.LastUser()) }

const shortRun = 60 // history events

func shortRuns(o *contexts.Options) { o.ContinueAfter = shortRun }

// runs returns the newest run first.
func (w *world) runs(c *client.Context) (runs []string) {
	w.t.Helper()
	d := w.described(c, "")
	for run := d.GetWorkflowExecutionInfo().GetExecution().GetRunId(); run != ""; {
		runs = append(runs, run)
		h, err := w.temporal.GetWorkflowHistory(w.ctx, wire.WorkflowID(c.Name()), run, false, 0).Next()
		require.NoError(w.t, err)
		run = h.GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId()
	}
	return runs
}

// described is the description of a run of a context; "": the newest one.
func (w *world) described(c *client.Context, run string) *workflowservice.DescribeWorkflowExecutionResponse {
	w.t.Helper()
	d, err := w.temporal.DescribeWorkflowExecution(w.ctx, wire.WorkflowID(c.Name()), run)
	require.NoError(w.t, err)
	return d
}

// awaitArchive waits until the newest run has no pending Archive activity. If the run delayed
// continue-as-new for the archive, it continues as new at its next event.
func (w *world) awaitArchive(c *client.Context) {
	w.t.Helper()
	d := w.described(c, "")
	for _, pending := range d.GetPendingActivities() {
		if pending.GetActivityType().GetName() == "Archive" {
			w.awaitActivity(d.GetWorkflowExecutionInfo().GetExecution(), pending.GetActivityId())
		}
	}
}

func (w *world) awaitActivity(execution *common.WorkflowExecution, activityID string) {
	w.t.Helper()
	scheduled := int64(0)
	history := w.temporal.GetWorkflowHistory(w.ctx, execution.GetWorkflowId(), execution.GetRunId(), true, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		h, err := history.Next()
		require.NoError(w.t, err)
		if h.GetActivityTaskScheduledEventAttributes().GetActivityId() == activityID {
			scheduled = h.GetEventId()
		}
		if completed := h.GetActivityTaskCompletedEventAttributes(); completed != nil && completed.GetScheduledEventId() == scheduled {
			return
		}
	}
	w.t.Fatalf("run %s ended before activity %s", execution.GetRunId(), activityID)
}

func TestAConversationContinuesAsNew(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Func(echo))
	w.worker(shortRuns)
	c := w.open("long")
	const turns = 14 // the last run has about three turns, the others between four and five
	for i := range turns {
		text := fmt.Sprintf("Message %d", i)
		said := w.say(c, text)
		require.Equal(t, event.TagLLMRequestCompleted, said[len(said)-1].Tag())
		w.awaitArchive(c)
	}
	runs := w.runs(c)
	require.GreaterOrEqual(t, len(runs), 3)
	for _, run := range runs[1:] {
		d := w.described(c, run)
		require.GreaterOrEqual(t, d.GetWorkflowExecutionInfo().GetHistoryLength(), int64(shortRun), "no run continues as new early")
	}
	w.log(c) // checks ids and parents
	state, err := c.State(w.ctx)
	require.NoError(t, err)
	require.Equal(t, turns, state.Turns)
	require.Equal(t, 2*turns, state.MessageCount)
	for i, m := range state.Messages {
		want := fmt.Sprintf("Message %d", i/2)
		if i%2 == 1 {
			want = "You said: " + want
		}
		require.Equal(t, want, m.Content)
	}
	require.Equal(t, 1, countOf(w, c, event.TagSessionStarted), "all runs belong to one session")
	w.replay(c, "continued")
	w.replayRun(c, runs[len(runs)-1], "handed-over")
}

func countOf(w *world, c *client.Context, tag event.Tag) (n int) {
	w.t.Helper()
	for _, e := range w.from(c, "") {
		if e.Tag() == tag {
			n++
		}
	}
	return n
}

func TestConstantInputDoesNotPreventContinueAsNew(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Func(echo))
	w.worker(shortRuns)
	c := w.open("dense")
	w.send(c, event.New(event.SetDeliveryPolicy{Policy: event.PolicyQueue}))
	// The senders stop after three continuations.
	const senders, ends = 3, 3
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		sent []string
		runs = map[string]bool{}
	)
	isOver := func() bool {
		d, err := w.temporal.DescribeWorkflowExecution(w.ctx, wire.WorkflowID(c.Name()), "")
		if !assert.NoError(t, err) {
			return true
		}
		mu.Lock()
		defer mu.Unlock()
		runs[d.GetWorkflowExecutionInfo().GetExecution().GetRunId()] = true
		return len(runs) > ends
	}
	for s := range senders {
		wg.Go(func() {
			for i := 0; !isOver(); i++ {
				text := fmt.Sprintf("%d of %d", i, s)
				if _, err := c.Send(w.ctx, event.New(event.UserMessage{Content: text})); !assert.NoError(t, err) {
					return
				}
				mu.Lock()
				sent = append(sent, text)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.False(t, t.Failed())
	w.await(c, func(e event.Event) bool {
		state, err := c.State(w.ctx)
		require.NoError(t, err)
		return state.Status == wire.StatusIdle
	})
	w.log(c)
	var said []string
	for _, e := range w.from(c, "") {
		if body, ok := e.Body.(event.UserMessage); ok {
			said = append(said, body.Content)
		}
	}
	require.ElementsMatch(t, sent, said)
}

func newestOnly(current reducer.ReducedContext, events ...event.Event) reducer.ReducedContext {
	const shown = 40
	current = reducer.Reduce(current, events...)
	current.Messages = current.Messages[max(0, len(current.Messages)-shown):]
	return current
}

// The conversation has messages by update and by signal, interruptions, notes of a second
// client, and a follower.
func TestAThousandTurnsAreOneLogOverManyRuns_Long(t *testing.T) {
	long(t)
	const turns, after = 1000, 800
	t.Parallel()
	on := environment{timeout: 15 * time.Minute}
	if os.Getenv(temporalVariable) == "" {
		on.temporal = startOwnServer(t).Address() // floods delay the shared server
	}
	w := newWorldOn(t, on, llmtest.Func(echo))
	w.worker(func(o *contexts.Options) { o.ContinueAfter, o.Reduce = after, newestOnly })
	c := w.open("years")
	var none int64
	w.send(c, event.New(event.SetDeliveryPolicy{QuietPeriodMs: &none}))

	var followed []event.Event
	ended := make(chan struct{}, 1)
	following := make(chan error, 1)
	ctx, stop := context.WithCancel(w.ctx)
	defer stop()
	go func() {
		for e, err := range c.Follow(ctx, client.FollowOptions{}) {
			if err != nil {
				following <- err
				return
			}
			followed = append(followed, e)
			switch e.Body.(type) {
			case event.LLMRequestCompleted, event.LLMRequestInterrupted:
				ended <- struct{}{}
			case event.SessionEnded:
				following <- nil
				return
			}
		}
		following <- ctx.Err()
	}()

	sent := map[string]string{} // text by client id
	notes := make(chan string, turns)
	noted := make(chan struct{})
	go func() {
		defer close(noted)
		for id := range notes {
			_, err := c.Send(w.ctx, note(id, id))
			assert.NoError(t, err)
		}
	}()
	for i := range turns {
		id, text := fmt.Sprintf("c%d", i), fmt.Sprintf("Message %d", i)
		sent[id] = text
		if i%7 == 0 {
			sent["note-"+id] = "note-" + id
			notes <- "note-" + id
		}
		message := event.New(event.UserMessage{Content: text})
		message.ClientEventID = id
		if i%50 == 0 {
			require.NoError(t, w.temporal.SignalWorkflow(w.ctx, wire.WorkflowID(c.Name()), "", wire.SignalEvent, message))
		} else {
			_, err := c.Send(w.ctx, message)
			require.NoError(t, err)
		}
		if i%53 == 0 {
			require.NoError(t, c.Interrupt(w.ctx))
		}
		select {
		case <-ended:
		case err := <-following:
			require.NoError(t, err, "following ended at turn %d", i)
		}
	}
	close(notes)
	<-noted
	require.NoError(t, c.Close(w.ctx, "done"))
	require.NoError(t, <-following)

	require.GreaterOrEqual(t, len(w.runs(c)), 10)
	n, requests := 0, map[string]int{}
	for _, e := range w.from(c, "") {
		require.Less(t, n, len(followed))
		require.Equal(t, followed[n], e, "the follower must see the log")
		if n++; n > 1 {
			require.Equal(t, followed[n-2].ID, e.ParentID)
		}
		require.Equal(t, event.FormatID(c.Name(), n), e.ID)
		switch body := e.Body.(type) {
		case event.UserMessage:
			require.Equal(t, sent[e.ClientEventID], body.Content)
			delete(sent, e.ClientEventID)
		case event.LLMRequestCompleted:
			requests[body.RequestID]++
		case event.LLMRequestInterrupted:
			requests[body.RequestID]++
		}
	}
	require.Equal(t, len(followed), n)
	require.Empty(t, sent, "messages missing in the log")
	require.Len(t, requests, turns)
	for id, times := range requests {
		require.Equal(t, 1, times, id)
	}
}

// A run continues as new between two attempts, so it waits for a running answer.
func TestARunWaitsForItsAnswerBeforeItContinuesAsNew(t *testing.T) {
	t.Parallel()
	gate := llmtest.NewGate()
	w := newWorld(t, llmtest.Answer("Once", " upon", " a time").HoldAfter(1, gate),
		llmtest.Answer("Fine."),
	)
	w.worker(shortRuns)
	c := w.open("long-answer")
	w.send(c, event.New(event.SetDeliveryPolicy{Policy: event.PolicyQueue}), event.New(event.SetTimeout{TimeoutMs: 600_000}))
	turn := w.ask(c, "Tell me a story")
	turn.underWay()
	for w.historyLength(c) < shortRun {
		w.send(c, note("", "x"))
	}
	require.Len(t, w.runs(c), 1)
	gate.Open()
	require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag())
	require.Equal(t, "Once upon a time", deltaText(turn.seen))
	requireOneAttempt(t, turn.seen)
	w.continueAsNew(c)
	require.Equal(t, "Fine.", deltaText(w.say(c, "Go on")))
	w.log(c)
	for _, run := range w.runs(c) {
		w.replayRun(c, run, "")
	}
}

func requireOneAttempt(t *testing.T, seen []event.Event) {
	t.Helper()
	for _, e := range seen {
		switch b := e.Body.(type) {
		case event.TextDelta:
			require.False(t, b.Reset && b.Attempt > 1, "viewers must see no restart")
			require.Equal(t, 1, b.Attempt)
		case event.LLMRequestStarted:
			require.Equal(t, 1, b.Attempt)
		}
	}
}
