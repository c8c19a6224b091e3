package gateway

import (
	"context"
	"fmt"
	"net/http"

	"golang.org/x/sync/semaphore"
)

// budget bounds the bytes that requests hold in memory, across all clients.
type budget struct {
	free *semaphore.Weighted
	size int64
	what string // the bytes are of
}

func newBudget(what string, size int64) *budget {
	return &budget{free: semaphore.NewWeighted(size), size: size, what: what}
}

// full is the answer to a request that would exceed the budget.
func (b *budget) full() error {
	return problem("busy", http.StatusServiceUnavailable, "The gateway is busy",
		"%s of %d bytes in all are in flight, come back later", b.what, b.size)
}

// share is what one request holds of a budget.
type share struct {
	of   *budget
	held int64
}

// grow takes more of the budget; the error is that it is exhausted.
func (s *share) grow(bytes int64) error {
	if !s.of.free.TryAcquire(bytes) {
		return s.of.full()
	}
	s.held += bytes
	return nil
}

// await takes more of the budget as soon as others have given it back.
func (s *share) await(ctx context.Context, bytes int64) error {
	if err := s.of.free.Acquire(ctx, min(bytes, s.of.size)); err != nil {
		return fmt.Errorf("%w: %w", s.of.full(), err)
	}
	s.held += min(bytes, s.of.size)
	return nil
}

// shrink gives back what is more than a number of bytes.
func (s *share) shrink(bytes int64) {
	if more := s.held - bytes; more > 0 {
		s.of.free.Release(more)
		s.held -= more
	}
}

func (s *share) release() { s.shrink(0) }
