package chat

import (
	"slices"
	"strings"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
	"github.com/seed-9ed7edd4/chronicle/starter/show"
)

const (
	prompt  = "› "
	maxName = 24 // of a context in the prompt, in characters
)

// The input field is a single row and replaces newlines and tabs by spaces, so they are
// represented by Unicode control pictures.
var (
	toSigns   = strings.NewReplacer("\r\n", newlineSign, "\r", newlineSign, "\n", newlineSign, "\t", tabSign)
	fromSigns = strings.NewReplacer(newlineSign, "\n", tabSign, "\t")
)

const (
	newlineSign = "␤"
	tabSign     = "␉"
)

func shown(text string) string { return terminal.Strip(toSigns.Replace(text)) }

// line is the input line with its history, which lasts as long as the screen.
type line struct {
	input   textinput.Model
	history []string
	// at is the index of the history entry that is shown. len(history): the draft is shown, the text typed
	// before going up.
	at    int
	draft string
}

func newLine(width int) line {
	input := textinput.New()
	input.Prompt = prompt
	input.SetStyles(textinput.Styles{Cursor: textinput.CursorStyle{Blink: true}})
	input.Focus()
	l := line{input: input}
	l.setWidth(width)
	return l
}

// setWidth reserves room for the prompt and the cursor.
func (l *line) setWidth(width int) {
	l.input.SetWidth(max(1, width-ansi.StringWidth(l.input.Prompt)-1))
}

// name shows the name of the context before the prompt.
func (l *line) name(name string, width int) {
	l.input.Prompt = show.Short(name, maxName) + " " + prompt
	l.setWidth(width)
}

func (l *line) update(msg tea.Msg) (cmd tea.Cmd) {
	l.input, cmd = l.input.Update(msg)
	return cmd
}

func (l *line) insert(text string) tea.Cmd { return l.update(tea.PasteMsg{Content: shown(text)}) }

// view trims trailing spaces: a row that fills the window would wrap when the window becomes
// narrower.
func (l *line) view() string { return strings.TrimRight(l.input.View(), " ") }

func (l *line) text() string { return fromSigns.Replace(l.input.Value()) }

func (l *line) set(text string) {
	l.input.SetValue(shown(text))
	l.input.CursorEnd()
}

func (l *line) enter() string {
	text := l.text()
	if text != "" && (len(l.history) == 0 || l.history[len(l.history)-1] != text) {
		l.history = append(l.history, text)
	}
	l.clear()
	return text
}

func (l *line) clear() {
	l.at, l.draft = len(l.history), ""
	l.input.Reset()
}

// move goes up (-1) or down (+1) in the history.
func (l *line) move(by int) {
	to := l.at + by
	if to < 0 || to > len(l.history) {
		return
	}
	if l.at == len(l.history) {
		l.draft = l.text()
	}
	l.at = to
	l.set(slices.Concat(l.history, []string{l.draft})[to])
}
