package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-9ed7edd4/chronicle/session"
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
  0    done
  1    failed: the model, the worker, a line of a script, or a context that
       is full until a worker runs
  2    wrong usage: a flag, an argument or a value that cannot be meant
  3    there is no context of that name
  4    Temporal cannot be reached
  130  interrupted: by Ctrl-C (SIGINT or SIGTERM), or the answer was`

// exitReference stands in the help of each command, where the table would be in
// the way.
const exitReference = `Exit codes: 0 done, 1 failed, others see "starter --help".`

// exitCode is the one place that decides how a command ends.
func exitCode(err error) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errInterrupted), errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, new(usageError)), errors.Is(err, session.ErrName):
		return exitUsage
	case errors.Is(err, session.ErrNoContext):
		return exitNoContext
	case errors.Is(err, session.ErrUnreachable):
		return exitUnreachable
	default:
		return exitFailure
	}
}

// usageError is a mistake in the arguments of a command.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errInterrupted: somebody stopped the answer.
var errInterrupted = errors.New("interrupted")
