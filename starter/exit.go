package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
)

const exitHelp = `Exit codes:
  0    success
  1    the model, the worker or a script line failed, or the context accepts no
       more input until a worker runs
  2    usage error: an unknown flag, or an invalid argument or value
  3    no context of that name
  4    Temporal is unreachable
  130  interrupted by Ctrl-C, SIGINT or SIGTERM, or the answer was interrupted`

const exitReference = `Exit codes: 0 success, 1 failure; for others see "starter --help".`

func exitCode(err error) int {
	switch {
	case err == nil:
		return exit.OK
	case errors.Is(err, errInterrupted), errors.Is(err, context.Canceled):
		return exit.Interrupted
	case errors.As(err, new(exit.UsageError)), errors.Is(err, client.ErrName):
		return exit.Usage
	case errors.Is(err, client.ErrNoContext):
		return exit.NoContext
	case errors.Is(err, client.ErrUnreachable):
		return exit.Unreachable
	default:
		return exit.Failure
	}
}

func usagef(format string, args ...any) error {
	return exit.UsageError{Err: fmt.Errorf(format, args...)}
}

var errInterrupted = errors.New("interrupted")
