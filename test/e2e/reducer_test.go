package e2e

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// A panic fails the workflow task, which Temporal repeats, so nothing that was accepted is lost.
func TestAContextContinuesWhenItsReducerNoLongerPanics(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Func(echo))
	c := w.open("reducer")
	panicked := make(chan struct{})
	once := sync.OnceFunc(func() { close(panicked) })
	stop := w.worker(func(o *contexts.Options) {
		o.Reduce = func(current reducer.ReducedContext, events ...event.Event) reducer.ReducedContext {
			for _, e := range events {
				if body, ok := e.Body.(event.UserMessage); ok && body.Content == "one too many" {
					once()
					panic("a defect")
				}
			}
			return reducer.Reduce(current, events...)
		}
	})
	w.say(c, "Hello")
	before := w.log(c)
	for _, text := range []string{"one too many", "and another"} {
		sent, err := c.Send(w.ctx, event.New(event.UserMessage{Content: text, TriggersTurn: new(false)}))
		require.NoError(t, err)
		require.Empty(t, sent.EventIDs)
	}
	<-panicked
	stop()
	require.Equal(t, before, w.log(c))

	w.worker()
	w.say(c, "Bye")
	require.Contains(t, w.log(c), before)
	require.Regexp(t, `(?s)one too many.*and another.*Bye`, w.log(c))
	w.replay(c, "")
}
