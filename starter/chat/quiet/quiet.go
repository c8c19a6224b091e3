// Package quiet keeps the terminal library of the chat from questioning the
// terminal as soon as the program starts, whatever its command.
//
// When standard output is a terminal, github.com/charmbracelet/bubbletea v1 asks
// it for its background colour while it is initialized, and waits for five
// seconds when there is no answer (tea_init.go there). Nothing here uses that
// colour. The library does not ask a terminal whose TERM is "dumb", so for as
// long as packages are initialized, it is: this package sets it, and the chat
// calls [Restore] from its own initialization, which comes after the library's.
//
// That this package comes before it is certain: a package is initialized as soon
// as its imports are, in the order of the import paths among those that are
// ready (https://go.dev/ref/spec#Package_initialization). Only os has to come
// before this one, while github.com/muesli/termenv, which asks, waits for
// text/template, whose path is greater than this one's. So it may import nothing
// but os.
package quiet

import "os"

const variable = "TERM"

var term, isSet = os.LookupEnv(variable)

func init() { set("dumb", true) }

// Restore gives the environment back its TERM.
func Restore() { set(term, isSet) }

// set has no use for an error: the name is good, and a value that was read can
// be set.
func set(value string, exists bool) {
	if !exists {
		_ = os.Unsetenv(variable)
		return
	}
	_ = os.Setenv(variable, value)
}
