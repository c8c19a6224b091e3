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

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
)

// Model is the bubbletea model of the screen. transcript.go shows the log, line.go edits the
// input, and ask.go sends requests to the context.
type Model struct {
	// ctx bounds all requests to the context. It is a field because bubbletea does not pass
	// a context to a model.
	ctx    context.Context
	config Config
	// width of the terminal in cells.
	width int

	transcript transcript
	line       line
	spinner    spinner.Model
	// spinning is set while a spinner tick is scheduled.
	spinning bool

	// log is the followed log; lost is set after the stream broke until the next event.
	log  <-chan client.Entry
	lost bool
	// reach tracks whether Temporal is reachable.
	reach reach
	// unsent holds inputs in the order typed. They are sent one at a time to keep that
	// order; the first is being sent.
	unsent [][]event.Event
	// pending holds inputs, in the order typed, that are not in the log yet.
	pending []pending
	// attachments belong to the next message.
	attachments []event.Event
	// statusText is shown until the next key.
	statusText string

	// printing is set while a print command runs. There is one at a time because bubbletea
	// runs commands concurrently.
	printing bool
	leaving  bool
}

// defaultWidth is used if the terminal does not report its size.
const defaultWidth = 80

// New returns a screen; it is inactive until Init is called.
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

type printed struct{}

// Init prints the summary of the past and starts following the log.
func (m *Model) Init() tea.Cmd {
	return tea.Batch(textinput.Blink, m.follow(), m.afterChange())
}

// Update handles a message.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	return m, tea.Batch(m.take(msg), m.afterChange())
}

func (m *Model) take(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width = max(msg.Width, 10)
		m.transcript.width = m.width
		m.line.setWidth(m.width)
		return nil
	case tea.KeyMsg:
		m.statusText = ""
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
	case checkDue:
		return m.checkReachable()
	case checkResult:
		m.reach.isUnreachable = msg.isUnreachable
		return m.scheduleCheck()
	case overdue:
		if i := m.awaited(msg.id); i >= 0 {
			m.pending[i].overdue = true
		}
		return nil
	case notice:
		m.transcript.note(msg)
		return nil
	default:
		return m.line.update(msg)
	}
}

// afterChange performs what the state of the screen requires after any change: it prints finished
// text, starts the spinner and exits.
func (m *Model) afterChange() tea.Cmd {
	var cmds []tea.Cmd
	if m.transcript.busy && !m.spinning {
		m.spinning = true
		cmds = append(cmds, m.spinner.Tick)
	}
	if m.transcript.busy && !m.reach.isScheduled {
		cmds = append(cmds, m.scheduleCheck())
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

// View returns the unfinished part of the conversation and the input line.
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
	if m.transcript.busy && m.reach.isUnreachable {
		parts = append(parts, style.Dim(m.fit("Temporal is unreachable; waiting for it")))
	}
	for _, a := range m.attachments {
		parts = append(parts, style.Dim(m.fit("with the next message: "+attachmentName(a))))
	}
	if m.statusText != "" {
		parts = append(parts, style.Dim(m.fit(m.statusText)))
	}
	return strings.Join(append(parts, m.line.view()), "\n")
}

func (m *Model) fit(text string) string { return ansi.Truncate(text, m.width, "…") }

// leave exits once everything is printed.
func (m *Model) leave() {
	m.transcript.flush()
	if m.transcript.busy {
		m.transcript.remark(m.config.Farewell)
	}
	m.leaving = true
}

const retryFollow = time.Second
