package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/test/rig"
)

func main() {
	rig.Main()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(exit.OK)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(exit.Usage)
	}
	if err := run(ctx, o); err != nil {
		fmt.Fprintf(os.Stderr, "fuzz: %v\n", err)
		os.Exit(exit.Failure)
	}
}

type options struct {
	duration                  time.Duration
	parallel, steps           int
	seed                      uint64
	context                   int
	only                      []int
	workerLimit, gatewayLimit int64
	continueAfter             int
	logs                      string
	without                   []string
	verbose                   bool
}

const mib = 1 << 20

func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("fuzz", flag.ContinueOnError)
	flags.DurationVar(&o.duration, "for", 2*time.Minute, "no context starts after this duration; at least one does")
	flags.IntVar(&o.parallel, "parallel", 4, "contexts at the same time, 1 to 100")
	flags.IntVar(&o.steps, "steps", 25, "steps of a context, 1 to 10000")
	flags.Uint64Var(&o.seed, "seed", 1, "random seed of the steps")
	flags.IntVar(&o.context, "context", -1, "repeat this context only; -1: all")
	only := flags.String("only", "", "numbers of the steps to repeat, separated by commas; empty: all")
	without := flags.String("without", "", "names of steps to exclude, separated by commas: "+stepNames())
	flags.IntVar(&o.continueAfter, "continue-as-new-after", 150, "history events after which runs continue as new; 0: the default of workers")
	workerLimit := flags.Int64("worker-mib", 1024, "limit of the resident size of the worker in MiB")
	gatewayLimit := flags.Int64("gateway-mib", 1024, "limit of the resident size of the gateway in MiB")
	flags.StringVar(&o.logs, "logs", "", "directory for the log of the worker; empty: none")
	flags.BoolVar(&o.verbose, "v", false, "print each step")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.workerLimit, o.gatewayLimit = *workerLimit*mib, *gatewayLimit*mib
	for text := range strings.SplitSeq(*only, ",") {
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			return o, fmt.Errorf("-only %s: %q is no number", *only, text)
		}
		o.only = append(o.only, n)
	}
	for name := range strings.SplitSeq(*without, ",") {
		if name == "" {
			continue
		}
		if !slices.ContainsFunc(steps, func(s step) bool { return s.name == name }) {
			return o, fmt.Errorf("-without %s: unknown step (%s)", name, stepNames())
		}
		o.without = append(o.without, name)
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.parallel < 1 || o.parallel > 100:
		return o, fmt.Errorf("-parallel %d: out of range (1 to 100)", o.parallel)
	case o.steps < 1 || o.steps > 10_000:
		return o, fmt.Errorf("-steps %d: out of range (1 to 10000)", o.steps)
	case len(o.only) > 0 && o.context < 0:
		return o, errors.New("-only: requires -context")
	}
	return o, nil
}
