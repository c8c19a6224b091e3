package client

import (
	"context"
	"iter"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
)

// FollowOptions configure [Context.Follow]. The zero value is valid.
type FollowOptions struct {
	From   string // id of the event to start after; empty: start at the first event
	Deltas bool   // include live deltas, if the client has NATS
	// Running is what the log through From shows, for Deltas. Without it, those of any request are included until
	// the log shows one.
	Running event.Running
	// Delay before the first read of the log. A Send by this client ends it, and so does a delta that answers
	// an event after From. 0: none.
	Delay time.Duration
	// Waiting is called when the work that no worker has done may have changed, between two reads of the log and
	// from another goroutine. Nil: not called.
	Waiting func(Waiting)
}

// Waiting is the work of a context that Temporal holds for a worker.
type Waiting = eventlog.Waiting

// Follow yields the recorded events, each once and in order, and then new ones until ctx is done. It waits for a context
// that does not exist, and ends with ErrDeleted when the context is deleted. With Deltas, live deltas and the progress of
// tool calls are interleaved. The deltas of an attempt come in order. A delta with Reset replaces the text so far,
// because the answer starts over or deltas were missed. All deltas are of the attempt that runs as the log shows it, so
// none follows its answer or the event that ends its request.
func (c *Context) Follow(ctx context.Context, options FollowOptions) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		f, err := c.newFollower(ctx, options.Deltas)
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		defer f.close()
		f.delay, f.waiting, f.running = options.Delay, options.Waiting, options.Running
		f.follow(options.From)(yield)
	}
}

// A follower receives deltas as soon as it is created, and reads the log when follow is called.
type follower struct {
	context     *Context
	ctx         context.Context
	cancel      context.CancelFunc
	deltas      *stream.Subscription // nil without deltas
	wake        chan struct{}        // ends delay, and the pause between two reads of the log
	unsubscribe func()
	delay       time.Duration // before the first read of the log
	waiting     func(Waiting) // nil: not called
	running     event.Running // what the log shows before the first event that is read
}

func (c *Context) newFollower(ctx context.Context, deltas bool) (*follower, error) {
	f := &follower{context: c}
	f.wake, f.unsubscribe = c.client.notifier.subscribe(c.name)
	if err := f.subscribe(ctx, deltas); err != nil {
		f.unsubscribe()
		return nil, err
	}
	f.ctx, f.cancel = context.WithCancel(ctx)
	return f, nil
}

func (f *follower) subscribe(ctx context.Context, deltas bool) error {
	if !deltas {
		return nil
	}
	conn, err := f.context.client.stream.get()
	if err != nil || conn == nil {
		return err
	}
	if f.deltas, err = conn.Subscribe(f.context.name); err != nil {
		return err
	}
	if conn.Connected() {
		// An error means that NATS has disconnected or does not respond.
		flush, cancel := context.WithTimeout(ctx, natsTimeout)
		_ = conn.Flush(flush)
		cancel()
	}
	return nil
}

func (f *follower) close() {
	f.cancel()
	f.unsubscribe()
	if f.deltas != nil {
		f.deltas.Close()
	}
}

func (f *follower) follow(from string) iter.Seq2[event.Event, error] {
	log := f.context.client.log.Follow(f.ctx, f.context.name, from, eventlog.FollowOptions{Wake: f.wake, Waiting: f.waiting})
	if f.delay > 0 {
		log = f.delayed(log)
	}
	if f.deltas == nil {
		return log
	}
	return func(yield func(event.Event, error) bool) {
		recorded := Entries(f.ctx, log, 0)
		defer func() {
			f.cancel()
			for range recorded {
			}
		}()
		merge(f.context.name, newPosition(from, f.running), recorded, f.deltas, f.wake, yield)
	}
}

func (f *follower) delayed(log iter.Seq2[event.Event, error]) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		timer := time.NewTimer(f.delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-f.wake:
		case <-f.ctx.Done():
		}
		log(yield)
	}
}
