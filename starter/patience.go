package main

import (
	"cmp"
	"context"
	"iter"
	"sync"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/starter/chat"
	"github.com/seed-9ed7edd4/chronicle/starter/show"
)

// patience is how long an input may take to be recorded before a person is told
// what it waits for.
const patience = 5 * time.Second

// turn sends events and yields their turn. Attachments that are too long for one
// input are sent ahead.
func (a *app) turn(ctx context.Context, to conversation, events []event.Event) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		inputs := chat.Inputs(events)
		last := len(inputs) - 1
		for _, input := range inputs[:last] {
			if _, err := to.Send(ctx, input...); err != nil {
				yield(event.Event{}, err)
				return
			}
		}
		noted := a.noteSilence()
		defer noted()
		for e, err := range to.Ask(ctx, inputs[last]...) {
			noted()
			if !yield(e, err) {
				return
			}
		}
	}
}

// noteSilence tells a person after a while that no worker has taken what was
// sent, unless the function that it returns is called first; after that nothing
// is told any more.
func (a *app) noteSilence() (stop func()) {
	told := make(chan struct{})
	timer := time.AfterFunc(cmp.Or(a.patience, patience), func() {
		defer close(told)
		a.note("%s", show.NoWorkerYet(a.taskQueue()))
	})
	return sync.OnceFunc(func() {
		if !timer.Stop() {
			<-told
		}
	})
}
