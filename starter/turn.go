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

const noticeAfter = 5 * time.Second

// turn sends events and yields the events of their turn. Attachments that exceed the limit of
// one input are sent ahead.
func (a *app) turn(ctx context.Context, to asker, events []event.Event) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		inputs := chat.Inputs(events)
		last := len(inputs) - 1
		for _, input := range inputs[:last] {
			if _, err := to.Send(ctx, input...); err != nil {
				yield(event.Event{}, err)
				return
			}
		}
		stopNotice := a.noticeNoWorker()
		defer stopNotice()
		for e, err := range to.Ask(ctx, inputs[last]...) {
			stopNotice()
			a.progress = max(a.progress, progressOf(e.Body))
			if !yield(e, err) {
				return
			}
		}
	}
}

// progress is how far a turn has come.
type progress int

const (
	turnUnrecorded progress = iota
	turnRecorded
	turnAnswering
)

func progressOf(body event.Body) progress {
	switch body.(type) {
	case nil: // an error
		return turnUnrecorded
	case event.LLMRequestStarted, event.TextDelta, event.ReasoningDelta:
		return turnAnswering
	}
	return turnRecorded
}

// After stop has returned, nothing is printed.
func (a *app) noticeNoWorker() (stop func()) {
	printed := make(chan struct{})
	timer := time.AfterFunc(cmp.Or(a.noticeAfter, noticeAfter), func() {
		defer close(printed)
		a.note("%s (Ctrl-C stops waiting)", show.NoWorkerYet(a.taskQueue()))
	})
	return sync.OnceFunc(func() {
		if !timer.Stop() {
			<-printed
		}
	})
}
