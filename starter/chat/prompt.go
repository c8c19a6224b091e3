package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
)

// promptDelay is how long a new prompt ignores keys, so that text that is being typed when the
// prompt appears makes no decision. A question that another client answers in this time is not shown.
const promptDelay = 500 * time.Millisecond

// callPrompt asks about the oldest call that waits for the user. It replaces an empty input line.
type callPrompt struct {
	// call is the id of the call; "" for none. isApproval: it waits for an approval, otherwise for a result.
	call       string
	isApproval bool
	// isReady is set when the prompt accepts keys.
	isReady bool
	mode    promptMode
	// unedited are the arguments of the call as the line shows them for editing.
	unedited string
	// isLater is set after the user postponed the prompt; /answer shows it again.
	isLater bool
}

// promptMode is what the input line is for.
type promptMode int

const (
	noInput promptMode = iota
	editArguments
	enterReason
	enterAnswer
)

type promptReady struct {
	call       string
	isApproval bool
}

// showPrompt starts or ends the prompt when the calls have changed.
func (m *Model) showPrompt() tea.Cmd {
	i, _ := m.transcript.waitingCall()
	if i < 0 {
		m.endPrompt()
		return nil
	}
	c := m.transcript.calls[i]
	isShown := m.prompt.call == c.id && m.prompt.isApproval == c.isApproval()
	if isShown || m.prompt.isLater || m.line.text() != "" && m.prompt.mode == noInput {
		return nil
	}
	m.endPrompt()
	m.prompt = callPrompt{call: c.id, isApproval: c.isApproval()}
	ready := promptReady{c.id, c.isApproval()}
	return tea.Tick(min(promptDelay, m.config.RecordTimeout), func(time.Time) tea.Msg { return ready })
}

func (m *Model) endPrompt() {
	if m.prompt.mode != noInput {
		m.line.enter() // what was typed stays in the history of lines
	}
	m.prompt = callPrompt{}
}

func (m *Model) takeReady(msg promptReady) {
	if m.prompt.call != msg.call || m.prompt.isApproval != msg.isApproval {
		return
	}
	if !msg.isApproval {
		if m.line.text() != "" { // this line is a message
			m.prompt = callPrompt{}
			return
		}
		m.prompt.mode = enterAnswer
		m.transcript.printQuestion(m.transcript.callAt(msg.call))
	}
	m.prompt.isReady = true
}

// promptKey handles the keys of the prompt. It returns false for keys that the prompt does not
// handle.
func (m *Model) promptKey(key tea.KeyPressMsg) (cmd tea.Cmd, ok bool) {
	i, _ := m.transcript.waitingCall()
	if m.prompt.call == "" || i < 0 {
		return nil, false
	}
	stroke := key.Keystroke()
	switch m.prompt.mode {
	case enterAnswer:
		if stroke == "esc" { // what was typed can be sent as a message
			m.postpone()
			return nil, true
		}
		return nil, false
	case editArguments, enterReason:
		switch stroke {
		case "esc":
			m.line.clear()
			m.prompt.mode = noInput
			return nil, true
		case "enter":
			return m.enterDecision(m.transcript.calls[i]), true
		}
		return nil, false
	}
	switch {
	case !m.prompt.isApproval, stroke == "ctrl+c", stroke == "ctrl+d":
		return nil, false
	case !m.prompt.isReady:
	case key.Text == "y":
		return m.decide(event.ApprovalDecided{Decision: event.Approve}), true
	case key.Text == "n":
		m.prompt.mode = enterReason
	case key.Text == "e":
		m.prompt.mode = editArguments
		m.line.set(string(terminal.EscapeJSON(m.transcript.calls[i].arguments)))
		m.prompt.unedited = m.line.text()
	case stroke == "esc":
		m.postpone()
	default:
		m.statusText = "y approves, n denies, e edits the arguments, Esc postpones the decision"
	}
	return nil, true
}

func (m *Model) postpone() {
	m.prompt = callPrompt{isLater: true}
	m.statusText = "/answer asks again"
}

// enterDecision sends the decision with the reason or the arguments in the input line.
func (m *Model) enterDecision(c call) tea.Cmd {
	text := m.line.text()
	if m.prompt.mode == enterReason {
		m.line.clear()
		return m.decide(event.ApprovalDecided{Decision: event.Deny, Reason: text})
	}
	var arguments map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &arguments) != nil || arguments == nil {
		m.statusText = "the arguments are not a JSON object (Esc cancels)"
		return nil
	}
	m.line.clear()
	decision := event.ApprovalDecided{Decision: event.Approve}
	if text != m.prompt.unedited {
		decision.Parameters = json.RawMessage(text)
	}
	return m.decide(decision)
}

// decide sends a decision about the oldest waiting call.
func (m *Model) decide(decision event.ApprovalDecided) tea.Cmd {
	i, _ := m.transcript.waitingCall()
	decision.ToolCallID, decision.DecidedBy = m.transcript.calls[i].id, m.config.User
	return m.sendAbout(i, "decision", decision)
}

// answer sends a text as the result of the call in the prompt, or explains why the line that was typed
// is not a result.
func (m *Model) answer(text, typed string) tea.Cmd {
	i := m.transcript.callAt(m.prompt.call)
	value, err := m.transcript.questionOf(m.transcript.calls[i]).result(text)
	if err != nil {
		m.line.set(typed)
		m.statusText = err.Error()
		return nil
	}
	return m.sendAbout(i, "answer", event.ToolResult{ToolCallID: m.prompt.call, Value: value})
}

// decline denies the oldest waiting call, or reports to the model that the user does not answer it.
func (m *Model) decline(reason string) tea.Cmd {
	i, _ := m.transcript.waitingCall()
	if i < 0 {
		m.statusText = "no call waits for you"
		return nil
	}
	c := m.transcript.calls[i]
	if c.isApproval() {
		return m.decide(event.ApprovalDecided{Decision: event.Deny, Reason: reason})
	}
	text := "the user declined to answer"
	if reason != "" {
		text += ": " + reason
	}
	problem, _ := json.Marshal(text)
	return m.sendAbout(i, "answer", event.ToolResult{ToolCallID: c.id, Error: problem, IsError: true})
}

// notSent means that the decision or answer about a call could not be sent.
type notSent struct {
	call string
	err  error
}

// sendAbout ends the prompt and sends an event about the call at an index.
func (m *Model) sendAbout(i int, what string, body event.Body) tea.Cmd {
	m.prompt = callPrompt{}
	c := &m.transcript.calls[i]
	c.isSent = true
	id, to := c.id, m.config.Context
	return func() tea.Msg {
		_, err := to.Send(m.ctx, event.New(body))
		if err != nil && !errors.Is(err, client.ErrRefused) { // the log shows the rejection
			return notSent{id, fmt.Errorf("%s not sent: %w", what, err)}
		}
		return nil
	}
}

func (m *Model) takeNotSent(msg notSent) {
	if i := m.transcript.callAt(msg.call); i >= 0 {
		m.transcript.calls[i].isSent = false
	}
	m.transcript.note(notice{err: msg.err})
}

// promptRows replaces the input line while the user decides, and explains it while the user answers.
func (m *Model) promptRows() []string {
	i, count := m.transcript.waitingCall()
	if m.prompt.call == "" || i < 0 || !m.prompt.isApproval && !m.prompt.isReady {
		return nil
	}
	c := m.transcript.calls[i]
	tool := terminal.Line(c.tool)
	var text string
	switch m.prompt.mode {
	case enterReason:
		return []string{"deny " + tool + ": reason, or Enter for none · Esc cancels", m.line.view()}
	case editArguments:
		return []string{"approve " + tool + " with these arguments: Enter · Esc cancels", m.line.view()}
	case enterAnswer:
		text = "answer " + tool + ": " + m.transcript.questionOf(c).hint() + " · /deny declines · Esc writes a message"
	default:
		text = "approve " + tool + "? y yes · n no · e edit · Esc later"
	}
	if count > 1 {
		text += fmt.Sprintf(" · %d more wait", count-1)
	}
	rows := []string{m.config.Style.Yellow(text)}
	if m.prompt.mode == enterAnswer {
		rows = append(rows, m.line.view())
	}
	return rows
}
