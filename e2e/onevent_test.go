package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// observer is a consumer of events as hook.Events describes it.
type observer struct {
	mu       sync.Mutex
	contexts map[string][]observed
	batches  []hook.Events
	repeats  int // events that were delivered again
	err      error
	changed  chan struct{} // closed and replaced after each batch
}

type observed struct{ runID, line string }

func newObserver() *observer {
	return &observer{contexts: map[string][]observed{}, changed: make(chan struct{})}
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
	log := o.contexts[events.ContextName]
	for _, e := range events.Events {
		n := event.Counter(e.ID)
		switch {
		case n <= len(log) && log[n-1].runID == events.RunID:
			o.repeats++
			continue
		case n > len(log)+1:
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

// awaitClosed waits until the newest run of a context has ended.
func (w *world) awaitClosed(c *client.Context) {
	w.t.Helper()
	require.NoError(w.t, w.temporal.GetWorkflow(w.ctx, wire.WorkflowID(c.Name()), "").Get(w.ctx, nil))
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
	first := crm.batches[0]
	require.Equal(t, []string{c.Name(), "", w.runs(c)[0]}, []string{first.ContextName, first.After, crm.batches[len(crm.batches)-1].RunID})
	require.Equal(t, first.Events[len(first.Events)-1].ID, first.Cursor)
	w.replay(c, "events-delivered")
}

var _ = errors.New
var _ = slices.Max[[]int]
