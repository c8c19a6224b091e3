package chat

import (
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// display writes the screen: finished rows, which scroll up and stay in the terminal, and below them
// the view, which is drawn again in place. bubbletea's renderer is not used: it counts rows of the
// previous width, so it repeats a part of the view whenever the terminal becomes narrower.
//
// Between writes, the hidden cursor is at the first cell of the view. Terminals that reflow rows
// move the cursor with that cell, and others leave it there, so the view is found without its size.
// Automatic wrapping is off for the view, so that its rows remain rows in a terminal that has become
// narrower since.
type display struct {
	out  io.Writer
	view []string
}

const (
	showScreen = ansi.ResetModeTextCursorEnable + ansi.SetModeBracketedPaste
	// hideScreen erases the view.
	hideScreen = "\r" + ansi.EraseScreenBelow + ansi.ResetModeBracketedPaste + ansi.SetModeTextCursorEnable
)

// draw writes finished rows and replaces the view, which has at least one row.
func (d *display) draw(finished, view []string, isResized bool) {
	if len(finished) == 0 && !isResized && slices.Equal(view, d.view) {
		return
	}
	var b strings.Builder
	b.WriteString(ansi.SetModeSynchronizedOutput + "\r")
	if len(finished) > 0 || isResized || len(view) != len(d.view) {
		// tmux would add a screen that is erased from its first cell to the scrollback.
		b.WriteString(ansi.EraseEntireLine + ansi.CursorForward(1) + ansi.EraseScreenBelow + "\r")
	}
	for _, row := range finished {
		b.WriteString(row + "\r\n")
	}
	b.WriteString(ansi.ResetModeAutoWrap)
	for i, row := range view {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(ansi.EraseEntireLine + row)
	}
	b.WriteString(ansi.SetModeAutoWrap + "\r")
	if last := len(view) - 1; last > 0 {
		b.WriteString(ansi.CursorUp(last))
	}
	b.WriteString(ansi.ResetModeSynchronizedOutput)
	d.view = slices.Clone(view)
	// A terminal that is gone ends the input, too.
	_, _ = io.WriteString(d.out, b.String())
}
