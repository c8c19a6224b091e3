package main

import (
	"errors"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// field is the value of a flag that sets an optional field of an event, which stays nil without the flag.
type field[T any] struct {
	to    **T
	kind  string // as the type of other flags
	text  string // until it is set, the default that the help shows
	parse func(string) (T, error)
}

func (f *field[T]) String() string { return f.text }

func (f *field[T]) Type() string { return f.kind }

func (f *field[T]) Set(text string) error {
	value, err := f.parse(text)
	if err != nil {
		return err
	}
	*f.to, f.text = &value, text
	return nil
}

func intField(flags *pflag.FlagSet, to **int, name, byDefault, usage string) {
	flags.Var(&field[int]{to, "int", byDefault, strconv.Atoi}, name, usage)
}

func int64Field(flags *pflag.FlagSet, to **int64, name, usage string) {
	flags.Var(&field[int64]{to, "int64", "", func(text string) (int64, error) { return strconv.ParseInt(text, 0, 64) }}, name, usage)
}

func floatField(flags *pflag.FlagSet, to **float64, name, byDefault, usage string) {
	flags.Var(&field[float64]{to, "float64", byDefault, func(text string) (float64, error) { return strconv.ParseFloat(text, 64) }}, name, usage)
}

func boolField(flags *pflag.FlagSet, to **bool, name, usage string) {
	flags.VarPF(&field[bool]{to, "bool", "", strconv.ParseBool}, name, "", usage).NoOptDefVal = "true"
}

// millisecondsField sets a field in milliseconds from a duration.
func millisecondsField(flags *pflag.FlagSet, to **int64, name, byDefault, usage string) {
	flags.Var(&field[int64]{to, "duration", byDefault, parseMilliseconds}, name, usage)
}

func parseMilliseconds(text string) (int64, error) {
	d, err := time.ParseDuration(text)
	if err == nil && d%time.Millisecond != 0 {
		err = errors.New("want whole milliseconds")
	}
	return d.Milliseconds(), err
}
