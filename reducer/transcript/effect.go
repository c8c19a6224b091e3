package transcript

import (
	"encoding/json"
	"time"
)

// Effect is a change to a transcript. It identifies an entry by id.
type Effect interface{ effect() }

// AppendEntry adds an entry.
type AppendEntry struct {
	ID string // of an event, a tool call or a streaming entry; later effects change the newest entry with it
	// SessionID is the agent's session of a tool call; "" if unknown. Call ids are unique in it.
	SessionID string
	After     string // event id whose entries precede the new one; "" appends to the document
	Entry     Entry
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
	ToolCallID      string
	SessionID       string
	MessageID       string // of the message with the call; "" if unknown
	ResultMessageID string // of the message with the result, in the agent's log; "" if unknown
	Status          Status
	ActionType      ActionType
	Content         string
	Timestamp       time.Time // of the result
	DurationMs      int64     // see [EntryType]; 0 if unknown
}

// UpdateApproval shows that a tool call requires an approval, or the decision.
type UpdateApproval struct {
	ToolCallID string
	SessionID  string
	Status     Status
	Approval   Approval
	// ActionType and Content show edited arguments.
	ActionType ActionType
	Content    string
	Question   *Question
}

// UpdateProgress replaces the progress of a running tool call.
type UpdateProgress struct {
	ToolCallID string
	SessionID  string
	Text       string
}

// EmitWarning adds a warning about input that the transcript does not show: a malformed line, a
// call with the id of an open call, or a result dropped before its call.
type EmitWarning struct {
	Message  string
	Metadata json.RawMessage
}

func (AppendEntry) effect()      {}
func (AppendText) effect()       {}
func (RemoveEntry) effect()      {}
func (UpdateToolStatus) effect() {}
func (UpdateApproval) effect()   {}
func (UpdateProgress) effect()   {}
func (EmitWarning) effect()      {}
