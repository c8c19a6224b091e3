package main

import (
	"flag"
	"fmt"
	"time"

	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/test/rig"
)

func main() { rig.Run("fuzz", run) }

type options struct {
	duration        time.Duration
	parallel, steps int
	seed            uint64
	context         int
	logs            string
	verbose         bool
}

// parse returns usage errors.
func parse(args []string) (o options, err error) {
	defer func() {
		if err != nil {
			err = exit.UsageError{Err: err}
		}
	}()
	flags := flag.NewFlagSet("fuzz", flag.ContinueOnError)
	flags.DurationVar(&o.duration, "for", 2*time.Minute, "no context starts after this duration; at least one does")
	flags.IntVar(&o.parallel, "parallel", 4, "contexts at the same time, 1 to 100")
	flags.IntVar(&o.steps, "steps", 25, "steps of a context, 1 to 10000")
	flags.Uint64Var(&o.seed, "seed", 1, "random seed of the steps")
	flags.IntVar(&o.context, "context", -1, "repeat this context only; -1: all")
	flags.StringVar(&o.logs, "logs", "", "directory for the logs of the worker and the gateway, created if it is missing; empty: they are deleted")
	flags.BoolVar(&o.verbose, "v", false, "print each step")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.parallel < 1 || o.parallel > 100:
		return o, fmt.Errorf("-parallel %d: out of range (1 to 100)", o.parallel)
	case o.steps < 1 || o.steps > 10_000:
		return o, fmt.Errorf("-steps %d: out of range (1 to 10000)", o.steps)
	}
	return o, nil
}
