package chat_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"
)

// emulator emulates a terminal with scrollback. It fails the test on control sequences that the chat
// is not known to use.
type emulator struct {
	t             *testing.T
	width, height int
	// reflows: when the width changes, rows that a line occupies are wrapped again.
	reflows bool
	rows    []row
	// top is the index of the first row on the screen; those above are scrollback.
	top int
	// x and y are the position of the cursor, y an index of rows. isFull: the last cell of the row was
	// written, so the next character wraps.
	x, y    int
	isFull  bool
	noWrap  bool
	pending []byte
}

// row holds cells. The second cell of a wide character is empty.
type row struct {
	cells []string
	// wraps: the next row continues the line.
	wraps bool
}

func newEmulator(t *testing.T, width, height int, reflows bool) *emulator {
	return &emulator{t: t, width: width, height: height, reflows: reflows, rows: []row{{}}}
}

func (e *emulator) Write(p []byte) (int, error) {
	e.pending = append(e.pending, p...)
	for len(e.pending) > 0 {
		n := e.step(e.pending)
		if n == 0 {
			break
		}
		e.pending = e.pending[n:]
	}
	return len(p), nil
}

// step interprets a character or a control sequence and returns its length; 0 if it is incomplete.
func (e *emulator) step(text []byte) int {
	switch c := text[0]; {
	case c == '\r':
		e.x, e.isFull = 0, false
	case c == '\n':
		e.feed()
	case c == '\x1b':
		end := slices.IndexFunc(text[min(2, len(text)):], func(b byte) bool { return b >= '@' && b <= '~' })
		if end < 0 {
			return 0
		}
		e.control(string(text[:end+3]))
		return end + 3
	case c < ' ', c == 0x7f:
		require.Failf(e.t, "unexpected control character", "%q", c)
	default:
		if !utf8.FullRune(text) {
			return 0
		}
		_, n := utf8.DecodeRune(text)
		e.put(string(text[:n]))
		return n
	}
	return 1
}

func (e *emulator) control(sequence string) {
	parameters, final := sequence[2:len(sequence)-1], sequence[len(sequence)-1]
	switch {
	case final == 'm':
	case sequence == ansi.SetModeAutoWrap, sequence == ansi.ResetModeAutoWrap:
		e.noWrap = sequence == ansi.ResetModeAutoWrap
	case (final == 'h' || final == 'l') && slices.Contains([]string{"?25", "?2004", "?2026"}, parameters):
	case sequence == ansi.EraseEntireLine:
		e.rows[e.y] = row{}
	case sequence == ansi.EraseScreenBelow:
		if e.x == 0 && e.y == e.top { // as in tmux, the screen is added to the scrollback
			e.top, e.y = len(e.rows), len(e.rows)
			e.rows = append(e.rows, row{})
		}
		e.rows = e.rows[:e.y+1]
		e.rows[e.y].cells = e.rows[e.y].cells[:min(e.x, len(e.rows[e.y].cells))]
		e.rows[e.y].wraps = false
	case sequence == ansi.CursorForward(1):
		e.x, e.isFull = min(e.x+1, e.width-1), false
	case final == 'A':
		n, err := strconv.Atoi(parameters + strings.Repeat("1", 1-min(1, len(parameters))))
		require.NoError(e.t, err)
		e.y, e.isFull = max(e.top, e.y-n), false
	default:
		require.Failf(e.t, "unexpected control sequence", "%q", sequence)
	}
}

func (e *emulator) feed() {
	e.y, e.isFull = e.y+1, false
	if e.y == len(e.rows) {
		e.rows = append(e.rows, row{})
	}
	e.top = max(e.top, e.y-e.height+1)
}

func (e *emulator) put(char string) {
	size := ansi.StringWidth(char)
	if size == 0 {
		return
	}
	if e.isFull || e.x+size > e.width {
		if !e.noWrap {
			e.rows[e.y].wraps = true
			e.feed()
			e.x = 0
		}
		e.x = min(e.x, e.width-size)
	}
	r := &e.rows[e.y]
	for len(r.cells) < e.x+size {
		r.cells = append(r.cells, " ")
	}
	r.cells[e.x] = char
	if size == 2 {
		r.cells[e.x+1] = ""
	}
	e.x += size
	if e.isFull = e.x >= e.width; e.isFull {
		e.x = e.width - 1
	}
}

func (e *emulator) resize(width, height int) {
	if e.reflows && width != e.width {
		e.reflow(width)
	}
	e.width, e.height, e.isFull = width, height, false
	// Rows below the cursor are dropped before rows above it scroll up.
	if tooMany := len(e.rows) - e.top - height; tooMany > 0 {
		e.rows = e.rows[:max(e.y+1, len(e.rows)-tooMany)]
	}
	e.top = max(0, len(e.rows)-height)
	e.y = max(e.y, e.top)
}

func (e *emulator) reflow(width int) {
	var rows []row
	y := 0
	for i := 0; i < len(e.rows); i++ {
		if i == e.y {
			y = len(rows)
		}
		line := slices.Clone(e.rows[i].cells)
		for ; e.rows[i].wraps && i+1 < len(e.rows); i++ {
			require.NotEqual(e.t, e.y, i+1, "the cursor is within a wrapped line")
			line = append(line, e.rows[i+1].cells...)
		}
		for len(line) > width {
			n := width
			if line[n] == "" {
				n--
			}
			rows = append(rows, row{cells: slices.Clone(line[:n]), wraps: true})
			line = line[n:]
		}
		rows = append(rows, row{cells: line})
	}
	// As in tmux, the end of the text is in view.
	e.rows, e.y = rows, y
	e.top = max(0, len(rows)-e.height)
	e.y = max(e.y, e.top)
}

// above returns the lines above the cursor, below those in view.
func (e *emulator) text() (above, below []string) {
	line := ""
	for i, r := range e.rows {
		line += strings.Join(r.cells, "")
		if r.wraps {
			continue
		}
		if i < e.y {
			above = append(above, line)
		} else {
			below = append(below, line)
		}
		line = ""
	}
	return above, below
}
