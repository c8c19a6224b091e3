package stream

import (
	"encoding/json"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Attempt says which attempt of which request a broadcast is of.
type Attempt struct {
	ContextName string
	RequestID   string
	// Number counts the attempts of the request from 1.
	Number int
}

// Broadcast is one attempt at an answer, as it is heard by whoever follows the
// context. Its methods do not wait for anyone.
type Broadcast struct {
	conn    *Conn
	attempt Attempt
	onStop  func(Stop)

	mu      sync.Mutex
	sub     *nats.Subscription // nil before it is made, and without NATS
	closed  bool
	through string
	next    int
	text    strings.Builder
}

// Broadcast begins an attempt. onStop is called, from another goroutine, each
// time someone asks to stop the attempt's request.
//
// An attempt that is not the first begins with a Reset, so that what an earlier
// one said disappears at once.
func (c *Conn) Broadcast(attempt Attempt, onStop func(Stop)) *Broadcast {
	b := &Broadcast{conn: c, attempt: attempt, onStop: onStop}
	if c == nil {
		return b
	}
	c.unhurried(b.subscribe)
	if attempt.Number > 1 {
		b.publish("", true)
	}
	return b
}

// subscribe makes it possible to ask.
func (b *Broadcast) subscribe() {
	// An error means a closed connection: then nobody can ask, and the hints
	// take the way through Temporal.
	sub, err := b.conn.nats.Subscribe(b.conn.askSubject(b.attempt.ContextName), b.answer)
	if err != nil {
		return
	}
	b.mu.Lock()
	b.sub = sub
	closed := b.closed
	b.mu.Unlock()
	if closed {
		_ = sub.Unsubscribe()
	}
}

// Answering says which event is the newest that the provider was shown. It goes
// with all that is said from then on.
func (b *Broadcast) Answering(throughEventID string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.through = throughEventID
}

// Say adds a piece to the answer.
func (b *Broadcast) Say(text string) { b.publish(text, false) }

func (b *Broadcast) publish(text string, reset bool) {
	if b.conn == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text.WriteString(text)
	index := b.next
	b.next++
	if !b.conn.Connected() {
		// Whoever follows asks for the text when NATS is back, or reads it from
		// the log.
		return
	}
	data, err := encodeDelta(b.delta(index, text, reset))
	if err != nil {
		return
	}
	// An error means that NATS has just gone away.
	_ = b.conn.nats.Publish(b.conn.deltaSubject(b.attempt.ContextName), data)
}

func (b *Broadcast) delta(index int, text string, reset bool) event.TextDelta {
	return event.TextDelta{
		RequestID: b.attempt.RequestID, Attempt: b.attempt.Number,
		Index: index, Delta: text, Reset: reset, ThroughEventID: b.through,
	}
}

// answer replies to an ask.
func (b *Broadcast) answer(msg *nats.Msg) {
	var question ask
	if json.Unmarshal(msg.Data, &question) != nil {
		return
	}
	if stop := question.Stop; stop != nil {
		// Another request's broadcast may be about to end; it does not answer
		// for this one.
		if stop.RequestID == b.attempt.RequestID {
			_ = msg.Respond([]byte(`{}`))
			b.onStop(*stop)
		}
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == 0 {
		return
	}
	data, err := encodeDelta(b.delta(b.next-1, b.text.String(), true))
	if err == nil {
		_ = msg.Respond(data)
	}
}

// Close ends the broadcast. Nothing more is said or heard.
func (b *Broadcast) Close() {
	b.mu.Lock()
	sub := b.sub
	b.closed = true
	b.mu.Unlock()
	if sub != nil {
		b.conn.unhurried(func() { _ = sub.Unsubscribe() })
	}
}
