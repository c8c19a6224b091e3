package client

import (
	"context"
	"iter"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/stream"
)

// FollowOptions say what Follow yields.
type FollowOptions struct {
	// From is the id of the event after which to begin. Empty: at the first.
	From string
	// Deltas adds live deltas, if the client has them.
	Deltas bool
	// Delay is the time before the log is first read. A delta, or input that this
	// client sends, ends it early. 0: none.
	Delay time.Duration
}

// Follow yields the log so far and then what is added to it, for as long as
// ctx lasts: every event exactly once and in order, over the ends of runs and
// sessions. It waits for a context that is not there yet. With Deltas, live
// deltas stand between the events: those of one attempt in order, a Reset before
// an answer that begins anew, none after the event that ended their request.
func (c *Context) Follow(ctx context.Context, options FollowOptions) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		f, err := c.follower(ctx, options.Deltas)
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		defer f.close()
		f.delay = options.Delay
		f.follow(options.From)(yield)
	}
}

// follower follows one context. Deltas are heard from its making on, the log
// is read when follow is called.
type follower struct {
	context *Context
	ctx     context.Context
	cancel  context.CancelFunc
	deltas  *stream.Subscription // nil without deltas
	// wake ends the pause before a context that is not there is looked for again.
	wake  chan struct{}
	leave func()
	delay time.Duration // before the log is first read
}

func (c *Context) follower(ctx context.Context, deltas bool) (*follower, error) {
	f := &follower{context: c}
	f.wake, f.leave = c.client.wakes.join(c.name)
	if err := f.subscribe(ctx, deltas); err != nil {
		f.leave()
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
		// An error means that NATS has just gone away, or fallen silent.
		flush, cancel := context.WithTimeout(ctx, natsTimeout)
		_ = conn.Flush(flush)
		cancel()
	}
	return nil
}

func (f *follower) close() {
	f.cancel()
	f.leave()
	if f.deltas != nil {
		f.deltas.Close()
	}
}

func (f *follower) follow(from string) iter.Seq2[event.Event, error] {
	log := f.context.client.log.Follow(f.ctx, f.context.name, from, f.wake)
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
		merge(f.context.name, place{last: event.Counter(from)}, recorded, f.deltas.Messages(), f.deltas.Delta, f.wake, yield)
	}
}

// delayed reads a log after a delay, or when the follower is woken.
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

// Entry is an event of a log that is being followed, or the error at its end.
type Entry struct {
	Event event.Event
	Err   error
}

// Entries reads a log, like that of [Context.Follow], in a goroutine of its own,
// for whoever waits for other things too. The channel has room for so many
// entries; it is closed when the log ends, or with ctx, which must bound both.
func Entries(ctx context.Context, log iter.Seq2[event.Event, error], room int) <-chan Entry {
	entries := make(chan Entry, room)
	go func() {
		defer close(entries)
		for e, err := range log {
			select {
			case entries <- Entry{e, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return entries
}

// merge yields the events of the log in order and the deltas in between, which
// are in the messages. A delta that is ahead of the log wakes whoever reads the log.
func merge[M any](
	contextName string, p place, recorded <-chan Entry,
	messages <-chan M, delta func(M) (event.TextDelta, bool),
	wake chan<- struct{}, yield func(event.Event, error) bool,
) {
	var held *event.TextDelta // a delta whose place the log has not come to yet
	for {
		incoming := messages
		if held != nil {
			incoming = nil
		}
		select {
		case next, ok := <-recorded:
			if !ok || !yield(next.Event, next.Err) || next.Err != nil {
				return
			}
			p.see(next.Event)
		case m := <-incoming:
			if d, ok := delta(m); ok {
				held = &d
				if !p.reached(d) {
					signal(wake)
				}
			}
		}
		if held == nil || !p.reached(*held) {
			continue
		}
		d := *held
		held = nil
		if event.RequestNumber(d.RequestID) <= p.ended {
			continue
		}
		e := event.New(d)
		e.ContextName = contextName
		if !yield(e, nil) {
			return
		}
	}
}

// place is how far a log was read.
type place struct {
	last  int // counter of the newest event
	ended int // number of the newest request that ended
}

func (p *place) see(e event.Event) {
	p.last = event.Counter(e.ID)
	if e.Tag().EndsRequest() {
		p.ended = event.RequestNumber(event.RequestOf(e.Body))
	}
}

// reached reports whether the log has come to what the delta answers.
func (p *place) reached(d event.TextDelta) bool {
	return event.Counter(d.ThroughEventID) <= p.last
}
