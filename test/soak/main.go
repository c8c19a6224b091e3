package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/test/rig"
)

func main() { rig.Run("soak", run) }

type options struct {
	duration          time.Duration
	contexts, workers int
	faults            float64
	seed              uint64
	stock             bool
	logs              string
}

// parse returns usage errors.
func parse(args []string) (o options, err error) {
	defer func() {
		if err != nil {
			err = exit.UsageError{Err: err}
		}
	}()
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.DurationVar(&o.duration, "for", 10*time.Minute, "duration of the faults, more than 0")
	flags.IntVar(&o.contexts, "contexts", 100, "number of contexts, 1 to 10000")
	flags.IntVar(&o.workers, "workers", 4, "number of workers, 1 to 100")
	flags.Float64Var(&o.faults, "faults", 0.1, "fraction of requests that the model fails, 0 to 1")
	flags.Uint64Var(&o.seed, "seed", 0, "random seed, to repeat a run approximately; 0: a new one")
	flags.BoolVar(&o.stock, "stock", false, "use a Temporal server with its default settings")
	flags.StringVar(&o.logs, "logs", "", "directory for the logs of workers, created if it is missing; empty: none are kept")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	for _, bound := range []struct {
		flag    string
		ok      bool
		allowed string
	}{
		{"for", o.duration > 0, "more than 0"},
		{"contexts", o.contexts >= 1 && o.contexts <= 10_000, "1 to 10000"},
		{"workers", o.workers >= 1 && o.workers <= 100, "1 to 100"},
		{"faults", o.faults >= 0 && o.faults <= 1, "0 to 1"},
	} {
		if !bound.ok {
			return o, fmt.Errorf("-%s %s: out of range (%s)", bound.flag, flags.Lookup(bound.flag).Value, bound.allowed)
		}
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.seed == 0 {
		o.seed = uint64(rand.Uint32())
	}
	return o, nil
}

const (
	// idleTimeout bounds the wait for idle contexts after the last fault, which may be a restart of Temporal.
	idleTimeout = 3 * time.Minute
	// allFaultsAfter is the duration within which every kind of fault occurs.
	allFaultsAfter = 2 * time.Minute
	reportEvery    = 30 * time.Second
)

type soak struct {
	*rig.Rig
	options options
	counts  counts
	tools   *tools
	// Only disruptWorkers changes workers between start and stop.
	workers []*rig.Process
}

func run(ctx context.Context, arguments []string) error {
	o, err := parse(arguments)
	if err != nil {
		return err
	}
	began := time.Now()
	s := &soak{options: o}
	if s.tools, err = startTools(); err != nil {
		return err
	}
	defer s.tools.stop()
	s.Rig, err = rig.Start(ctx, rig.Options{
		Stock: o.stock, Faults: o.faults, Seed: o.seed, Checked: true, LogDir: o.logs,
		// Runs continue as new often, and workers drain for less time than some answers take.
		WorkerFlags: []string{"--continue-as-new-after", "150", "--drain-timeout", "2s", "--mcp", s.tools.config()},
	})
	if err != nil {
		return err
	}
	defer s.Stop()
	fmt.Printf("%s: %d contexts, %d workers, %v under faults; stock server: %v; the model fails %.0f %% of its requests; -seed %d\n",
		began.UTC().Format(time.DateOnly), o.contexts, o.workers, o.duration, o.stock, 100*o.faults, o.seed)
	defer s.stopWorkers()
	if err := s.startWorkers(ctx); err != nil {
		return err
	}
	faults, cancel := context.WithTimeout(ctx, o.duration)
	defer cancel()
	rest, cancelRest := context.WithTimeoutCause(ctx, o.duration+idleTimeout, fmt.Errorf("not idle %v after the last fault", idleTimeout))
	defer cancelRest()
	var wg sync.WaitGroup
	problems := make([]error, o.contexts+2)
	wg.Go(func() { problems[o.contexts] = s.disruptWorkers(faults) })
	wg.Go(func() { problems[o.contexts+1] = s.outages(faults) })
	wg.Go(func() {
		for pause.For(faults, reportEvery) {
			fmt.Printf("%6v  %s\n", time.Since(began).Round(time.Second), &s.counts)
		}
	})
	for i := range o.contexts {
		wg.Go(func() { problems[i] = s.runUser(faults, rest, i) })
	}
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	fmt.Printf("%6v  %s\n", time.Since(began).Round(time.Second), &s.counts)
	for _, invalid := range s.Observations.Of(rig.Invalid) {
		problems = append(problems, fmt.Errorf("the model received an invalid request for %s: %s", invalid.Key, invalid.Value))
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("-seed %d: %w", o.seed, err)
	}
	if missing := s.counts.missing(); len(missing) > 0 && o.duration >= allFaultsAfter && o.contexts >= len(kinds) {
		return fmt.Errorf("these never occurred: %s", strings.Join(missing, ", "))
	}
	fmt.Printf("ok: no law violated in %d contexts\n", o.contexts)
	return nil
}

// counts counts what happened. It is safe for concurrent use.
type counts struct {
	mu sync.Mutex
	of map[string]int
}

// expected must occur in a long run.
var expected = []string{
	"recorded", "stored", "rejected", "large", "closed", "terminated", "executed", "edited", "expired", "continued as new",
	"worker killed", "worker stopped", "temporal outage", "nats outage", "blobs outage",
	string(event.TagLLMRequestCompleted), string(event.TagLLMRequestInterrupted), string(event.TagLLMRequestFailed), string(event.TagApprovalDecided),
}

func (c *counts) add(what string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]int{}
	}
	c.of[what] += n
}

func (c *counts) missing() (never []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, what := range expected {
		if c.of[what] == 0 {
			never = append(never, what)
		}
	}
	return never
}

func (c *counts) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var texts []string
	for _, what := range slices.Sorted(maps.Keys(c.of)) {
		texts = append(texts, fmt.Sprintf("%d %s", c.of[what], what))
	}
	return strings.Join(texts, ", ")
}
