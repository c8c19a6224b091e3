package transcript

import (
	"encoding/json"
	"time"
)

// StateView is the part of a [State] about tool calls, for goldens.
type StateView struct {
	PendingCalls   []CallView   `json:"pending_calls,omitempty"`
	AnsweredCalls  []CallView   `json:"answered_calls,omitempty"` // newest first
	PendingResults []ResultView `json:"pending_results,omitempty"`
}

// CallView is a tool call of a state.
type CallView struct {
	ToolCallID string     `json:"tool_call_id"`
	SessionID  string     `json:"session_id,omitempty"`
	ToolName   string     `json:"tool_name"`
	MessageID  string     `json:"message_id,omitempty"`
	ActionType ActionType `json:"action_type"`
	Content    string     `json:"content"`
	Timestamp  time.Time  `json:"timestamp"`
}

// ResultView is a result that waits for its call.
type ResultView struct {
	ToolCallID string          `json:"tool_call_id"`
	SessionID  string          `json:"session_id,omitempty"`
	MessageID  string          `json:"message_id,omitempty"`
	Payload    json.RawMessage `json:"payload"`
	IsError    bool            `json:"is_error"`
	Timestamp  time.Time       `json:"timestamp"`
}

// View returns the view of a state.
func (s State) View() (view StateView) {
	viewOf := func(c *pendingCall) CallView {
		return CallView{c.id, c.session, c.tool, c.messageID, c.action, c.content, c.at}
	}
	for _, c := range s.open {
		view.PendingCalls = append(view.PendingCalls, viewOf(c))
	}
	for a := s.answered; a != nil; a = a.older {
		view.AnsweredCalls = append(view.AnsweredCalls, viewOf(a.pendingCall))
	}
	for _, r := range s.waiting {
		payload := r.body.Value
		if len(payload) == 0 {
			payload = r.body.Error
		}
		view.PendingResults = append(view.PendingResults, ResultView{r.id, r.session, r.messageID, payload, r.body.IsError, r.at})
	}
	return view
}
