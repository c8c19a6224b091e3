package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/seed-9ed7edd4/chronicle/bench/rig"
	"github.com/seed-9ed7edd4/chronicle/bench/soak/agent"
	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

func main() {
	rig.Main()
	if len(os.Args) > 1 && os.Args[1] == agent.Command {
		if err := agent.Run(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "agent:", err)
			os.Exit(exit.Failure)
		}
		return
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(exit.OK)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(exit.Usage)
	}
	if err := run(ctx, o); err != nil {
		fmt.Fprintf(os.Stderr, "soak: -seed %d: %v\n", o.seed, err)
		os.Exit(exit.Failure)
	}
}

type options struct {
	duration          time.Duration
	contexts, workers int
	faults            float64
	seed              uint64
	continueAfter     int
	without           []faultName
	kinds             []kind
	logs              string
}

func (o options) excludes(name faultName) bool { return slices.Contains(o.without, name) }

func (o options) String() string {
	entries := "the default number of"
	if o.continueAfter != 0 {
		entries = strconv.Itoa(o.continueAfter)
	}
	return fmt.Sprintf("%d contexts, %d workers, %v under faults; the model fails %.0f %% of its requests; runs continue as new after %s entries; -seed %d",
		o.contexts, o.workers, o.duration, 100*o.faults, entries, o.seed)
}

func parse(args []string) (options, error) {
	o := options{}
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.DurationVar(&o.duration, "for", 10*time.Minute, "duration of the faults, more than 0")
	flags.IntVar(&o.contexts, "contexts", 100, "number of contexts, 1 to 10000")
	flags.IntVar(&o.workers, "workers", 4, "number of workers, 2 to 100; every second one serves the contexts with tools")
	flags.Float64Var(&o.faults, "faults", 0.1, "fraction of requests that the model fails, 0 to 1")
	flags.Uint64Var(&o.seed, "seed", 0, "random seed, to repeat a run approximately; 0: a new one")
	flags.IntVar(&o.continueAfter, "continue-as-new-after", 150, fmt.Sprintf("history events after which runs continue as new, at least %d; 0: the default of workers", contexts.MinContinueAfter))
	without := flags.String("without", "", "kinds of faults to exclude, separated by commas: "+names(faultNames))
	kindList := flags.String("kinds", "", "kinds of contexts to use, separated by commas; empty: all of "+kindNames())
	flags.StringVar(&o.logs, "logs", "", "directory for the logs of workers and the histories of contexts with problems; created if it is missing; empty: none are kept")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	for _, name := range strings.FieldsFunc(*without, func(r rune) bool { return r == ',' }) {
		o.without = append(o.without, faultName(name))
	}
	outOfRange := func(name string, value any, allowed string) error {
		return fmt.Errorf("-%s %v: out of range (%s)", name, value, allowed)
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.duration <= 0:
		return o, outOfRange("for", o.duration, "more than 0")
	case o.contexts < 1 || o.contexts > 10_000:
		return o, outOfRange("contexts", o.contexts, "1 to 10000")
	case o.workers < 2 || o.workers > 100:
		return o, outOfRange("workers", o.workers, "2 to 100")
	case !(o.faults >= 0 && o.faults <= 1):
		return o, outOfRange("faults", o.faults, "0 to 1")
	case o.continueAfter != 0 && o.continueAfter < contexts.MinContinueAfter:
		return o, outOfRange("continue-as-new-after", o.continueAfter, fmt.Sprintf("0, or at least %d", contexts.MinContinueAfter))
	}
	for _, name := range o.without {
		if !slices.Contains(faultNames, name) {
			return o, fmt.Errorf("-without %s: unknown kind of fault (%s)", name, names(faultNames))
		}
	}
	var err error
	if o.kinds, err = kindsOf(*kindList); err != nil {
		return o, err
	}
	if o.seed == 0 {
		o.seed = uint64(rand.Uint32())
	}
	return o, nil
}

func names(all []faultName) string {
	var texts []string
	for _, name := range all {
		texts = append(texts, string(name))
	}
	return strings.Join(texts, ", ")
}

const (
	// idleTimeout bounds the wait for idle contexts after the last fault.
	idleTimeout = 2 * time.Minute
	// allFaultsAfter is the duration within which every kind of fault occurs.
	allFaultsAfter = 2 * time.Minute
	reportEvery    = 30 * time.Second
)

func run(ctx context.Context, o options) error {
	began := time.Now()
	r, err := rig.Start(ctx, rig.Options{Faults: o.faults, Seed: o.seed, Minimal: true, Checked: true, LogDir: o.logs})
	if err != nil {
		return err
	}
	defer r.Stop()
	if !r.OwnsTemporal() {
		o.without = append(o.without, faultTemporal)
	}
	fmt.Printf("%s: %s\n", began.UTC().Format(time.DateOnly), o)
	if len(o.without) > 0 {
		fmt.Println("without", names(o.without))
	}
	s := &soak{rig: r, options: o, began: time.Now()}
	if err := s.prepareAgents(ctx); err != nil {
		return err
	}
	defer s.executions.Close()
	defer s.agents.Shutdown()
	if err := s.startWorkers(ctx); err != nil {
		return err
	}
	defer s.stopWorkers()

	faults, cancel := context.WithTimeout(ctx, o.duration)
	defer cancel()
	rest, cancelRest := context.WithTimeoutCause(ctx, o.duration+idleTimeout, fmt.Errorf("not idle %v after the last fault", idleTimeout))
	defer cancelRest()
	var wg sync.WaitGroup
	problems := make([]error, o.contexts+2)
	wg.Go(func() { problems[o.contexts] = s.disruptWorkers(faults) })
	wg.Go(func() { problems[o.contexts+1] = s.outages(faults) })
	wg.Go(func() { s.report(faults) })
	for i := range o.contexts {
		wg.Go(func() { problems[i] = s.runUser(faults, rest, i) })
	}
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	fmt.Println(s.counts.line(time.Since(s.began)))
	for _, o := range r.Observations.All(rig.Invalid) {
		problems = append(problems, fmt.Errorf("the model received an invalid request for %s: %s", o.Key, o.Value))
	}
	problems = append(problems, s.checkDailyBudget())
	if err := errors.Join(problems...); err != nil {
		return err
	}
	if s.counts.answered.Load() == 0 {
		return errors.New("no message was answered")
	}
	if missing := s.counts.missing(o); missing != "" && o.duration >= allFaultsAfter && len(o.kinds) == len(kinds) {
		return fmt.Errorf("these never occurred: %s", missing)
	}
	fmt.Println(s.counts.summary(o.contexts))
	return nil
}

type soak struct {
	rig     *rig.Rig
	options options
	began   time.Time
	counts  counts
	// agents is the client of the contexts for which isAgent is true. The field command starts their workers.
	agents     *client.Client
	executions *agent.Executions
	command    []string
	spent      atomic.Int64 // tokens of the requests with the label
	// Only disruptWorkers changes workers between start and stop.
	workers []*rig.Worker
}

// dailyBudget is used up in a long run. One context cannot use it up: its own budget is lower.
const dailyBudget = 100_000

func (s *soak) prepareAgents(ctx context.Context) error {
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	s.command = []string{executable, agent.Command}
	if s.agents, err = s.rig.Dial(ctx, agentQueue); err != nil {
		return err
	}
	s.executions, err = agent.Record()
	return err
}

func (s *soak) checkDailyBudget() error {
	if spent := s.spent.Load(); spent > dailyBudget && s.began.UTC().Day() == time.Now().UTC().Day() {
		return fmt.Errorf("requests with the label %s used %d tokens, more than the budget of %d", agent.Label, spent, dailyBudget)
	}
	return nil
}

// random returns the source of random numbers for a purpose. Each user has its own source.
func (s *soak) random(purpose uint64) *rand.Rand {
	return rand.New(rand.NewPCG(s.options.seed, 1<<32+purpose))
}

func (s *soak) report(ctx context.Context) {
	for pause.For(ctx, reportEvery) {
		fmt.Println(s.counts.line(time.Since(s.began)))
	}
}
