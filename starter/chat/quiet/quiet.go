// Package quiet keeps bubbletea from querying the terminal at program start.
//
// If standard output is a terminal, github.com/charmbracelet/bubbletea v1 queries its background
// color during package initialization and waits up to five seconds for a response
// (https://github.com/charmbracelet/bubbletea/issues/1771, closed as fixed in v2 only). The chat
// does not use that color. The library skips the query if TERM is "dumb", so this package sets
// that during initialization, and the chat calls [Restore] in its own init function, which runs
// after the library's.
//
// Go initializes packages whose imports are ready in the order of their import paths
// (https://go.dev/ref/spec#Package_initialization). This package must import nothing but os,
// because github.com/muesli/termenv, which sends the query, waits for text/template, whose path
// sorts after this one.
//
// A migration to charm.land/bubbletea/v2 makes this package unnecessary: v2 has no init function.
package quiet

import "os"

const variable = "TERM"

var term, isSet = os.LookupEnv(variable)

func init() { set("dumb", true) }

// Restore restores TERM.
func Restore() { set(term, isSet) }

// set ignores errors: the name is valid, and a value that was read can be set.
func set(value string, exists bool) {
	if !exists {
		_ = os.Unsetenv(variable)
		return
	}
	_ = os.Setenv(variable, value)
}
