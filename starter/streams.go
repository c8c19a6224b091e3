package main

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/seed-9ed7edd4/chronicle/starter/show"
	"github.com/seed-9ed7edd4/chronicle/terminal"
)

// streams are what a command reads from and writes to. While a command runs, out and
// err are a [terminal.Writer] each: what people read is clean, whoever wrote it.
type streams struct {
	in  io.Reader
	out io.Writer
	err io.Writer
	// Which of them are terminals.
	inTerminal, outTerminal, errTerminal bool
	// width of the terminal that out is, in cells; 0 when it is not known.
	width int
	// color allows colours on terminals.
	color bool
}

// systemStreams are those of the process. NO_COLOR (https://no-color.org) and
// TERM=dumb turn colours off.
func systemStreams() streams {
	// When it is not known, the error has nothing to add.
	width, _, _ := term.GetSize(int(os.Stdout.Fd()))
	return streams{
		in: os.Stdin, out: os.Stdout, err: os.Stderr,
		inTerminal:  term.IsTerminal(int(os.Stdin.Fd())),
		outTerminal: term.IsTerminal(int(os.Stdout.Fd())),
		errTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		width:       width,
		color:       os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
	}
}

// note tells a person something that is not part of the output.
func (s streams) note(format string, args ...any) {
	style := show.Style{Color: s.color && s.errTerminal}
	fmt.Fprintln(terminal.Raw(s.err), style.Dim(fmt.Sprintf(format, args...)))
}
