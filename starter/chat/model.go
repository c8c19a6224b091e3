package chat

import (
	"cmp"
	"context"
	"strings"
	"time"

	"charm.land/bubbles/v2/spinner"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
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
	// width and height of the terminal in cells.
	width, height int

	transcript transcript
	line       line
	spinner    spinner.Model
	// spinning is set while a spinner tick is scheduled.
	spinning bool

	// log is the followed log; lost is set after the stream broke until the next event.
	log   <-chan client.Entry
	lost  bool
	reach reach
	// unsent holds inputs in the order typed. They are sent one at a time to keep that
	// order; the first is being sent.
	unsent [][]event.Event
	// pending holds inputs, in the order typed, that are not in the log yet.
	pending []pending
	// attachments belong to the next message.
	attachments []event.Event
	approval    approval
	// statusText is shown until the next key.
	statusText string

	// printing is set while a print command runs. There is one at a time because bubbletea
	// runs commands concurrently.
	printing bool
	// shown is the number of rows of the latest view. Before the first, bubbletea assumes a view
	// that fills the terminal, until https://github.com/charmbracelet/bubbletea/issues/1740 is fixed.
	shown   int
	leaving bool
}

// These are used until the terminal reports its size.
const (
	defaultWidth  = 80
	defaultHeight = 24
)

// New returns a screen; it is inactive until Init is called.
func New(ctx context.Context, config Config) *Model {
	width := cmp.Or(config.Width, defaultWidth)
	return &Model{
		ctx:        ctx,
		config:     config,
		width:      width,
		height:     defaultHeight,
		shown:      defaultHeight,
		transcript: newTranscript(config, width),
		line:       newLine(width),
		spinner:    spinner.New(spinner.WithSpinner(spinner.MiniDot)),
	}
}

type printed struct{}

func (m *Model) Init() tea.Cmd {
	return tea.Batch(textinput.Blink, m.follow(), m.afterChange())
}

func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	return m, tea.Batch(m.take(msg), m.afterChange())
}

func (m *Model) take(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = max(msg.Width, 10), msg.Height
		m.transcript.width = m.width
		m.line.setWidth(m.width)
		return nil
	case tea.KeyPressMsg:
		m.statusText = ""
		return m.key(msg)
	case tea.PasteMsg:
		m.statusText = ""
		return m.line.insert(msg.Content)
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
	case promptReady:
		if m.approval.call == msg.call {
			m.approval.isReady = true
		}
		return nil
	case undecided:
		m.takeUndecided(msg)
		return nil
	default:
		return m.line.update(msg)
	}
}

// afterChange performs what the state of the screen requires after any change: it prints finished
// text, starts the spinner and exits.
func (m *Model) afterChange() tea.Cmd {
	cmds := []tea.Cmd{m.showApproval()}
	shown := m.shown
	m.shown = len(m.rows())
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
	if rows := m.transcript.finished(); len(rows) > 0 {
		m.printing = true
		cmds = append(cmds, printAbove(rows, m.shown < shown))
	} else if m.leaving {
		cmds = append(cmds, tea.Quit)
	}
	return tea.Batch(cmds...)
}

// drawTime is longer than the interval at which bubbletea draws the view, a 60th of a second.
const drawTime = time.Second / 30

// printAbove prints rows above the view, one by one: bubbletea loses the view if text and view
// together are taller than the terminal (no upstream issue is known), and ignores an empty text. If the
// view shrinks, it must be drawn first: otherwise printing scrolls too far, until
// https://github.com/charmbracelet/bubbletea/issues/1736 is fixed.
func printAbove(rows []string, shrinks bool) tea.Cmd {
	var cmds []tea.Cmd
	if shrinks {
		cmds = append(cmds, tea.Tick(drawTime, func(time.Time) tea.Msg { return nil }))
	}
	for _, row := range rows {
		cmds = append(cmds, tea.Println(cmp.Or(row, ansi.ResetStyle)))
	}
	return tea.Sequence(append(cmds, func() tea.Msg { return printed{} })...)
}

func (m *Model) View() tea.View { return tea.NewView(strings.Join(m.rows(), "\n")) }

// rows returns the unfinished part of the conversation and the input line.
func (m *Model) rows() []string {
	if m.leaving && !m.printing {
		return nil
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
	if prompt := m.promptRows(); prompt != nil {
		parts = append(parts, prompt...)
	} else {
		parts = append(parts, m.line.view())
	}
	// One row remains for the text to be printed above the view.
	return parts[max(0, len(parts)-max(1, m.height-1)):]
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
