package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-9ed7edd4/chronicle/bench/rig"
)

// faultName is a kind of fault, as -without takes it.
type faultName string

const (
	faultKill      faultName = "kill"
	faultStop      faultName = "stop"
	faultTemporal  faultName = "temporal"
	faultNATS      faultName = "nats"
	faultBlobs     faultName = "blobs"
	faultClose     faultName = "close"
	faultReset     faultName = "reset"
	faultTerminate faultName = "terminate"
	faultLarge     faultName = "large"
)

var faultNames = []faultName{
	faultKill, faultStop, faultTemporal, faultNATS, faultBlobs, faultClose, faultReset, faultTerminate, faultLarge,
}

// The times between faults, and how long an outage lasts, are random between a
// least and a most.
const (
	minWorkerPause, maxWorkerPause = 2 * time.Second, 8 * time.Second
	minOutagePause, maxOutagePause = 5 * time.Second, 15 * time.Second
	minDown, maxDown               = 1 * time.Second, 6 * time.Second
	// drainTimeout is shorter than some of the answers.
	drainTimeout = 2 * time.Second
	// restartWithin is how long a worker may take to start when what it needs has an
	// outage.
	restartWithin = 2 * time.Minute
)

func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)))
}

func (s *soak) startWorkers(ctx context.Context) error {
	for range s.options.workers {
		w, err := s.startWorker(ctx)
		if err != nil {
			s.stopWorkers()
			return err
		}
		s.workers = append(s.workers, w)
	}
	return nil
}

func (s *soak) startWorker(ctx context.Context) (*rig.Worker, error) {
	return s.rig.StartWorker(ctx, rig.WorkerOptions{ContinueAsNewAfter: s.options.continueAfter, DrainTimeout: drainTimeout})
}

func (s *soak) stopWorkers() {
	for _, w := range s.workers {
		_ = w.Stop()
	}
}

// endWorkers ends a worker every few seconds, with SIGKILL and with SIGTERM in
// turn, and starts another in its place. With one worker there is none for a while.
func (s *soak) endWorkers(ctx context.Context) error {
	names := slices.DeleteFunc([]faultName{faultKill, faultStop}, s.options.leavesOut)
	r := s.random(1)
	for n := 0; len(names) > 0 && wait(ctx, between(r, minWorkerPause, maxWorkerPause)); n++ {
		i := r.IntN(len(s.workers))
		if s.workers[i].HasEnded() {
			return errors.New("a worker ended by itself")
		}
		if names[n%len(names)] == faultKill {
			s.workers[i].Kill()
			s.counts.killed.Add(1)
		} else {
			if err := s.workers[i].Stop(); err != nil {
				return fmt.Errorf("a worker was told to stop: %w", err)
			}
			s.counts.stopped.Add(1)
		}
		// Not with ctx: what was ended is started again in any case. It may have to be
		// started more than once in an outage.
		starting, cancel := context.WithTimeout(context.WithoutCancel(ctx), restartWithin)
		for {
			w, err := s.startWorker(starting)
			if err == nil {
				s.workers[i] = w
				break
			}
			if !wait(starting, time.Second) {
				cancel()
				return err
			}
		}
		cancel()
	}
	return nil
}

// outages takes Temporal, NATS and the blob store away for some seconds, one after
// the other.
func (s *soak) outages(ctx context.Context) error {
	names := slices.DeleteFunc([]faultName{faultTemporal, faultNATS, faultBlobs}, s.options.leavesOut)
	r := s.random(2)
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for n := 0; len(names) > 0 && wait(ctx, between(r, minOutagePause, maxOutagePause)); n++ {
		down := between(r, minDown, maxDown)
		var err error
		switch names[n%len(names)] {
		case faultTemporal:
			err = s.rig.RestartTemporal(ctx, r.IntN(2) == 0, down)
			s.counts.temporal.Add(1)
		case faultNATS:
			err = s.rig.RestartNATS(ctx, down)
			s.counts.nats.Add(1)
		case faultBlobs:
			err = s.rig.TakeBlobsAway(ctx, down)
			s.counts.blobs.Add(1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
