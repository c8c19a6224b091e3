package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/seed-9ed7edd4/chronicle/bench/rig"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
)

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

// The pauses between faults and the duration of outages are random within these bounds.
const (
	minWorkerPause, maxWorkerPause = 2 * time.Second, 8 * time.Second
	minOutagePause, maxOutagePause = 5 * time.Second, 15 * time.Second
	minDown, maxDown               = 1 * time.Second, 6 * time.Second
	// drainTimeout is shorter than some answers.
	drainTimeout = 2 * time.Second
	// restartTimeout bounds the start of a worker during an outage.
	restartTimeout = 2 * time.Minute
)

func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)))
}

func (s *soak) startWorkers(ctx context.Context) error {
	for i := range s.options.workers {
		w, err := s.startWorker(ctx, i)
		if err != nil {
			s.stopWorkers()
			return err
		}
		s.workers = append(s.workers, w)
	}
	return nil
}

// startWorker starts worker i. Those with an odd number serve the agents.
func (s *soak) startWorker(ctx context.Context, i int) (*rig.Worker, error) {
	options := rig.WorkerOptions{ContinueAsNewAfter: s.options.continueAfter, DrainTimeout: drainTimeout}
	if i%2 == 1 {
		options.Command, options.TaskQueue = s.command, agentQueue
		options.Args = []string{"-executions", s.executions.URL, "-budget", strconv.Itoa(dailyBudget)}
	}
	return s.rig.StartWorker(ctx, options)
}

const agentQueue = "agents"

func (s *soak) stopWorkers() {
	for _, w := range s.workers {
		_ = w.Stop()
	}
}

func (s *soak) disruptWorkers(ctx context.Context) error {
	names := slices.DeleteFunc([]faultName{faultKill, faultStop}, s.options.excludes)
	r := s.random(1)
	for n := 0; len(names) > 0 && pause.For(ctx, between(r, minWorkerPause, maxWorkerPause)); n++ {
		i := r.IntN(len(s.workers))
		if s.workers[i].HasEnded() {
			return errors.New("a worker exited on its own")
		}
		if names[n%len(names)] == faultKill {
			s.workers[i].Kill()
			s.counts.killed.Add(1)
		} else {
			if err := s.workers[i].Stop(); err != nil {
				return fmt.Errorf("stop a worker: %w", err)
			}
			s.counts.stopped.Add(1)
		}
		// The replacement starts even if ctx is done. During an outage it may take several
		// attempts.
		starting, cancel := context.WithTimeout(context.WithoutCancel(ctx), restartTimeout)
		for {
			w, err := s.startWorker(starting, i)
			if err == nil {
				s.workers[i] = w
				break
			}
			if !pause.For(starting, time.Second) {
				cancel()
				return err
			}
		}
		cancel()
	}
	return nil
}

// outages stops Temporal, NATS or the blob store, one at a time.
func (s *soak) outages(ctx context.Context) error {
	names := slices.DeleteFunc([]faultName{faultTemporal, faultNATS, faultBlobs}, s.options.excludes)
	r := s.random(2)
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for n := 0; len(names) > 0 && pause.For(ctx, between(r, minOutagePause, maxOutagePause)); n++ {
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
			err = s.rig.DisconnectBlobs(ctx, down)
			s.counts.blobs.Add(1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
