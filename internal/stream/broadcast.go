package stream

import (
	"encoding/json"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Attempt identifies an attempt of a request.
type Attempt struct {
	ContextName string
	RequestID   string
	// Number counts the attempts of the request from 1.
	Number int
	// After is the newest event when the attempt was scheduled: that it was started. Followers show the deltas
	// after it. "": unknown.
	After string
}

// Broadcast publishes the deltas of one attempt. Its methods never block on subscribers.
type Broadcast struct {
	conn    *Conn
	attempt Attempt
	onStop  func(Stop)

	mu              sync.Mutex
	subs            []*nats.Subscription // empty before they exist, and without NATS
	closed          bool
	through         string
	next            int
	text, reasoning strings.Builder // so far
}

// Broadcast starts an attempt. It calls onStop on another goroutine for each stop message to it. A second or later
// attempt starts with a Reset, so that the earlier text disappears at once.
func (c *Conn) Broadcast(attempt Attempt, onStop func(Stop)) *Broadcast {
	b := &Broadcast{conn: c, attempt: attempt, onStop: onStop}
	if c == nil {
		return b
	}
	c.inBackgroundIfDown(b.subscribe)
	c.Notice(attempt.ContextName)
	if attempt.Number > 1 {
		b.send("", "", true)
	}
	return b
}

func (b *Broadcast) subscribe() {
	// After an error, which means a closed connection, a stop arrives only through Temporal.
	stops, err := b.conn.nats.Subscribe(b.conn.stopSubject(b.attempt.ContextName), b.stop)
	if err != nil {
		return
	}
	asks, err := b.conn.nats.Subscribe(b.conn.askSubject(b.attempt.ContextName), b.answer)
	if err != nil {
		return
	}
	b.mu.Lock()
	b.subs = []*nats.Subscription{stops, asks}
	closed := b.closed
	b.mu.Unlock()
	if closed {
		b.unsubscribe()
	}
}

func (b *Broadcast) unsubscribe() {
	for _, sub := range b.subs {
		_ = sub.Unsubscribe()
	}
}

// SetThrough sets the newest event that the provider received, for all later deltas.
func (b *Broadcast) SetThrough(throughEventID string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.through = throughEventID
}

// Publish publishes the next piece of the answer's text.
func (b *Broadcast) Publish(text string) { b.send(text, "", false) }

// PublishReasoning publishes the next piece of the model's reasoning.
func (b *Broadcast) PublishReasoning(text string) { b.send("", text, false) }

func (b *Broadcast) send(text, reasoning string, reset bool) {
	if b.conn == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text.WriteString(text)
	b.reasoning.WriteString(reasoning)
	index := b.next
	b.next++
	if !b.conn.Connected() {
		return // subscribers request the text when NATS is back, or read the log
	}
	data, err := encodeDelta(b.delta(index, text, reasoning, reset))
	if err != nil {
		return
	}
	// An error means that the connection has just been lost.
	_ = b.conn.nats.Publish(b.conn.deltaSubject(b.attempt.ContextName), data)
}

func (b *Broadcast) delta(index int, text, reasoning string, reset bool) Delta {
	d := Delta{TextDelta: event.TextDelta{
		RequestID: b.attempt.RequestID, Attempt: b.attempt.Number,
		Index: index, Delta: text, Reset: reset, ThroughEventID: b.through,
	}, Reasoning: reasoning}
	if event.Counter(b.attempt.After) > event.Counter(b.through) {
		d.After = b.attempt.After
	}
	return d
}

func (b *Broadcast) stop(msg *nats.Msg) {
	var stop Stop
	// Only the broadcast of this attempt responds: that of an earlier one may still be open.
	isMine := json.Unmarshal(msg.Data, &stop) == nil && stop.RequestID == b.attempt.RequestID && stop.Attempt == b.attempt.Number
	if isMine && hasInbox(msg) {
		_ = msg.Respond([]byte(`{}`))
		b.onStop(stop)
	}
}

// answer responds with the text so far.
func (b *Broadcast) answer(msg *nats.Msg) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == 0 || !hasInbox(msg) {
		return
	}
	data, err := encodeDelta(b.delta(b.next-1, b.text.String(), b.reasoning.String(), true))
	if err != nil {
		return
	}
	_ = msg.Respond(data) // an error means that NATS refuses a message of the size, or that the connection has just been lost
}

// hasInbox reports whether responses go to an inbox. Viewers must not make a worker publish on subjects on which
// only workers may publish.
func hasInbox(msg *nats.Msg) bool { return strings.HasPrefix(msg.Reply, nats.InboxPrefix) }

// Close ends the broadcast. Stop messages no longer reach it.
func (b *Broadcast) Close() {
	b.mu.Lock()
	hasSubscribed := b.subs != nil
	b.closed = true
	b.mu.Unlock()
	if hasSubscribed {
		b.conn.inBackgroundIfDown(b.unsubscribe)
	}
	b.conn.Notice(b.attempt.ContextName)
}
