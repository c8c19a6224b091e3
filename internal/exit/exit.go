// Package exit has the exit codes of the programs.
package exit

const (
	OK          = 0
	Failure     = 1
	Usage       = 2
	NoContext   = 3
	Unreachable = 4
	Interrupted = 130
)

// UsageError reports invalid flags or arguments.
type UsageError struct{ Err error }

func (e UsageError) Error() string { return e.Err.Error() }

func (e UsageError) Unwrap() error { return e.Err }
