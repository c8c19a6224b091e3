package client

import (
	"cmp"
	"context"
	"iter"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
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

// A source receives deltas, see [stream.Subscription].
type source[M any] interface {
	Messages() <-chan M
	Decode(M) (stream.Delta, bool)
	Pass(stream.Delta) (stream.Delta, bool)
}

// maxHeld bounds the deltas that are ahead of the log. If more arrive, the text so far is requested later.
const (
	maxHeld      = 256
	maxHeldBytes = 2 << 20
)

// merge adds the deltas of the running attempt to the log. Those that are ahead of the log are held until the
// log shows their attempt, the event that they answer and the answers of earlier steps; merge then ends the
// pause of the log's reader between two polls. The deltas that arrived before an event are yielded before it, so
// that a busy reader does not lose the deltas of a short answer.
func merge[M any](
	contextName string, at position, recorded <-chan Entry, deltas source[M], wake chan<- struct{}, yield func(event.Event, error) bool,
) {
	messages := deltas.Messages()
	var held []stream.Delta
	heldBytes := 0
	show := func(d stream.Delta) bool {
		d, ok := deltas.Pass(d)
		if !ok {
			return true
		}
		for body := range d.Bodies() {
			e := event.New(body)
			_, e.ContextName = event.CutTenant(contextName)
			if !yield(e, nil) {
				return false
			}
		}
		return true
	}
	receive := func(m M) bool {
		d, ok := deltas.Decode(m)
		if !ok {
			return true
		}
		place := at.compare(d)
		if place == 0 {
			return show(d)
		}
		if size := len(d.Delta) + len(d.Reasoning); place > 0 && len(held) < maxHeld && heldBytes+size <= maxHeldBytes {
			held, heldBytes = append(held, d), heldBytes+size
			trySend(wake)
		}
		return true
	}
	release := func() bool {
		waiting := held
		held, heldBytes = nil, 0
		for _, d := range waiting {
			switch place := at.compare(d); {
			case place > 0:
				held, heldBytes = append(held, d), heldBytes+len(d.Delta)+len(d.Reasoning)
			case place == 0 && !show(d):
				return false
			}
		}
		return true
	}
	for {
		select {
		case next, ok := <-recorded:
			if !ok {
				return
			}
			for n := len(messages); n > 0; n-- {
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
		case m := <-messages:
			if !receive(m) {
				return
			}
		}
	}
}

// position is how far the log has been read.
type position struct {
	last    int // counter of the newest event
	running event.Running
	request int // while running is unknown, the newest that had deltas,
	attempt int // and its newest attempt
}

func newPosition(from string, running event.Running) position {
	if from != "" && running == (event.Running{}) {
		running.Unknown = true
	}
	return position{last: event.Counter(from), running: running}
}

func (p *position) advance(e event.Event) {
	counter := event.Counter(e.ID)
	if counter <= p.last {
		p.running = event.Running{Unknown: true} // after a reset, the log continues there with others
	}
	p.last, p.running = counter, p.running.After(e)
}

// compare returns 0 for a delta to show, less for one that comes too late, and more for one that is ahead of the
// log.
func (p *position) compare(d stream.Delta) int {
	if d.Progress != nil {
		request, _ := p.running.Attempt()
		if p.running.Unknown {
			return 0
		}
		return cmp.Compare(event.RequestNumber(d.Progress.RequestID), request)
	}
	if max(event.Counter(d.ThroughEventID), event.Counter(d.After)) > p.last {
		return 1
	}
	if !p.running.Unknown {
		return p.running.Compare(d.RequestID, d.Attempt)
	}
	request := event.RequestNumber(d.RequestID)
	if order := cmp.Or(cmp.Compare(request, p.request), cmp.Compare(d.Attempt, p.attempt)); order < 0 {
		return order
	}
	p.request, p.attempt = request, d.Attempt
	return 0
}
