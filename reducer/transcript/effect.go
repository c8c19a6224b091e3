package transcript

// Effect is a change that an event makes to a transcript. Effects identify entries by
// id; the [Patcher] knows their index.
type Effect interface{ effect() }

// AppendEntry adds an entry.
type AppendEntry struct {
	// ID is an event id, a tool call id, or the request and attempt that streams. A
	// later entry with the same ID replaces it as the target of effects.
	ID string
	// After is the id of the event that the entry follows, after any other entries
	// already there. Empty means at the end.
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

// EmitWarning warns viewers about something the transcript could not show.
type EmitWarning struct{ Message string }

func (AppendEntry) effect()      {}
func (AppendText) effect()       {}
func (RemoveEntry) effect()      {}
func (UpdateToolStatus) effect() {}
func (EmitWarning) effect()      {}
