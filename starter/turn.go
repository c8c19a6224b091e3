package main

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/starter/chat"
	"github.com/seed-9ed7edd4/chronicle/starter/show"
)

const noticeAfter = 5 * time.Second

// turn sends events and yields the events of their turn. Attachments that exceed the limit of
// one input are sent ahead.
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
		stopNotice := a.noticeNoWorker(to)
		defer func() { stopNotice() }()
		for e, err := range to.Ask(ctx, inputs[last]...) {
			stopNotice()
			if !yield(e, err) {
				return
			}
			stopNotice = a.noticeUnattended(to)
		}
	}
}

func (a *app) noticeNoWorker(to conversation) (stop func()) {
	return a.later(func(ctx context.Context) {
		queue := a.taskQueueOf(ctx, to)
		if ctx.Err() == nil {
			a.note("%s (Ctrl-C stops waiting)", show.NoWorkerYet(queue))
		}
	})
}

const maxProbeInterval = time.Minute

// noticeUnattended prints a notice if two probes find the same work without a worker: right after an attempt, the
// next one waits for a moment, too. The longer a worker takes, the rarer the probes.
func (a *app) noticeUnattended(to conversation) (stop func()) {
	return a.later(func(ctx context.Context) {
		const shortest = noticeAfter / 2
		interval, probed := shortest, time.Time{}
		for ctx.Err() == nil {
			since, err := to.UnattendedSince(ctx)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil || since.IsZero():
				interval = min(2*interval, maxProbeInterval)
			case since.Equal(probed):
				if a.outTerminal && a.errTerminal {
					fmt.Fprintln(a.err) // ends the line of the answer so far
				}
				a.note("%s (Ctrl-C stops waiting)", show.Unattended)
				return
			default:
				interval = shortest
			}
			probed = since
			pause.For(ctx, interval)
		}
	})
}

// later calls notice after noticeAfter. Stop ends the context of a call, and returns after it.
func (a *app) later(notice func(ctx context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	printed := make(chan struct{})
	timer := time.AfterFunc(noticeAfter, func() {
		defer close(printed)
		notice(ctx)
	})
	return sync.OnceFunc(func() {
		cancel()
		if !timer.Stop() {
			<-printed
		}
	})
}

const describeTimeout = 2 * time.Second

// taskQueueOf returns the task queue of a context, or that of the configuration if Temporal does not tell.
func (a *app) taskQueueOf(ctx context.Context, of conversation) string {
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	queue, err := of.TaskQueue(ctx)
	if err != nil {
		return a.taskQueue()
	}
	return queue
}

// readLog yields the log of a context, and prints a notice if no worker has recorded its newest input.
func (a *app) readLog(ctx context.Context, of conversation, from string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		var work client.Waiting
		for e, err := range of.EventsAndWaiting(ctx, from, func(w client.Waiting) { work = w }) {
			if !yield(e, err) {
				return
			}
		}
		if waitsForWorker(work) {
			a.noteUnrecorded(ctx, of)
		}
	}
}

// followLog yields the log of a context, and prints a notice when no worker has recorded input for a while.
func (a *app) followLog(ctx context.Context, of conversation, options client.FollowOptions) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		stop, isStored := func() {}, false
		defer func() { stop() }()
		options.Waiting = func(w client.Waiting) {
			if isStored == waitsForWorker(w) {
				return
			}
			stop()
			if isStored = !isStored; isStored {
				stop = a.later(func(ctx context.Context) { a.noteUnrecorded(ctx, of) })
			}
		}
		of.Follow(ctx, options)(yield)
	}
}

// waitsForWorker is false for the input of a terminated run, which waits for the next run.
func waitsForWorker(w client.Waiting) bool { return w.Input != nil && !w.Since.IsZero() }

func (a *app) noteUnrecorded(ctx context.Context, of conversation) {
	queue := a.taskQueueOf(ctx, of)
	if ctx.Err() == nil {
		a.note("the newest input of context %s is %s", of.Name(), show.NoWorkerYet(queue))
	}
}
