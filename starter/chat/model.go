package chat

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/charmbracelet/bubbles/spinner"
	"github.com/charmbracelet/bubbles/textinput"
	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/session"
)

// Model is the screen. Its parts are in files of their own: what comes from the
// log in transcript.go, what is typed in line.go, what is asked of the context
// in ask.go.
type Model struct {
	// ctx bounds everything that the screen asks of the context; a bubbletea
	// model has no other way to be given one.
	ctx    context.Context
	config Config
	// width of the terminal in cells.
	width int

	transcript transcript
	line       line
	spinner    spinner.Model
	// spinning says that the spinner's next tick is on its way.
	spinning bool

	// log is what follows the past; lost says that it broke off and nothing has
	// come since.
	log  <-chan session.Entry
	lost bool
	// reach says whether Temporal answers.
	reach reach
	// unsent are inputs in the order typed. The first one is on its way: the
	// order of two sends at once would be anyone's guess.
	unsent [][]event.Event
	// pending are inputs in the order typed that are not in the log.
	pending []pending
	// attachments go with the next message.
	attachments []event.Event
	// hint is shown until the next key.
	hint string

	// printing says that the commands which print are under way. There is one
	// at a time, since bubbletea runs commands side by side.
	printing bool
	leaving  bool
}

// defaultWidth is for a terminal that does not tell its size.
const defaultWidth = 80

// New returns a screen that does nothing before Init is called.
func New(ctx context.Context, config Config) *Model {
	width := cmp.Or(config.Width, defaultWidth)
	return &Model{
		ctx:        ctx,
		config:     config,
		width:      width,
		transcript: newTranscript(config, width),
		line:       newLine(width),
		spinner:    spinner.New(spinner.WithSpinner(spinner.MiniDot)),
	}
}

// printed says that what was to be printed is with the terminal.
type printed struct{}

// Init prints the past in short and begins to follow the log.
func (m *Model) Init() tea.Cmd {
	return tea.Batch(textinput.Blink, m.follow(), m.settle())
}

// Update takes a message.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	return m, tea.Batch(m.take(msg), m.settle())
}

func (m *Model) take(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width = max(msg.Width, 10)
		m.transcript.width = m.width
		m.line.setWidth(m.width)
		return nil
	case tea.KeyMsg:
		m.hint = ""
		return m.key(msg)
	case spinner.TickMsg:
		if m.spinning = m.transcript.busy; !m.spinning {
			return nil
		}
		var cmd tea.Cmd
		m.spinner, cmd = m.spinner.Update(msg)
		return cmd
	case printed:
		m.printing = false
		return nil
	case logUpdate:
		return m.takeLog(msg)
	case followAgain:
		return m.follow()
	case sent:
		return m.takeSent(msg)
	case look:
		return m.look()
	case looked:
		m.reach.away = msg.away
		return m.lookLater()
	case overdue:
		if i := m.awaited(msg.id); i >= 0 {
			m.pending[i].overdue = true
		}
		return nil
	case told:
		m.transcript.note(msg)
		return nil
	default:
		return m.line.update(msg)
	}
}

// settle does what follows from the state of the screen, whatever changed it:
// it prints what is finished, starts the spinner, and leaves.
func (m *Model) settle() tea.Cmd {
	var cmds []tea.Cmd
	if m.transcript.busy && !m.spinning {
		m.spinning = true
		cmds = append(cmds, m.spinner.Tick)
	}
	if m.transcript.busy && !m.reach.looking {
		cmds = append(cmds, m.lookLater())
	}
	if m.printing {
		return tea.Batch(cmds...)
	}
	if text, ok := m.transcript.finished(); ok {
		m.printing = true
		cmds = append(cmds, tea.Sequence(tea.Println(text), func() tea.Msg { return printed{} }))
	} else if m.leaving {
		cmds = append(cmds, tea.Quit)
	}
	return tea.Batch(cmds...)
}

// View is the unfinished part of the conversation and the input line.
func (m *Model) View() string {
	if m.leaving {
		return ""
	}
	style := m.config.Style
	parts := m.transcript.unfinished()
	for _, row := range m.pendingRows() {
		parts = append(parts, style.Dim(row))
	}
	if m.transcript.busy {
		parts = append(parts, style.Dim(m.spinner.View()+" "+m.transcript.doing()))
	}
	if m.transcript.busy && m.reach.away {
		parts = append(parts, style.Dim(m.fit("Temporal does not answer; waiting for it to come back")))
	}
	for _, a := range m.attachments {
		parts = append(parts, style.Dim(m.fit("with the next message: "+attachmentName(a))))
	}
	if m.hint != "" {
		parts = append(parts, style.Dim(m.fit(m.hint)))
	}
	return strings.Join(append(parts, m.line.view()), "\n")
}

// fit cuts a text to one line of the terminal.
func (m *Model) fit(text string) string { return ansi.Truncate(text, m.width, "…") }

// leave ends the screen once everything is printed.
func (m *Model) leave() {
	m.transcript.cutOff()
	if m.transcript.busy {
		m.transcript.remark(m.config.Farewell)
	}
	m.leaving = true
}

// retryFollow is the wait before a log that broke off is followed again.
const retryFollow = time.Second
