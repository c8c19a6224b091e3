package gateway

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

const probeTTL = time.Second

// probe checks Temporal at most once per probeTTL. It reports an outage at once; other calls to
// Temporal retry for ten seconds first.
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

// check lets concurrent callers share a probe, which continues when one of them leaves.
func (p *probe) check(ctx context.Context) error {
	call := p.calls.DoChan("", func() (any, error) {
		p.mu.Lock()
		last := p.last
		p.mu.Unlock()
		if last != nil && time.Since(last.at) < probeTTL {
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
