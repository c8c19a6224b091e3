package event

import "cmp"

// Note is a note of an agent. Viewers see it; models do not.
//
//doc:effect none; information for viewers
type Note struct {
	Kind    NoteKind `json:"kind"`
	Content string   `json:"content"`
}

const TagNote Tag = "NoteEvent"

func (Note) Tag() Tag { return TagNote }

func (b Note) validate() error {
	return cmp.Or(known("kind", b.Kind), text("content", b.Content))
}

func (b Note) Words() (subject, text string) { return string(b.Kind), b.Content }

func (Note) example() Body { return Note{Kind: NoteThinking, Content: "The user greets me"} }

// NoteKind classifies a [Note].
type NoteKind string

// Kinds of notes.
const (
	NoteThinking NoteKind = "thinking"
	NoteError    NoteKind = "error"
	NoteWarning  NoteKind = "warning"
	NoteSystem   NoteKind = "system"
	NoteUsage    NoteKind = "usage"
)

// Values returns all values.
func (NoteKind) Values() []NoteKind {
	return []NoteKind{NoteThinking, NoteError, NoteWarning, NoteSystem, NoteUsage}
}
