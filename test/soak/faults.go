package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/test/rig"
)

// The pauses between faults and the duration of outages are random within these bounds.
const (
	minWorkerPause, maxWorkerPause = 2 * time.Second, 8 * time.Second
	minOutagePause, maxOutagePause = 5 * time.Second, 15 * time.Second
	minDown, maxDown               = 1 * time.Second, 6 * time.Second
	// restartTimeout bounds the start of a worker during an outage.
	restartTimeout = 2 * time.Minute
	attemptTimeout = 15 * time.Second
)

func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)))
}

// random returns the source of random numbers for a purpose.
func (s *soak) random(purpose uint64) *rand.Rand {
	return rand.New(rand.NewPCG(s.options.seed, purpose))
}

func (s *soak) disruptWorkers(ctx context.Context) error {
	r := s.random(1 << 32)
	for n := 0; pause.For(ctx, between(r, minWorkerPause, maxWorkerPause)); n++ {
		w := &s.workers[r.IntN(len(s.workers))]
		select {
		case <-(*w).Done():
			return errors.New("a worker exited on its own")
		default:
		}
		if n%2 == 0 {
			(*w).Kill()
			s.counts.add("worker killed", 1)
		} else {
			if err := (*w).Stop(); err != nil {
				return fmt.Errorf("stop a worker: %w", err)
			}
			s.counts.add("worker stopped", 1)
		}
		// Even if ctx is done. During an outage, it may take several attempts.
		starting, cancel := context.WithTimeout(context.WithoutCancel(ctx), restartTimeout)
		err := retry(starting, restartTimeout, func(ctx context.Context) (err error) {
			*w, err = s.startWorker(ctx)
			return err
		})
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

// retry calls try until it succeeds or ctx is done. The timeout is that of an attempt.
func retry(ctx context.Context, timeout time.Duration, try func(context.Context) error) error {
	for {
		attempt, cancel := context.WithTimeout(ctx, timeout)
		err := try(attempt)
		cancel()
		if err == nil || !pause.For(ctx, 200*time.Millisecond) {
			return err
		}
	}
}

// outages stops Temporal, NATS or the blob store, one at a time.
func (s *soak) outages(ctx context.Context) error {
	r := s.random(2 << 32)
	for n := r.IntN(3); pause.For(ctx, between(r, minOutagePause, maxOutagePause)); n++ {
		down := between(r, minDown, maxDown)
		var err error
		switch n % 3 {
		case 0:
			err = s.RestartTemporal(ctx, r.IntN(2) == 0, down)
			s.counts.add("temporal outage", 1)
			if errors.Is(err, rig.ErrNoServer) {
				err = nil
			}
		case 1:
			err = s.RestartNATS(ctx, down)
			s.counts.add("nats outage", 1)
		case 2:
			err = s.DisconnectBlobs(ctx, down)
			s.counts.add("blobs outage", 1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
