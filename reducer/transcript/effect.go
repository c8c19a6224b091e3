package transcript

import (
	"encoding/json"
	"time"
)

// Effect is a change to a transcript. It identifies an entry by id.
type Effect interface{ effect() }

// AppendEntry adds an entry.
type AppendEntry struct {
	// ID is an event id, a tool call id, or the request, the attempt and the kind of a
	// streaming entry. Effects apply to the newest entry with their id.
	ID string
	// SessionID is the agent's session of a tool call, "" if unknown. Sessions may use the
	// same tool call ids.
	SessionID string
	// After is an event id. The entry follows the existing entries of that event; ""
	// appends it to the document.
	After string
	Entry Entry
}

// AppendText appends text to a streaming entry.
type AppendText struct {
	ID   string
	Text string
}

// RemoveEntry removes a streaming entry.
type RemoveEntry struct{ ID string }

// UpdateToolStatus updates a tool call with its result.
type UpdateToolStatus struct {
	ToolCallID string
	// SessionID is that of the call's [AppendEntry].
	SessionID string
	// MessageID is the message that made the call, "" if unknown.
	MessageID  string
	Status     Status
	ActionType ActionType
	Content    string
	// Timestamp is the time of the result.
	Timestamp time.Time
	// DurationMs is the duration of the call, see [EntryType]; 0 if unknown.
	DurationMs int64
}

// UpdateApproval shows that a tool call requires an approval, or the decision.
type UpdateApproval struct {
	ToolCallID string
	// SessionID is that of the call's [AppendEntry].
	SessionID string
	Status    Status
	Approval  Approval
	// ActionType and Content show edited arguments.
	ActionType ActionType
	Content    string
}

// UpdateProgress replaces the progress of a running tool call.
type UpdateProgress struct {
	ToolCallID string
	// SessionID is that of the call's [AppendEntry].
	SessionID string
	Text      string
}

// EmitWarning adds a warning about input that the transcript does not show: a malformed line of
// an agent's log, a call with the id of an open call, or a result that waited too long for its
// call.
type EmitWarning struct {
	Message string
	// Metadata is that of the entry ([Entry]).
	Metadata json.RawMessage
}

func (AppendEntry) effect()      {}
func (AppendText) effect()       {}
func (RemoveEntry) effect()      {}
func (UpdateToolStatus) effect() {}
func (UpdateApproval) effect()   {}
func (UpdateProgress) effect()   {}
func (EmitWarning) effect()      {}
