package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/test/rig"
)

func main() { rig.Run("soak", run) }

type options struct {
	duration                          time.Duration
	contexts, workers, steps, context int
	faults                            float64
	seed                              uint64
	hostile, outages, stock, verbose  bool
	logs                              string
}

// parse returns usage errors.
func parse(args []string) (o options, err error) {
	defer func() {
		if err != nil {
			err = exit.UsageError{Err: err}
		}
	}()
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.DurationVar(&o.duration, "for", 10*time.Minute, "duration of the faults, or of the time in which hostile contexts begin; more than 0")
	flags.IntVar(&o.contexts, "contexts", 100, "contexts at the same time, 1 to 10000")
	flags.IntVar(&o.workers, "workers", 4, "number of workers, 1 to 100")
	flags.Float64Var(&o.faults, "faults", 0.1, "fraction of requests that the model fails, 0 to 1")
	flags.BoolVar(&o.outages, "outages", true, "kill and stop workers, Temporal, NATS and the blob store")
	flags.BoolVar(&o.hostile, "hostile", false, "send hostile input: each context receives some steps, and then another one begins")
	flags.IntVar(&o.steps, "steps", 25, "steps of a hostile context, 1 to 10000")
	flags.IntVar(&o.context, "context", -1, "use only the context with this number; -1: all")
	flags.Uint64Var(&o.seed, "seed", 0, "random seed; repeats the steps of hostile contexts, and the others approximately; 0: a new one")
	flags.BoolVar(&o.stock, "stock", false, "use a Temporal server with its default settings")
	flags.StringVar(&o.logs, "logs", "", "directory for the logs of workers and the gateway, created if it is missing; empty: they are deleted")
	flags.BoolVar(&o.verbose, "v", false, "print each hostile step")
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
		{"steps", o.steps >= 1 && o.steps <= 10_000, "1 to 10000"},
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
	if o.context >= 0 {
		o.contexts = 1
	}
	return o, nil
}

const (
	// allFaultsAfter is the duration within which every kind of fault occurs.
	allFaultsAfter = 2 * time.Minute
	reportEvery    = 30 * time.Second
)

// soak is what all contexts share.
type soak struct {
	*rig.Rig
	options options
	dir     string
	counts  counts
	tools   *tools
	gateway *rig.Process
	// Only disruptWorkers changes workers between start and stop.
	workers []*rig.Process
	nats    *nats.Conn // of hostile input
	http    *http.Client
	note    note
}

func run(ctx context.Context, arguments []string) error {
	o, err := parse(arguments)
	if err != nil {
		return err
	}
	began := time.Now()
	s := &soak{options: o, tools: startTools(), http: &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}}
	defer s.stop()
	if err := s.start(ctx); err != nil {
		return err
	}
	fmt.Printf("%s: bin/soak %s -seed %d\n", began.UTC().Format(time.DateOnly), strings.Join(arguments, " "), o.seed)
	faults, cancel := context.WithTimeout(ctx, o.duration)
	defer cancel()
	watched, stopWatching := context.WithCancelCause(ctx)
	defer stopWatching(nil)
	go s.watch(watched, stopWatching)
	var failed, next atomic.Int64
	report := func(err error) {
		if err != nil && watched.Err() == nil {
			fmt.Println(err)
			failed.Add(1)
		}
	}
	var wg sync.WaitGroup
	if o.outages {
		wg.Go(func() { report(s.disruptWorkers(faults)) })
		wg.Go(func() { report(s.outages(faults)) })
	}
	line := func() { fmt.Printf("%6v  %s\n", time.Since(began).Round(time.Second), &s.counts) }
	wg.Go(func() {
		for pause.For(faults, reportEvery) {
			line()
		}
	})
	for range o.contexts {
		wg.Go(func() {
			for first := true; first || faults.Err() == nil && o.context < 0; first = false {
				n := max(o.context, int(next.Add(1)-1))
				report(s.runUser(watched, faults, n))
			}
		})
	}
	wg.Wait()
	if watched.Err() != nil {
		return context.Cause(watched)
	}
	line()
	for _, invalid := range s.Observations.Of(rig.Invalid) {
		report(fmt.Errorf("the model received an invalid request for %s: %s", invalid.Key, invalid.Value))
	}
	report(s.checkProcesses())
	report(checkLogs(s.logDir()))
	if missing := s.counts.missing(); len(missing) > 0 && !o.hostile && o.outages && o.duration >= allFaultsAfter && o.contexts >= len(kinds) {
		report(fmt.Errorf("these never occurred: %s", strings.Join(missing, ", ")))
	}
	if n := failed.Load(); n > 0 {
		return fmt.Errorf("-seed %d: %d contexts or checks failed", o.seed, n)
	}
	fmt.Printf("ok: no law violated in %d contexts\n", s.counts.get(checked))
	return nil
}

// Secrets of the workers. No log may contain them.
var secrets = []string{rig.APIKey, "soak-token-57d1e0a2c49b8f36"}

const (
	tokenVariable = "SOAK_TOKEN"
	mib           = 1 << 20
	// maxMemory is the limit of the peak of the resident size of the gateway and, without outages, of each worker.
	maxMemory = 1024 * mib
	// memoryLimit makes the garbage collector of a process run more often, before it exceeds maxMemory.
	memoryLimit = "GOMEMLIMIT=512MiB"
	budgets     = "[[budgets]]\nlabel = \"team\"\ntokens_per_day = 100000000\n"
)

func (s *soak) logDir() string { return cmp.Or(s.options.logs, s.dir) }

func (s *soak) start(ctx context.Context) (err error) {
	if s.dir, err = os.MkdirTemp("", "chronicle-soak-"); err != nil {
		return err
	}
	providers, servers := filepath.Join(s.dir, "providers.toml"), filepath.Join(s.dir, "mcp.json")
	if err := errors.Join(os.WriteFile(providers, []byte(budgets), 0o600), os.WriteFile(servers, []byte(s.tools.config()), 0o600)); err != nil {
		return err
	}
	o := s.options
	// Runs continue as new often, and workers drain for less time than some answers take.
	flags := []string{"--continue-as-new-after", "150", "--drain-timeout", "2s", "--providers", providers, "--mcp", servers}
	if o.hostile {
		flags = append(flags, "--cached-contexts", "20")
	}
	s.Rig, err = rig.Start(ctx, rig.Options{
		Stock: o.stock, Faults: o.faults, Seed: o.seed, Checked: true, LogDir: s.logDir(),
		WorkerFlags: flags, Env: []string{tokenVariable + "=" + secrets[1], memoryLimit},
	})
	if err != nil {
		return err
	}
	for range o.workers {
		w, err := s.startWorker(ctx)
		if err != nil {
			return err
		}
		s.workers = append(s.workers, w)
	}
	if s.gateway, err = s.StartGateway(ctx); err != nil {
		return err
	}
	s.nats, err = nats.Connect(s.NATSURL(), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})) // nats prints errors
	return err
}

func (s *soak) startWorker(ctx context.Context) (*rig.Process, error) {
	return s.StartWorker(ctx, "--allow-base-url", s.ModelURL())
}

func (s *soak) stop() {
	if s.nats != nil {
		s.nats.Close()
	}
	for _, p := range append(s.workers, s.gateway) {
		_ = p.Stop()
	}
	if s.Rig != nil {
		s.Rig.Stop()
	}
	s.tools.stop()
	s.http.CloseIdleConnections()
	_ = os.RemoveAll(s.dir)
}

// watch calls fail if the gateway or, without outages, a worker ends or exceeds its memory.
func (s *soak) watch(ctx context.Context, fail context.CancelCauseFunc) {
	for pause.For(ctx, time.Second) {
		if err := s.checkProcesses(); err != nil {
			fail(err)
		}
	}
}

func (s *soak) checkProcesses() error {
	processes := map[*rig.Process]string{s.gateway: "gateway"}
	if !s.options.outages {
		for _, w := range s.workers {
			processes[w] = "worker"
		}
	}
	for p, name := range processes {
		select {
		case <-p.Done():
			return fmt.Errorf("a %s exited", name)
		default:
		}
		if _, peak := p.Memory(); peak > maxMemory {
			return fmt.Errorf("the peak of the resident size of a %s is %d MiB (at most %d)", name, peak/mib, maxMemory/mib)
		}
	}
	return nil
}

// counts counts what happened. It is safe for concurrent use.
type counts struct {
	mu sync.Mutex
	of map[string]int
}

const checked = "checked"

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

func (c *counts) get(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[what]
}

func (c *counts) missing() []string {
	return slices.DeleteFunc(slices.Clone(expected), func(what string) bool { return c.get(what) > 0 })
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
