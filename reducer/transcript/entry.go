package transcript

import (
	"encoding/json"
	"strings"
	"time"
)

// Document is a transcript as viewers hold it.
type Document struct {
	Entries []Item `json:"entries"`
}

// Item is an entry with the word that says that it is one.
type Item struct {
	// Type is always [NormalizedEntry].
	Type    string `json:"type"`
	Content Entry  `json:"content"`
}

// NormalizedEntry is the type of every [Item].
const NormalizedEntry = "NORMALIZED_ENTRY"

// Entry is something to be seen in a transcript.
type Entry struct {
	// Timestamp is when it happened, as the agent says if it says so; zero, and not
	// in the JSON, while an answer streams.
	Timestamp time.Time `json:"timestamp,omitzero"`
	EntryType EntryType `json:"entry_type"`
	// Content is the text of a message or note. Of a tool it is a line that says
	// what the tool is to do.
	Content string `json:"content"`
	// Chunks are what has come of an answer that streams, and are there for as long
	// as it does; Content is empty then. Where one ends and the next begins means
	// nothing: see [Entry.Text].
	Chunks []string `json:"chunks,omitempty"`
	// Partial marks an answer that was cut off.
	Partial bool `json:"partial,omitempty"`
	// Attachments go with a user message.
	Attachments []Attachment `json:"attachments,omitempty"`
}

// Text is the text of the entry, whether it streams or not.
func (e Entry) Text() string { return e.Content + strings.Join(e.Chunks, "") }

// Attachment is a file that goes with a user message. The bytes are not in a
// transcript.
type Attachment struct {
	Name      string `json:"name"`
	MediaType string `json:"media_type"`
	// Size is the number of bytes; 0 means unknown.
	Size int64 `json:"size,omitempty"`
	// URL is where the file is, when it is on the web.
	URL string `json:"url,omitempty"`
	// EventID is the event that the file came with.
	EventID string `json:"event_id,omitempty"`
}

// Kind names the types of entries.
type Kind string

// The types of entries.
const (
	UserMessage      Kind = "user_message"
	AssistantMessage Kind = "assistant_message"
	SystemMessage    Kind = "system_message"
	ErrorMessage     Kind = "error_message"
	Thinking         Kind = "thinking"
	ToolUse          Kind = "tool_use"
	TokenUsageInfo   Kind = "token_usage_info"
)

// EntryType says what an entry is. Which fields it has depends on Type.
type EntryType struct {
	Type Kind `json:"type"`

	// ToolName is, of a tool_use, the name by which the tool was called.
	ToolName   string      `json:"tool_name,omitempty"`
	ActionType *ActionType `json:"action_type,omitempty"`
	Status     Status      `json:"status,omitempty"`

	// Subtype says, of a system_message or error_message, what it is about.
	Subtype Subtype `json:"subtype,omitempty"`
	// Level says, of a system_message, how much it matters.
	Level Level `json:"level,omitempty"`

	// The fields of a token_usage_info; 0 means unknown.
	Model        string `json:"model,omitempty"`
	InputTokens  int    `json:"input_tokens,omitempty"`
	OutputTokens int    `json:"output_tokens,omitempty"`
	DurationMs   int64  `json:"duration_ms,omitempty"`
}

// Status is how far the call of a tool has come.
type Status string

// The statuses of a call.
const (
	Created Status = "created"
	Success Status = "success"
	Failed  Status = "failed"
	// Denied says that the user, or a rule, did not let the tool do it.
	Denied   Status = "denied"
	TimedOut Status = "timed_out"
	// PendingApproval is the status of a call whose event says "status":
	// "pending_approval" beside its own fields.
	PendingApproval Status = "pending_approval"
)

// Subtype says what a system_message or error_message is about.
type Subtype string

// The subtypes.
const (
	SubtypePrompt         Subtype = "prompt"
	SubtypeSettings       Subtype = "settings"
	SubtypeSessionStarted Subtype = "session_started"
	SubtypeSessionEnded   Subtype = "session_ended"
	SubtypeInterrupted    Subtype = "interrupted"
	SubtypeFellBack       Subtype = "fell_back"
	SubtypeRequestFailed  Subtype = "request_failed"
	SubtypeRejected       Subtype = "rejected"
	SubtypeNote           Subtype = "note"
	// SubtypeTranscript is a warning of the transcript itself, see [EmitWarning].
	SubtypeTranscript Subtype = "transcript"
)

// Level says how much a system_message matters.
type Level string

// The levels. Info is unobtrusive.
const (
	Info    Level = "info"
	Warning Level = "warning"
)

// ActionType is what a tool does, whatever the agent calls the tool. Which fields
// it has depends on Action; those that nobody said are missing.
type ActionType struct {
	Action Action `json:"action"`

	// Path is, of a file_read, file_edit or search, where, relative to the folder
	// that the agent works in if it lies there.
	Path string `json:"path,omitempty"`
	// Changes are what a file_edit does, in order.
	Changes []FileChange `json:"changes,omitempty"`
	// Command is the line that a command_run runs.
	Command string `json:"command,omitempty"`
	// Query is what a search looks for.
	Query string `json:"query,omitempty"`
	URL   string `json:"url,omitempty"`
	// Todos are the items of a todo_management.
	Todos []Todo `json:"todos,omitempty"`
	// Plan is the Markdown of a plan_presentation.
	Plan string `json:"plan,omitempty"`
	// Description says what another action is.
	Description string `json:"description,omitempty"`
	// Arguments are what a tool was given, any JSON.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Result is what came of it: of a command_run a [CommandResult], of a tool any
	// JSON, of the others a text. What a file_edit, todo_management or
	// plan_presentation answers is kept when it is an error only.
	Result json.RawMessage `json:"result,omitempty"`
}

// Action names the types of actions.
type Action string

// The types of actions.
const (
	FileRead         Action = "file_read"
	FileEdit         Action = "file_edit"
	CommandRun       Action = "command_run"
	Search           Action = "search"
	WebFetch         Action = "web_fetch"
	TodoManagement   Action = "todo_management"
	PlanPresentation Action = "plan_presentation"
	Tool             Action = "tool"
	Other            Action = "other"
)

// FileChange is one change of a file.
type FileChange struct {
	// Action is one of [Write], [Delete], [Rename] and [Edit].
	Action Change `json:"action"`
	// Path is the file, in an action on more than one.
	Path string `json:"path,omitempty"`
	// Content is what a write writes; missing when that is nothing.
	Content string `json:"content,omitempty"`
	// To is the name that a rename gives.
	To string `json:"to,omitempty"`
	// UnifiedDiff is what an edit does. Its line numbers are those of the file only
	// when the agent knew them.
	UnifiedDiff string `json:"unified_diff,omitempty"`
}

// Change names the ways to change a file.
type Change string

// The ways to change a file.
const (
	Write  Change = "write"
	Delete Change = "delete"
	Rename Change = "rename"
	Edit   Change = "edit"
)

// Todo is an item of a list of things to do.
type Todo struct {
	Content string `json:"content"`
	// Status is in the agent's words, like pending, in_progress and completed.
	Status string `json:"status,omitempty"`
}

// CommandResult is what came of a command.
type CommandResult struct {
	// ExitStatus is nil when nobody said how the command ended.
	ExitStatus *int   `json:"exit_status,omitempty"`
	Output     string `json:"output"`
}
