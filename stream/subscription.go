package stream

import (
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// A subscription buffers this many deltas. A slower reader misses deltas and gets the whole text.
const subscriptionBuffer = 4096

type Message = *nats.Msg

// Subscription receives the deltas of a context for one follower. It belongs to the goroutine
// that reads it, which saves a goroutine switch per delta.
type Subscription struct {
	conn     *Conn
	name     string
	messages chan Message
	fence    fence
	// inbox is the subject of responses to ask, which share the channel and its order with the
	// deltas.
	inbox string
	// asked is the time of the pending ask; zero without one.
	asked time.Time
	subs  []*nats.Subscription
}

// Subscribe subscribes to the answers of a context, starting with the text so far of the
// running one.
func (c *Conn) Subscribe(contextName string) (*Subscription, error) {
	s := &Subscription{conn: c, name: contextName, messages: make(chan Message, subscriptionBuffer)}
	if c == nil {
		return s, nil
	}
	s.inbox = c.nats.NewInbox()
	for _, subject := range []string{s.inbox, c.deltaSubject(contextName)} {
		sub, err := c.nats.ChanSubscribe(subject, s.messages)
		if err != nil {
			s.Close()
			return nil, fmt.Errorf("subscribe to the answers of context %s: %w", contextName, err)
		}
		s.subs = append(s.subs, sub)
	}
	s.ask()
	return s, nil
}

// Messages returns the channel of messages to be passed to Delta in order. It is never closed,
// but receives nothing after Close.
func (s *Subscription) Messages() <-chan Message { return s.messages }

// Delta decodes a message. ok is false if there is nothing to show: the delta is stale, or
// earlier deltas are missing.
func (s *Subscription) Delta(m Message) (d Delta, ok bool) {
	if m.Subject == s.inbox {
		s.asked = time.Time{}
	}
	// A response without a delta means that no worker is answering.
	d, err := decodeDelta(m.Data)
	if err != nil {
		return d, false
	}
	if d.Progress != nil {
		return d, true
	}
	var gap bool
	d.TextDelta, ok, gap = s.fence.pass(d.TextDelta)
	if gap {
		s.ask()
	}
	return d, ok
}

func (s *Subscription) ask() {
	if time.Since(s.asked) < askTimeout || !s.conn.Connected() {
		return
	}
	// An error means that the connection has just been lost.
	if err := s.conn.nats.PublishRequest(s.conn.askSubject(s.name), s.inbox, []byte(`{}`)); err == nil {
		s.asked = time.Now()
	}
}

func (s *Subscription) Close() {
	for _, sub := range s.subs {
		_ = sub.Unsubscribe()
	}
}
