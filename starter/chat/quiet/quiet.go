// Package quiet keeps bubbletea from querying the terminal at program start.
//
// When standard output is a terminal, github.com/charmbracelet/bubbletea v1 queries its
// background color during initialization and waits up to five seconds for a response
// (tea_init.go there). The chat does not use that color. The library skips the query if TERM
// is "dumb", so this package sets TERM to "dumb" during package initialization, and the chat
// calls [Restore] in its own init function, which runs after the library's.
//
// Go initializes packages whose imports are ready in the order of their import paths
// (https://go.dev/ref/spec#Package_initialization). This package needs only os, and
// github.com/muesli/termenv, which sends the query, depends on text/template, whose path sorts
// after this one. This package must therefore import nothing but os.
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
