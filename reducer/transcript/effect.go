package transcript

// Effect is what an event does to a transcript. Effects know no index: what they
// are about they name by an id, and the [Patcher] knows where it stands.
type Effect interface{ effect() }

// AppendEntry adds an entry.
type AppendEntry struct {
	// ID is the id of the event, of the tool call, or of the request and attempt that
	// streams. A later entry with the same ID takes the name over.
	ID string
	// After is the event behind which the entry stands, and all that stands there
	// already. Empty: at the end.
	After string
	Entry Entry
}

// AppendText adds text to an entry that streams.
type AppendText struct {
	ID   string
	Text string
}

// RemoveEntry takes an entry away that streamed.
type RemoveEntry struct{ ID string }

// UpdateToolStatus says how far a call has come.
type UpdateToolStatus struct {
	ToolCallID string
	Status     Status
	ActionType ActionType
	Content    string
}

// EmitWarning tells the viewers what the transcript could not show.
type EmitWarning struct{ Message string }

func (AppendEntry) effect()      {}
func (AppendText) effect()       {}
func (RemoveEntry) effect()      {}
func (UpdateToolStatus) effect() {}
func (EmitWarning) effect()      {}
