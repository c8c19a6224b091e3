package stream

import (
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/seed-9ed7edd4/chronicle/event"
)

const subscriptionBuffer = 4096 // deltas; a slower reader misses some and gets the whole text

// Message is a message for [Subscription.Decode].
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

// Messages returns the channel of messages for Decode. It is never closed, but silent after Close.
func (s *Subscription) Messages() <-chan Message { return s.messages }

// Decode decodes a message; pass all messages in order. If ok is false, it is no delta of the context.
func (s *Subscription) Decode(m Message) (d Delta, ok bool) {
	if m.Subject == s.inbox {
		s.asked = time.Time{}
	}
	d, err := decodeDelta(m.Data) // fails for the empty response of NATS if no worker is answering
	if err != nil {
		return d, false
	}
	requestID := d.RequestID
	if d.Progress != nil {
		requestID = d.Progress.RequestID
	}
	return d, requestID == event.FormatRequestID(s.name, event.RequestNumber(requestID))
}

// Pass reports whether to show a delta, which may become a Reset. Anyone who may publish can send any delta, so
// pass those of the running attempt only, as the log shows it ([event.Running]). If ok is false, the delta is
// stale, earlier ones are missing, or the text is longer than an answer can be.
func (s *Subscription) Pass(d Delta) (out Delta, ok bool) {
	if d.Progress != nil {
		return d, len(d.Progress.Text) <= event.MaxProgressBytes
	}
	d, ok, gap := s.fence.pass(d)
	if gap {
		s.ask()
	}
	return d, ok
}

const askInterval = 500 * time.Millisecond

func (s *Subscription) ask() {
	if time.Since(s.asked) < askInterval || !s.conn.Connected() {
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
