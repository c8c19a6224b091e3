package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/test/rig"
)

func main() { rig.Run("bench", run) }

var scenarios = []struct {
	name, what string
	run        func(*runner) error
}{
	{"signal", "one context, one turn after the other", signalAlone},
	{"interrupt", "new input while an answer streams", interrupt},
	{"streams", "50 answers that stream at once", streams},
	{"crowd", "50 contexts at once", crowd},
	{"actions", "billed actions and history of a turn, a tool call and an opened context", actions},
	{"viewers", "1,000 viewers of one context", viewers},
	{"http2", "1,000 viewers over HTTP/2, with a token", viewersOverHTTP2},
	{"clients", "turns through each protocol of the gateway", clients},
	{"followers", "1,000 streams of each protocol, on 20 answers", followers},
	{"index", "messages of 5 MB that a gateway indexes", indexed},
	{"memory", "500 contexts at once, and 1,000 contexts of 1 MB each", memory},
	{"failover", "a worker that is killed during an answer", failover},
	{"tools", "a turn of 100 tool calls at 200,000 tokens", tools},
	{"long", "a context of 5,000 turns, and one of 10,000 events that is reopened", long},
}

// runner has what the scenarios share.
type runner struct {
	*rig.Rig
	ctx    context.Context
	worker *rig.Process // a scenario may replace it
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

func (r *runner) replaceWorker(flags ...string) (err error) {
	if err := r.worker.Stop(); err != nil {
		return err
	}
	r.worker, err = r.StartWorker(r.ctx, flags...)
	return err
}

func run(ctx context.Context, arguments []string) (err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "run a tenth of the repetitions")
	stock := flags.Bool("stock", false, "use a Temporal server with its default settings")
	workerFlags := flags.String("worker", "", "further flags of the workers, separated by spaces")
	pattern := flags.String("run", "", "run only the scenarios whose name matches the regular expression")
	out := flags.String("o", "bench.json", "file for the table as JSON; empty: none")
	if err := flags.Parse(arguments); err != nil {
		return exit.UsageError{Err: err}
	}
	wanted, err := regexp.Compile(*pattern)
	if err != nil {
		return exit.UsageError{Err: fmt.Errorf("-run: %w", err)}
	}
	if flags.NArg() > 0 {
		return exit.UsageError{Err: fmt.Errorf("unexpected argument %q (use -run to choose scenarios)", flags.Arg(0))}
	}

	r := &runner{ctx: ctx, quick: *quick, report: newReport(*stock)}
	if r.Rig, err = rig.Start(ctx, rig.Options{Stock: *stock, WorkerFlags: strings.Fields(*workerFlags)}); err != nil {
		return err
	}
	defer r.Stop()
	if err := r.StartBare(ctx); err != nil {
		return err
	}
	if r.worker, err = r.StartWorker(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.worker.Stop()) }()
	var failed error
	for _, s := range scenarios {
		if !wanted.MatchString(s.name) {
			continue
		}
		began := time.Now()
		fmt.Fprintf(os.Stderr, "%-10s %s", s.name, s.what)
		err := s.run(r)
		fmt.Fprintf(os.Stderr, " (%v)\n", time.Since(began).Round(100*time.Millisecond))
		if errors.Is(err, rig.ErrNoServer) {
			fmt.Fprintln(os.Stderr, "left out:", err)
		} else if err != nil {
			failed = fmt.Errorf("%s: %w", s.name, err)
			break
		}
	}
	fmt.Println()
	return errors.Join(failed, r.report.print(os.Stdout), r.report.write(*out))
}
