package stream

import (
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// subscriptionBuffer is how many deltas a slow reader may be behind before it
// misses some and is given the whole text instead.
const subscriptionBuffer = 4096

// Message is what a [Subscription] is sent; its Delta reads it.
type Message = *nats.Msg

// Subscription is what one follower of a context hears. It belongs to the
// goroutine that reads it: to hand each delta over from another takes time.
type Subscription struct {
	conn     *Conn
	name     string
	messages chan Message
	fence    fence
	// inbox is the subject of the answers to ask, which stand among the deltas
	// where they belong.
	inbox string
	// asked is when the text so far was asked for; zero when it was answered.
	asked time.Time
	subs  []*nats.Subscription
}

// Subscribe follows the answers of a context, from what was said so far of the
// one that is on its way.
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

// Messages are to be given to Delta, one after the other. The channel is never
// closed, but nothing comes after Close.
func (s *Subscription) Messages() <-chan Message { return s.messages }

// Delta is the delta in a message. ok is false when there is nothing to show:
// deltas in front of it are missing, or nobody needs it any more.
func (s *Subscription) Delta(m Message) (d event.TextDelta, ok bool) {
	if m.Subject == s.inbox {
		s.asked = time.Time{}
	}
	// An answer without a delta says that nobody is answering.
	d, err := decodeDelta(m.Data)
	if err != nil {
		return d, false
	}
	d, ok, gap := s.fence.pass(d)
	if gap {
		s.ask()
	}
	return d, ok
}

// ask asks for the text so far, unless the answer is on its way.
func (s *Subscription) ask() {
	if time.Since(s.asked) < answerWithin || !s.conn.Connected() {
		return
	}
	// An error means that NATS has just gone away.
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
