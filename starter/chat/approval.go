package chat

import (
	"cmp"
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
// prompt appears makes no decision.
const promptDelay = 500 * time.Millisecond

// approval is the prompt about a call that waits for an approval. It replaces an empty input line.
type approval struct {
	// call is the id of the call in the prompt; "" for none.
	call string
	// isReady is set when the prompt accepts keys.
	isReady bool
	// mode is what the input line edits.
	mode approvalMode
	// isLater is set after the user postponed the decision; /approve shows the prompt again.
	isLater bool
}

type approvalMode int

const (
	askDecision approvalMode = iota
	editArguments
	enterReason
)

type promptReady struct{ call string }

// showPrompt starts or ends the prompt when the calls have changed.
func (m *Model) showPrompt() tea.Cmd {
	i, _ := m.transcript.waitingCall()
	if i < 0 {
		if m.approval.mode != askDecision {
			m.line.clear()
		}
		m.approval = approval{}
		return nil
	}
	id := m.transcript.calls[i].id
	if m.approval.call == id || m.approval.isLater || m.line.text() != "" && m.approval.mode == askDecision {
		return nil
	}
	if m.approval.mode != askDecision {
		m.line.clear()
	}
	m.approval = approval{call: id}
	return tea.Tick(min(promptDelay, cmp.Or(m.config.RecordTimeout, defaultRecordTimeout)), func(time.Time) tea.Msg { return promptReady{id} })
}

// approvalKey handles the keys of the prompt. It returns false for keys that the prompt does not
// handle.
func (m *Model) approvalKey(key tea.KeyPressMsg) (cmd tea.Cmd, ok bool) {
	i, _ := m.transcript.waitingCall()
	if m.approval.call == "" || i < 0 {
		return nil, false
	}
	stroke := key.Keystroke()
	if m.approval.mode != askDecision {
		switch stroke {
		case "esc":
			m.line.clear()
			m.approval.mode = askDecision
			return nil, true
		case "enter":
			return m.enterDecision(m.transcript.calls[i]), true
		}
		return nil, false
	}
	switch {
	case stroke == "ctrl+c", stroke == "ctrl+d":
		return nil, false
	case !m.approval.isReady:
	case key.Text == "y":
		return m.decide(event.ApprovalDecided{Decision: event.Approve}), true
	case key.Text == "n":
		m.approval.mode = enterReason
	case key.Text == "e":
		m.approval.mode = editArguments
		m.line.set(string(m.transcript.calls[i].arguments))
	case stroke == "esc":
		m.approval = approval{isLater: true}
		m.statusText = "/approve shows the approval again"
	default:
		m.statusText = "y approves, n denies, e edits the arguments, Esc postpones the decision"
	}
	return nil, true
}

// enterDecision sends the decision with the reason or the arguments in the input line.
func (m *Model) enterDecision(c call) tea.Cmd {
	text := m.line.text()
	if m.approval.mode == enterReason {
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
	if text != string(c.arguments) {
		decision.Parameters = json.RawMessage(text)
	}
	return m.decide(decision)
}

// undecided means that a decision could not be sent.
type undecided struct {
	call string
	err  error
}

func (m *Model) decide(decision event.ApprovalDecided) tea.Cmd {
	decision.ToolCallID, decision.DecidedBy = m.approval.call, m.config.User
	m.approval = approval{}
	i := m.transcript.callAt(decision.ToolCallID)
	m.transcript.calls[i].isDecided = true
	return func() tea.Msg {
		_, err := m.config.Context.Send(m.ctx, event.New(decision))
		if err != nil && !errors.Is(err, client.ErrRefused) { // the log shows the rejection
			return undecided{decision.ToolCallID, err}
		}
		return nil
	}
}

func (m *Model) takeUndecided(msg undecided) {
	if i := m.transcript.callAt(msg.call); i >= 0 {
		m.transcript.calls[i].isDecided = false
	}
	m.transcript.note(notice{err: fmt.Errorf("decision not sent: %w", msg.err)})
}

// promptRows replaces the input line while the user decides.
func (m *Model) promptRows() []string {
	i, count := m.transcript.waitingCall()
	if m.approval.call == "" || i < 0 {
		return nil
	}
	tool := terminal.Clean(m.transcript.calls[i].tool)
	switch m.approval.mode {
	case enterReason:
		return []string{"deny " + tool + ": reason, or Enter for none · Esc cancels", m.line.view()}
	case editArguments:
		return []string{"approve " + tool + " with these arguments: Enter · Esc cancels", m.line.view()}
	}
	text := "approve " + tool + "? y yes · n no · e edit · Esc later"
	if count > 1 {
		text += fmt.Sprintf(" · %d more wait", count-1)
	}
	return []string{m.config.Style.Yellow(text)}
}
