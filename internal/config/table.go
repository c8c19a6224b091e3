package config

import (
	"strings"

	"github.com/spf13/pflag"
)

// Table is a group of settings: flags, their environment variables, and their keys in a table of the
// file. The key of a flag is its name with _ for -.
type Table struct {
	*pflag.FlagSet
	name      string            // of the table in the file; empty: the keys are at the top level
	env       map[string]string // variables by flag
	redact    map[string]func(string) string
	variables []Variable
	// alternatives exclude each other: if the command line sets one, those of the environment and the
	// file do not apply; if the environment sets one, those of the file do not.
	alternatives map[string]bool
}

// Variable is a setting without a flag, for example a secret, which a command line would expose.
type Variable struct {
	Name, Usage string
	IsSecret    bool
	value       *string // nil: other packages read the variable
}

// isFamily reports whether the name stands for all variables with a prefix, which other packages read.
func (v Variable) isFamily() bool { return strings.HasSuffix(v.Name, "*") }

func newTable(name string) *Table {
	flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
	flags.SortFlags = false
	return &Table{
		FlagSet: flags, name: name,
		env: map[string]string{}, redact: map[string]func(string) string{}, alternatives: map[string]bool{},
	}
}

// Key returns the key of a flag in the file, with its table: worker.drain_timeout.
func (t *Table) Key(flag string) string {
	return strings.TrimPrefix(t.name+"."+keyOf(flag), ".")
}

func keyOf(flag string) string { return strings.ReplaceAll(flag, "-", "_") }
