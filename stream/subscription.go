package stream

import (
	"context"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// subscriptionBuffer is how many deltas a slow reader may be behind before it
// misses some and is given the whole text instead.
const subscriptionBuffer = 4096

// Subscription is what one follower of a context hears.
type Subscription struct {
	conn   *Conn
	name   string
	sub    *nats.Subscription
	cancel context.CancelFunc
	done   sync.WaitGroup
	deltas chan event.TextDelta
}

// Subscribe follows the answers of a context, from what was said so far of the
// one that is on its way.
func (c *Conn) Subscribe(contextName string) (*Subscription, error) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Subscription{conn: c, name: contextName, cancel: cancel, deltas: make(chan event.TextDelta)}
	if c == nil {
		return s, nil
	}
	messages := make(chan *nats.Msg, subscriptionBuffer)
	var err error
	if s.sub, err = c.nats.ChanSubscribe(c.deltaSubject(contextName), messages); err != nil {
		cancel()
		return nil, fmt.Errorf("subscribe to the answers of context %s: %w", contextName, err)
	}
	s.done.Go(func() { s.run(ctx, messages) })
	return s, nil
}

// Deltas are the deltas in order. The channel is never closed, but nothing
// comes after Close.
func (s *Subscription) Deltas() <-chan event.TextDelta { return s.deltas }

// Close ends the subscription.
func (s *Subscription) Close() {
	s.cancel()
	if s.sub != nil {
		_ = s.sub.Unsubscribe()
	}
	s.done.Wait()
}

func (s *Subscription) run(ctx context.Context, messages <-chan *nats.Msg) {
	var f fence
	soFar := make(chan event.TextDelta, 1)
	asking := false
	ask := func() {
		if asking {
			return
		}
		asking = true
		s.done.Go(func() {
			// The zero delta stands for an error: nobody is answering any more.
			d, _ := s.conn.soFar(ctx, s.name)
			soFar <- d
		})
	}
	ask()
	for {
		var d event.TextDelta
		select {
		case <-ctx.Done():
			return
		case msg := <-messages:
			var err error
			if d, err = decodeDelta(msg.Data); err != nil {
				continue
			}
		case d = <-soFar:
			asking = false
			if d.RequestID == "" {
				continue
			}
		}
		d, ok, gap := f.pass(d)
		if gap {
			ask()
		}
		if !ok {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case s.deltas <- d:
		}
	}
}
