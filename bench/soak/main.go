package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/seed-9ed7edd4/chronicle/bench/rig"
)

func main() {
	rig.Main()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	o := options{}
	flag.DurationVar(&o.duration, "for", 10*time.Minute, "how long to torment")
	flag.IntVar(&o.contexts, "contexts", 100, "how many contexts")
	flag.IntVar(&o.workers, "workers", 3, "how many workers, at least 1")
	flag.Float64Var(&o.faults, "faults", 0.1, "share of the requests that the model fails, 0 to 1")
	flag.Parse()
	if flag.NArg() > 0 || o.duration <= 0 || o.contexts < 1 || o.workers < 1 || o.faults < 0 || o.faults > 1 {
		fmt.Fprintln(os.Stderr, "soak: want flags with values that can be meant; see -help")
		os.Exit(2)
	}
	if err := soak(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

type options struct {
	duration          time.Duration
	contexts, workers int
	faults            float64
}

// calmWithin is how long the contexts may take to come to rest once nobody
// torments them: a worker that died is noticed after ten seconds, and what it
// was doing may be retried.
const calmWithin = 2 * time.Minute

func soak(ctx context.Context, o options) error {
	began := time.Now()
	fmt.Printf("%s: %d contexts, %d workers, %v; the model fails %.0f %% of its requests\n",
		began.UTC().Format(time.DateOnly), o.contexts, o.workers, o.duration, 100*o.faults)
	r, err := rig.Start(ctx, rig.Options{Faults: o.faults})
	if err != nil {
		return err
	}
	defer r.Stop()
	s := &soaking{rig: r, options: o, began: began}
	if err := s.startWorkers(ctx); err != nil {
		return err
	}
	defer s.stopWorkers()

	torment, cancel := context.WithTimeout(ctx, o.duration)
	defer cancel()
	rest, cancelRest := context.WithTimeoutCause(ctx, o.duration+calmWithin, errors.New("the contexts did not come to rest"))
	defer cancelRest()
	var wg sync.WaitGroup
	workersFailed := make(chan error, 1)
	wg.Go(func() { workersFailed <- s.tormentWorkers(torment) })
	wg.Go(func() { s.tell(torment) })
	problems := make([]error, o.contexts)
	for i := range o.contexts {
		wg.Go(func() { problems[i] = s.converse(torment, rest, fmt.Sprintf("soak-%03d", i)) })
	}
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	fmt.Println(s.counts.line(time.Since(began)))
	if err := errors.Join(append(problems, <-workersFailed)...); err != nil {
		return err
	}
	if s.counts.answered.Load() == 0 || s.counts.killed.Load() == 0 {
		return errors.New("nothing was put to the test: not a message was answered, or not a worker killed")
	}
	fmt.Printf("ok: nothing lost, nothing doubled in %d events of %d contexts\n", s.counts.events.Load(), o.contexts)
	return nil
}

// soaking is a soak at work.
type soaking struct {
	rig     *rig.Rig
	options options
	began   time.Time
	counts  counts
	// workers change only in tormentWorkers, between start and stop.
	workers []*rig.Worker
}

func (s *soaking) startWorkers(ctx context.Context) error {
	for range s.options.workers {
		w, err := s.rig.StartWorker(ctx, rig.WorkerOptions{})
		if err != nil {
			s.stopWorkers()
			return err
		}
		s.workers = append(s.workers, w)
	}
	return nil
}

func (s *soaking) stopWorkers() {
	for _, w := range s.workers {
		_ = w.Stop()
	}
}

// tormentWorkers ends a worker every few seconds, with SIGKILL and with SIGTERM
// in turn, and starts another in its place. With one worker there is none for a
// while.
func (s *soaking) tormentWorkers(ctx context.Context) error {
	for n := 0; ; n++ {
		timer := time.NewTimer(2*time.Second + rand.N(6*time.Second))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		i := rand.IntN(len(s.workers))
		if n%2 == 0 {
			s.workers[i].Kill()
			s.counts.killed.Add(1)
		} else {
			if err := s.workers[i].Stop(); err != nil {
				return fmt.Errorf("a worker was told to stop: %w", err)
			}
			s.counts.stopped.Add(1)
		}
		var err error
		// Not with ctx: what was ended is started again in any case.
		if s.workers[i], err = s.rig.StartWorker(context.WithoutCancel(ctx), rig.WorkerOptions{}); err != nil {
			return err
		}
	}
}

// tell says every ten seconds how it goes.
func (s *soaking) tell(ctx context.Context) {
	ticker := time.NewTicker(10 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			fmt.Println(s.counts.line(time.Since(s.began)))
		}
	}
}
