package main

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
	"github.com/seed-9ed7edd4/chronicle/starter/show"
)

// streams are the standard streams of a command. While a command runs, out and err are each a
// [terminal.Writer], which escapes control characters.
type streams struct {
	in                                   io.Reader
	out                                  io.Writer
	err                                  io.Writer
	inTerminal, outTerminal, errTerminal bool
	// width and height of the terminal out, in cells; 0 if unknown.
	width, height int
	color         bool
}

// systemStreams returns the streams of the process. NO_COLOR (https://no-color.org) and
// TERM=dumb disable colors.
func systemStreams() streams {
	// On error, both are 0.
	width, height, _ := term.GetSize(int(os.Stdout.Fd()))
	return streams{
		in: os.Stdin, out: os.Stdout, err: os.Stderr,
		inTerminal:  term.IsTerminal(int(os.Stdin.Fd())),
		outTerminal: term.IsTerminal(int(os.Stdout.Fd())),
		errTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		width:       width,
		height:      height,
		color:       os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
	}
}

func (s streams) note(format string, args ...any) {
	style := show.Style{Color: s.color && s.errTerminal}
	fmt.Fprintln(terminal.Raw(s.err), style.Dim(fmt.Sprintf(format, args...)))
}
