package chat

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"charm.land/bubbles/v2/spinner"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/starter/show"
)

// Model is the bubbletea model of the screen. transcript.go shows the log, line.go edits the
// input, and ask.go sends requests to the context.
type Model struct {
	// ctx bounds all requests to the context. It is a field because bubbletea does not pass
	// a context to a model.
	ctx     context.Context
	config  Config
	display display
	// width and height of the terminal in cells.
	width, height int
	isResized     bool // since the screen was drawn

	transcript transcript
	line       line
	spinner    spinner.Model
	// spinning is set while a spinner tick is scheduled.
	spinning bool

	// log is the followed log, until unfollow is called; lost is set after the stream broke until the
	// next event.
	log      <-chan client.Entry
	unfollow context.CancelFunc
	lost     bool
	// isUnreachable is the outcome of the latest check of Temporal.
	isUnreachable bool
	// heard is when the latest event arrived, and probed the result of the latest check since then. isUnattended:
	// no worker has the answer.
	heard, probed time.Time
	isUnattended  bool
	// unsent holds inputs in the order typed. They are sent one at a time to keep that
	// order; the first is being sent.
	unsent [][]event.Event
	// pending holds inputs, in the order typed, that are not in the log yet.
	pending []pending
	// attachments belong to the next message.
	attachments []event.Event
	prompt      callPrompt
	// statusText is shown until the next key.
	statusText string
	leaving    bool
}

// These are used until the terminal reports its size.
const (
	defaultWidth  = 80
	defaultHeight = 24
)

// New returns a screen, which is drawn to out; it is inactive until Init is called.
func New(ctx context.Context, out io.Writer, config Config) *Model {
	config.Width, config.Height = cmp.Or(config.Width, defaultWidth), cmp.Or(config.Height, defaultHeight)
	config.RecordTimeout = cmp.Or(config.RecordTimeout, defaultRecordTimeout)
	return &Model{
		ctx:        ctx,
		config:     config,
		display:    display{out: out},
		width:      config.Width,
		height:     config.Height,
		transcript: newTranscript(config),
		line:       newLine(config.Width),
		spinner:    spinner.New(spinner.WithSpinner(spinner.MiniDot)),
	}
}

func (m *Model) Init() tea.Cmd {
	return tea.Batch(textinput.Blink, m.follow(), m.scheduleCheck(), m.afterChange())
}

func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	return m, tea.Batch(m.take(msg), m.afterChange())
}

func (m *Model) take(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = max(msg.Width, 10), msg.Height
		m.isResized = true
		m.transcript.setWidth(m.width)
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
	case logUpdate:
		return m.takeLog(msg)
	case followAgain:
		return m.follow()
	case sent:
		return m.takeSent(msg)
	case checkDue:
		return m.checkReachable()
	case checkResult:
		return m.takeCheck(msg)
	case overdue:
		if i := m.awaited(msg.id); i >= 0 {
			m.pending[i].overdue = true
		}
		return nil
	case notice:
		m.transcript.note(msg)
		return nil
	case promptReady:
		m.takeReady(msg)
		return nil
	case switched:
		return m.takeSwitched(msg)
	case notSent:
		m.takeNotSent(msg)
		return nil
	default:
		return m.line.update(msg)
	}
}

// afterChange performs what the state of the screen requires after any change: it draws the screen,
// starts the spinner and exits.
func (m *Model) afterChange() tea.Cmd {
	cmds := []tea.Cmd{m.showPrompt()}
	if m.transcript.busy && !m.spinning {
		m.spinning = true
		cmds = append(cmds, m.spinner.Tick)
	}
	m.display.draw(m.transcript.finished(), m.rows(), m.isResized)
	m.isResized = false
	if m.leaving {
		cmds = append(cmds, tea.Quit)
	}
	return tea.Batch(cmds...)
}

// View returns what [display] has drawn below the finished text. bubbletea does not draw it.
func (m *Model) View() tea.View { return tea.NewView(strings.Join(m.rows(), "\n")) }

// rows returns the unfinished part of the conversation and the input line.
func (m *Model) rows() []string {
	if m.leaving {
		return []string{""}
	}
	style := m.config.Style
	parts := m.transcript.unfinished()
	for _, row := range m.pendingRows() {
		parts = append(parts, style.Dim(row))
	}
	isUnattended := m.transcript.busy && m.isUnattended
	if isUnattended {
		for _, row := range m.transcript.wrap(show.Unattended) {
			parts = append(parts, style.Dim(row))
		}
	}
	if m.transcript.busy && (!isUnattended || m.transcript.interrupting) {
		parts = append(parts, style.Dim(m.spinner.View()+" "+m.transcript.doing()))
	}
	if m.transcript.busy && m.isUnreachable {
		parts = append(parts, style.Dim("Temporal is unreachable; waiting for it"))
	}
	for _, a := range m.attachments {
		parts = append(parts, style.Dim("with the next message: "+attachmentName(a)))
	}
	if m.statusText != "" {
		parts = append(parts, style.Dim(m.statusText))
	}
	if prompt := m.promptRows(); prompt != nil {
		parts = append(parts, prompt...)
	} else {
		parts = append(parts, m.line.view())
	}
	// A view that fills the terminal could not be erased after the terminal becomes lower.
	parts = parts[max(0, len(parts)-max(1, m.height-1)):]
	for i := range parts {
		parts[i] = m.fit(strings.ReplaceAll(parts[i], "\n", " "))
	}
	return parts
}

func (m *Model) fit(text string) string { return ansi.Truncate(text, m.width, "…") }

// leave exits once everything is printed.
func (m *Model) leave() {
	m.transcript.flush()
	if text := m.farewell(); text != "" {
		m.transcript.remark(text)
	}
	m.leaving = true
}

// farewell describes what happens to the running turn after the screen has ended; "" for no turn.
func (m *Model) farewell() string {
	waiting, _ := m.transcript.waitingCall()
	var text string
	switch {
	case len(m.unsent) > 0:
		return "The last message may be lost: Temporal has not accepted it."
	case !m.transcript.busy:
		return ""
	case m.transcript.interrupting:
		text = "A worker stops the answer"
	case waiting >= 0:
		text = "A tool call waits for you"
	case m.isUnattended && !m.config.EndsAll:
		text = "The turn waits for a worker"
	case m.transcript.answering:
		text = "The answer continues"
	default:
		text = "The message is stored, and a worker answers it"
	}
	if m.config.EndsAll {
		return "The worker stops with this chat. " + text + " when the worker starts again."
	}
	return fmt.Sprintf("%s. To return: %s chat -n %s", text, m.config.Program, m.config.Context.Name())
}

const retryFollow = time.Second
