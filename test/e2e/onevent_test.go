package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

// observer is a consumer of events as hook.Events describes it.
type observer struct {
	mu       sync.Mutex
	after    int // counter of the event before the first
	contexts map[string][]observed
	epochs   map[string]int // the highest of each context
	batches  []hook.Events
	repeats  int // events that were delivered again
	err      error
	changed  chan struct{} // closed and replaced after each batch
}

type observed struct{ runID, line string }

func newObserver() *observer {
	return &observer{contexts: map[string][]observed{}, epochs: map[string]int{}, changed: make(chan struct{})}
}

func (o *observer) hook(name string) hook.Hook { return hook.Hook{Name: name, OnEvent: o.take} }

// fail makes later deliveries fail; nil: not.
func (o *observer) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = err
}

func (o *observer) take(_ context.Context, events hook.Events) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer func() {
		close(o.changed)
		o.changed = make(chan struct{})
	}()
	o.batches = append(o.batches, events)
	if o.err != nil {
		return o.err
	}
	if events.Epoch < o.epochs[events.ContextName] {
		return nil // a branch that a reset abandoned
	}
	o.epochs[events.ContextName] = events.Epoch
	log := o.contexts[events.ContextName]
	for _, e := range events.Events {
		n := event.Counter(e.ID) - o.after
		switch {
		case 0 < n && n <= len(log) && log[n-1].runID == events.RunID:
			o.repeats++
			continue
		case n < 1 || n > len(log)+1:
			return fmt.Errorf("%s follows %d events", e.ID, len(log))
		}
		log = append(log[:n-1:n-1], observed{events.RunID, describe(e)})
	}
	o.contexts[events.ContextName] = log
	return nil
}

func (o *observer) log(c *client.Context) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var lines []string
	for _, e := range o.contexts[c.Name()] {
		lines = append(lines, e.line)
	}
	return strings.Join(lines, "\n")
}

// epochsOf returns the epochs of the deliveries so far.
func (o *observer) epochsOf(c *client.Context) (epochs []int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, b := range o.batches {
		if b.ContextName == c.Name() {
			epochs = append(epochs, b.Epoch)
		}
	}
	return epochs
}

// await waits until the observer has a log.
func (o *observer) await(w *world, c *client.Context, want string) {
	w.t.Helper()
	o.until(w, func() bool { return o.log(c) == want })
}

func (o *observer) until(w *world, condition func() bool) {
	w.t.Helper()
	for {
		o.mu.Lock()
		changed := o.changed
		o.mu.Unlock()
		if condition() {
			return
		}
		select {
		case <-changed:
		case <-w.ctx.Done():
			o.mu.Lock()
			defer o.mu.Unlock()
			require.FailNow(w.t, "the events were not delivered", "%v", o.contexts)
		}
	}
}

func TestAHookReceivesAllEventsInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Func(echo))
	crm := newObserver()
	w.worker(withHooks(crm.hook("crm")))
	c := w.open("onevent")
	w.say(c, "Hello", event.New(event.SystemPrompt{Content: "Be brief."}))
	w.say(c, "And you?")
	w.close(c, "done")
	require.Equal(t, w.log(c), crm.log(c), "the run stays open until all events are delivered")
	w.say(c, "Again")
	w.close(c, "done again")
	require.Equal(t, w.log(c), crm.log(c))
	require.Zero(t, crm.repeats)
	last := crm.batches[len(crm.batches)-1]
	require.Equal(t, w.runs(c)[0], last.RunID)
	require.Equal(t, last.Events[len(last.Events)-1].ID, last.Cursor)
	w.replay(c, "events-delivered")
}

// A dead hook delays neither the context, its continuations, nor other hooks.
func TestADeadHookReceivesAllEventsWhenItIsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Func(echo))
	crm, dead := newObserver(), newObserver()
	dead.fail(errors.New("connection refused"))
	w.worker(shortRuns, withHooks(dead.hook("dead"), crm.hook("crm")))
	c := w.open("dead-observer")
	for i := range 12 {
		w.say(c, fmt.Sprint("Message ", i))
		w.awaitArchive(c)
	}
	require.Greater(t, len(w.runs(c)), 1, "the context continued as new")
	crm.await(w, c, w.log(c))
	require.NoError(t, c.Close(w.ctx, "done"))
	w.await(c, isTag(event.TagSessionEnded))
	crm.await(w, c, w.log(c))
	require.Empty(t, dead.log(c))
	d := w.described(c, "")
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, d.GetWorkflowExecutionInfo().GetStatus())
	isShown := func() bool { return w.pendingFailure(c, "Deliver") == "hook dead: connection refused" }
	require.Eventually(t, isShown, testTimeout, 20*time.Millisecond, "the failure is shown")
	w.say(c, "Still there?") // begins a session in the same run
	dead.fail(nil)
	w.close(c, "done again")
	require.Equal(t, w.log(c), dead.log(c))
	require.Equal(t, w.log(c), crm.log(c))
	w.replay(c, "events-of-a-dead-hook")
}

func TestEventsOfATerminatedRunAreDelivered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Func(echo))
	crm := newObserver()
	crm.fail(errors.New("down"))
	w.worker(withHooks(crm.hook("crm")))
	c := w.open("terminated-observed")
	w.say(c, "Hello")
	require.NoError(t, w.temporal.TerminateWorkflow(w.ctx, wire.WorkflowID(c.Name()), "", "a test"))
	crm.fail(nil)
	w.say(c, "And you?")
	crm.await(w, c, w.log(c))
	w.replay(c, "")
}

// A delivery of the abandoned branch is under way during the reset, and arrives last.
func TestALateDeliveryOfAnAbandonedBranchIsIgnored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Func(echo))
	crm := newObserver()
	onTheWay, arrive, arrived := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var once sync.Once
	delayed := crm.hook("crm")
	delayed.Timeout = testTimeout
	delayed.OnEvent = func(ctx context.Context, events hook.Events) error {
		isLate := false
		if slices.ContainsFunc(events.Events, isMessage("m1")) {
			once.Do(func() { isLate = true })
		}
		if isLate {
			defer close(arrived)
			close(onTheWay)
			<-arrive
		}
		return crm.take(ctx, events)
	}
	w.worker(withHooks(delayed))
	c := w.open("late-observed")
	w.say(c, "m0")
	cut := len(w.from(c, ""))
	crm.await(w, c, w.log(c))
	w.say(c, "m1")
	w.wait(onTheWay)
	w.reset(c, w.runs(c)[0], cut)
	w.say(c, "other")
	crm.await(w, c, w.log(c))
	close(arrive)
	w.wait(arrived)
	require.Equal(t, w.log(c), crm.log(c))
	require.NotContains(t, crm.log(c), "m1")
	require.Equal(t, []int{1, 2, 1}, slices.Compact(crm.epochsOf(c)), "the late delivery has the lower epoch")
	w.say(c, "And you?")
	w.close(c, "done")
	require.Equal(t, w.log(c), crm.log(c))
}

func isMessage(text string) func(event.Event) bool {
	return func(e event.Event) bool {
		m, ok := e.Body.(event.UserMessage)
		return ok && m.Content == text
	}
}

// pendingFailure returns the last failure of a pending activity; "" without one.
func (w *world) pendingFailure(c *client.Context, activityType string) string {
	w.t.Helper()
	d := w.described(c, "")
	for _, a := range d.GetPendingActivities() {
		if a.GetActivityType().GetName() == activityType && a.GetLastFailure() != nil {
			return a.GetLastFailure().GetMessage()
		}
	}
	return ""
}
