package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"github.com/seed-9ed7edd4/chronicle/bench/rig"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
)

func main() {
	rig.Main()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		if errors.As(err, new(exit.UsageError)) {
			os.Exit(exit.Usage)
		}
		os.Exit(exit.Failure)
	}
}

type scenario struct {
	name, what  string
	run         func(*runner) error
	environment environment
}

// environment is the server that a scenario needs: none, one with devserver.Tuning, or one with
// default settings.
type environment int

const (
	none environment = iota
	tuned
	untuned
)

var scenarios = []scenario{
	{"fold", "fold long logs", fold, none},
	{"untuned", "one context on a stock server", signalUntuned, untuned},
	{"calls-untuned", "a turn of 100 tool calls on a stock server", toolsUntuned, untuned},
	{"signal", "one context, one turn after the other", signalAlone, tuned},
	{"interrupt", "new input while an answer streams", interrupt, tuned},
	{"streams", "50 answers that stream at once", streams, tuned},
	{"crowd", "50 contexts at once", crowd, tuned},
	{"telemetry", "metrics and traces, on and off, and metrics alone", telemetry, tuned},
	{"viewers", "1,000 viewers of one context", viewers, tuned},
	{"memory", "500 contexts at once", memory, tuned},
	{"cached", "1,000 contexts of 1 MB each", cached, tuned},
	{"failover", "a worker that is killed during an answer", failover, tuned},
	{"calls", "a turn of 100 tool calls at 200,000 tokens", tools, tuned},
	{"long", "a context of 5,000 turns, and a worker that does not know it", long, tuned},
	{"opening", "an archive of 2,000 segments", opening, none},
	{"archive", "a closed context of 10,000 events", archived, tuned},
}

type runner struct {
	ctx    context.Context
	rig    *rig.Rig    // nil if the scenario does not need one
	worker *rig.Worker // of the rig; a scenario may replace it
	quick  bool
	report *report
}

// times returns the number of repetitions: n, or a tenth of it with -quick.
func (r *runner) times(n int) int {
	if r.quick {
		return max(3, n/10)
	}
	return n
}

func run(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	pattern := flags.String("run", "", "regular expression of the scenarios to run; empty: all")
	quick := flags.Bool("quick", false, "take a tenth of the samples")
	out := flags.String("o", "bench.json", "where to write the metrics; empty: nowhere")
	baseline := flags.String("baseline", "bench/baseline.json", "run to compare with; empty: none")
	if err := flags.Parse(arguments); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return exit.UsageError{Err: err}
	}
	wanted, err := regexp.Compile(*pattern)
	if err != nil {
		return exit.UsageError{Err: fmt.Errorf("-run: %w", err)}
	}
	if flags.NArg() > 0 {
		return exit.UsageError{Err: fmt.Errorf("unexpected argument %q (use -run to choose scenarios)", flags.Arg(0))}
	}

	r := &runner{ctx: ctx, quick: *quick, report: newReport()}
	for _, w := range []environment{none, untuned, tuned} {
		if err := r.runIn(w, wanted); err != nil {
			return err
		}
	}
	fmt.Println()
	if err := r.report.print(os.Stdout, *baseline); err != nil {
		return err
	}
	return r.report.write(*out)
}

func (r *runner) runIn(w environment, wanted *regexp.Regexp) (err error) {
	var todo []scenario
	for _, s := range scenarios {
		if s.environment == w && wanted.MatchString(s.name) {
			todo = append(todo, s)
		}
	}
	if len(todo) == 0 {
		return nil
	}
	if w == untuned && os.Getenv(rig.AddressVariable) != "" {
		fmt.Fprintf(os.Stderr, "untuned: left out, %s is set\n", rig.AddressVariable)
		return nil
	}
	if w != none {
		if r.rig, err = rig.Start(r.ctx, rig.Options{Untuned: w == untuned}); err != nil {
			return err
		}
		defer r.rig.Stop()
		if r.worker, err = r.rig.StartWorker(r.ctx, rig.WorkerOptions{}); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, r.worker.Stop()) }()
	}
	for _, s := range todo {
		began := time.Now()
		fmt.Fprintf(os.Stderr, "%-13s %s", s.name, s.what)
		if err := s.run(r); err != nil {
			fmt.Fprintln(os.Stderr)
			return fmt.Errorf("%s: %w", s.name, err)
		}
		fmt.Fprintf(os.Stderr, " (%v)\n", time.Since(began).Round(100*time.Millisecond))
	}
	return nil
}
