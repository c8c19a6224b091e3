package stream

import (
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

const subscriptionBuffer = 4096 // deltas; a slower reader misses some and gets the whole text

// Message is a message for [Subscription.Delta].
type Message = *nats.Msg

// Subscription receives the deltas of a context for one follower. The goroutine that reads messages also
// decodes them, which saves a goroutine switch per delta. It is not safe for concurrent use.
type Subscription struct {
	conn     *Conn
	name     string
	messages chan Message
	fence    fence
	inbox    string    // subject of responses to ask, in order with the deltas
	asked    time.Time // time of the pending ask; zero: none
	response parts
	subs     []*nats.Subscription
}

// Subscribe subscribes to the answers of a context, starting with the text so far of the running answer.
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

// Messages returns the channel of messages for Delta. It is never closed, but silent after Close.
func (s *Subscription) Messages() <-chan Message { return s.messages }

// Delta decodes a message; pass all messages in order. If ok is false, there is nothing to show: the
// delta is stale or incomplete, or earlier deltas are missing.
func (s *Subscription) Delta(m Message) (d Delta, ok bool) {
	data := m.Data
	if m.Subject == s.inbox {
		var isComplete bool
		if data, isComplete = s.response.add(m); !isComplete {
			return d, false
		}
		s.asked = time.Time{}
	}
	d, err := decodeDelta(data) // fails for the empty response of NATS if no worker is answering
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

// Close ends the subscription.
func (s *Subscription) Close() {
	for _, sub := range s.subs {
		_ = sub.Unsubscribe()
	}
}
