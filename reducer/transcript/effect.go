package transcript

// Effect is a change to a transcript. It identifies an entry by id.
type Effect interface{ effect() }

// AppendEntry adds an entry.
type AppendEntry struct {
	// ID is an event id, a tool call id, or the request and attempt of a streaming
	// answer. Effects apply to the newest entry with their id.
	ID string
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

// UpdateToolStatus updates a tool call.
type UpdateToolStatus struct {
	ToolCallID string
	Status     Status
	ActionType ActionType
	Content    string
}

// EmitWarning adds a warning about something that the transcript does not show.
type EmitWarning struct{ Message string }

func (AppendEntry) effect()      {}
func (AppendText) effect()       {}
func (RemoveEntry) effect()      {}
func (UpdateToolStatus) effect() {}
func (EmitWarning) effect()      {}
