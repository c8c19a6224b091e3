package tomlfile

import (
	"errors"
	"fmt"
)

// Error is an error in a line of a file.
type Error struct {
	Line int // counted from 1; 0: unknown, or part of Err
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// At adds the name of the file to an error, and its line if the error has one: providers.toml:3: ….
func At(name string, err error) error {
	var at *Error
	if errors.As(err, &at) && at.Line > 0 {
		return fmt.Errorf("%s:%d: %w", name, at.Line, err)
	}
	return fmt.Errorf("%s: %w", name, err)
}
