package gateway

import (
	"context"
	"fmt"
	"net/http"

	"golang.org/x/sync/semaphore"
)

// byteLimit bounds the bytes that requests hold in memory, across all clients.
type byteLimit struct {
	free *semaphore.Weighted
	size int64
	what string // the use of the bytes, for errors
}

func newByteLimit(what string, size int64) *byteLimit {
	return &byteLimit{free: semaphore.NewWeighted(size), size: size, what: what}
}

func (l *byteLimit) full() error {
	return problem(problemBusy, http.StatusServiceUnavailable, "The gateway is busy",
		"the limit of %d bytes for %s is reached; retry later", l.size, l.what)
}

type share struct {
	of   *byteLimit
	held int64
}

func (s *share) grow(bytes int64) error {
	if !s.of.free.TryAcquire(bytes) {
		return s.of.full()
	}
	s.held += bytes
	return nil
}

func (s *share) await(ctx context.Context, bytes int64) error {
	if err := s.of.free.Acquire(ctx, min(bytes, s.of.size)); err != nil {
		return fmt.Errorf("%w: %w", s.of.full(), err)
	}
	s.held += min(bytes, s.of.size)
	return nil
}

func (s *share) shrink(bytes int64) {
	if more := s.held - bytes; more > 0 {
		s.of.free.Release(more)
		s.held -= more
	}
}

func (s *share) release() { s.shrink(0) }
