package client

import (
	"context"
	"iter"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/stream"
)

// Entry is an event of a log, or the error that ends the log.
type Entry struct {
	Event event.Event
	Err   error
}

// Entries reads a log, such as that of [Context.Follow], into a channel of the given capacity,
// which is closed when the log ends or ctx is done. The log must end when ctx is done.
func Entries(ctx context.Context, log iter.Seq2[event.Event, error], capacity int) <-chan Entry {
	entries := make(chan Entry, capacity)
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

// merge adds deltas to the log. A delta is held until the log has the event that it answers and the
// answers of earlier steps. If one of these is missing, merge ends the pause of the log's reader
// between two polls. Unless a delta is held, the deltas that arrived before an event are yielded before
// it, so that a busy reader does not lose the deltas of a short answer.
func merge[M any](
	contextName string, at position, recorded <-chan Entry,
	messages <-chan M, delta func(M) (stream.Delta, bool),
	wake chan<- struct{}, yield func(event.Event, error) bool,
) {
	var held *stream.Delta // waits for its event
	release := func() bool {
		if held == nil || !at.includes(*held) {
			return true
		}
		d := *held
		held = nil
		if at.isOver(d) {
			return true
		}
		for body := range d.Bodies() {
			e := event.New(body)
			e.ContextName = contextName
			if !yield(e, nil) {
				return false
			}
		}
		return true
	}
	receive := func(m M) bool {
		if d, ok := delta(m); ok {
			held = &d
			if !at.includes(d) {
				trySend(wake)
			}
		}
		return release()
	}
	for {
		incoming := messages
		if held != nil {
			incoming = nil
		}
		select {
		case next, ok := <-recorded:
			if !ok {
				return
			}
			for n := len(messages); n > 0 && held == nil; n-- {
				if !receive(<-messages) {
					return
				}
			}
			if !yield(next.Event, next.Err) || next.Err != nil {
				return
			}
			at.advance(next.Event)
			if !release() {
				return
			}
		case m := <-incoming:
			if !receive(m) {
				return
			}
		}
	}
}

type position struct {
	last           int     // counter of the newest event
	ended          int     // number of the newest request that ended
	sent, answered attempt // the newest that was sent, and the newest with an answer in the log
}

type attempt struct{ request, number int }

func (p *position) advance(e event.Event) {
	p.last = event.Counter(e.ID)
	request := event.RequestNumber(event.RequestOf(e.Body))
	switch body := e.Body.(type) {
	case event.LLMRequestStarted:
		p.sent = attempt{request, body.Attempt}
	case event.AssistantMessage:
		if request == p.sent.request {
			p.answered = p.sent
		}
	case event.RequestEnd:
		p.ended = request
	}
}

func (p *position) isOver(d stream.Delta) bool {
	if d.Progress != nil {
		return event.RequestNumber(d.Progress.RequestID) <= p.ended
	}
	request := event.RequestNumber(d.RequestID)
	return request <= p.ended || request == p.answered.request && d.Attempt <= p.answered.number
}

func (p *position) includes(d stream.Delta) bool {
	return max(event.Counter(d.ThroughEventID), event.Counter(d.After)) <= p.last
}
