package gateway

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// probeEvery is how long an outcome of a probe is valid.
const probeEvery = time.Second

// probe asks Temporal whether it serves, at most once per probeEvery however many ask.
// An outage is reported at once, while another request would be retried for ten seconds.
type probe struct {
	ping  func(ctx context.Context) error
	calls singleflight.Group

	mu   sync.Mutex
	last *outcome
}

type outcome struct {
	at  time.Time
	err error
}

// check returns the newest outcome, or waits for another. That one is for all who
// wait, and does not end with any of them.
func (p *probe) check(ctx context.Context) error {
	call := p.calls.DoChan("", func() (any, error) {
		p.mu.Lock()
		last := p.last
		p.mu.Unlock()
		if last != nil && time.Since(last.at) < probeEvery {
			return nil, last.err
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pingTimeout)
		defer cancel()
		next := &outcome{at: time.Now()}
		next.err = p.ping(ctx)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.last = next
		return nil, next.err
	})
	select {
	case done := <-call:
		return done.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}
