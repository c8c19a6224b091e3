package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-9ed7edd4/chronicle/client"
)

// The exit codes of every command; exitHelp documents them.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitNoContext   = 3
	exitUnreachable = 4
	exitInterrupted = 130
)

const exitHelp = `Exit codes:
  0    success
  1    failure of the model, the worker or a line of a script, or a context that
       is full until a worker runs
  2    usage error: an unknown flag, or an invalid argument or value
  3    no context of that name
  4    Temporal is unreachable
  130  interrupted by Ctrl-C, SIGINT or SIGTERM, or the answer was interrupted`

// exitReference is the short form of exitHelp for the help of the commands.
const exitReference = `Exit codes: 0 success, 1 failure; for others see "starter --help".`

func exitCode(err error) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errInterrupted), errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, new(usageError)), errors.Is(err, client.ErrName):
		return exitUsage
	case errors.Is(err, client.ErrNoContext):
		return exitNoContext
	case errors.Is(err, client.ErrUnreachable):
		return exitUnreachable
	default:
		return exitFailure
	}
}

// usageError is an error in the arguments of a command.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errInterrupted reports that the answer was interrupted.
var errInterrupted = errors.New("interrupted")
