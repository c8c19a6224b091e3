package transcript

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Document is a transcript as sent to viewers.
type Document struct {
	Entries []Item `json:"entries"`
}

// Item wraps an entry with its type.
type Item struct {
	// Type is always [NormalizedEntry].
	Type    string `json:"type"`
	Content Entry  `json:"content"`
}

// NormalizedEntry is the type of every [Item].
const NormalizedEntry = "NORMALIZED_ENTRY"

// Entry is a visible element of a transcript.
type Entry struct {
	// Timestamp is the time in the agent's log, else the time of recording. It is
	// omitted while an answer streams.
	Timestamp time.Time `json:"timestamp,omitzero"`
	EntryType EntryType `json:"entry_type"`
	// Content is the text of a message or note, or a one-line summary of a tool call.
	Content string `json:"content"`
	// Chunks are the text of a streaming answer, whose Content is empty. Their
	// boundaries are arbitrary. See [Entry.Text].
	Chunks []string `json:"chunks,omitempty"`
	// Partial marks an interrupted answer, or reasoning that was interrupted before the
	// answer.
	Partial bool `json:"partial,omitempty"`
	// Attachments are set on a user_message.
	Attachments []Attachment `json:"attachments,omitempty"`
	// Progress is the newest progress of a running tool call. Its result removes it.
	Progress string `json:"progress,omitempty"`
	// ResultTimestamp is the time of the result of a tool_use, omitted without a result.
	// Like Timestamp, it is that of the agent's log if known.
	ResultTimestamp time.Time `json:"result_timestamp,omitzero"`
	// Metadata is a JSON object with the fields of the event that its type does not define,
	// such as those of the line in the agent's log: messageId, sessionId, parentToolCallId.
	// sourceTimestamp and status are omitted, since other fields show them. Values longer
	// than 4 KiB are truncated texts, and fields beyond 16 KiB are omitted.
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// Text returns the text of the entry, streaming or not.
func (e Entry) Text() string { return e.Content + strings.Join(e.Chunks, "") }

// Attachment describes a file attached to a user message, without its bytes.
type Attachment struct {
	Name      string `json:"name"`
	MediaType string `json:"media_type"`
	// Size is in bytes; 0 means unknown.
	Size int64 `json:"size,omitempty"`
	// URL is set for a file on the web.
	URL string `json:"url,omitempty"`
	// EventID is the event that attached the file.
	EventID string `json:"event_id,omitempty"`
}

// Kind is the type of an entry.
type Kind string

const (
	UserMessage      Kind = "user_message"
	AssistantMessage Kind = "assistant_message"
	SystemMessage    Kind = "system_message"
	ErrorMessage     Kind = "error_message"
	Thinking         Kind = "thinking"
	ToolUse          Kind = "tool_use"
	TokenUsageInfo   Kind = "token_usage_info"
)

// EntryType classifies an entry. Type determines the other fields.
type EntryType struct {
	Type Kind `json:"type"`

	// ToolName is set on a tool_use.
	ToolName   string      `json:"tool_name,omitempty"`
	ActionType *ActionType `json:"action_type,omitempty"`
	Status     Status      `json:"status,omitempty"`
	// ToolCallID is set on a tool_use of a request.
	ToolCallID string `json:"tool_call_id,omitempty"`
	// Approval is set on a tool_use that requires or required an approval.
	Approval *Approval `json:"approval,omitempty"`

	// Subtype is set on a system_message and an error_message.
	Subtype Subtype `json:"subtype,omitempty"`
	// Level is set on a system_message.
	Level Level `json:"level,omitempty"`

	// Set on a token_usage_info, see [event.Usage]; 0 means unknown.
	Model           string `json:"model,omitempty"`
	InputTokens     int    `json:"input_tokens,omitempty"`
	CachedTokens    int    `json:"cached_tokens,omitempty"`
	OutputTokens    int    `json:"output_tokens,omitempty"`
	ReasoningTokens int    `json:"reasoning_tokens,omitempty"`
	Estimated       bool   `json:"estimated,omitempty"`
	CostMicros      *int64 `json:"cost_micros,omitempty"`
	// Steps is set on the token_usage_info of a request with tool calls: the number of answers
	// of the model. The usage and the duration are sums over them.
	Steps int `json:"steps,omitempty"`
	// FailedAttempts is set on a token_usage_info: the number of attempts that were retried, or
	// after which the request fell back, and whose usage is included.
	FailedAttempts int `json:"failed_attempts,omitempty"`
	// DurationMs is set on a token_usage_info, and on a tool_use with a result: the duration of
	// the call. For a call of an agent or a client it is the time between the two events. 0 means
	// unknown.
	DurationMs int64 `json:"duration_ms,omitempty"`

	// Set on the error_message of a failed request, see [event.LLMRequestFailed].
	FailureKind event.FailureKind `json:"kind,omitempty"`
	Retryable   bool              `json:"retryable,omitempty"`
}

// Status is the state of a tool call.
type Status string

const (
	Created Status = "created"
	Success Status = "success"
	Failed  Status = "failed"
	// Denied means that a person or a rule refused permission.
	Denied   Status = "denied"
	TimedOut Status = "timed_out"
	// PendingApproval is the status of a call that waits for an approval
	// ([event.ApprovalRequested]), or whose event has the extra field
	// "status": "pending_approval".
	PendingApproval Status = "pending_approval"
	// PendingClient is the status of a call of a client's tool, whose result a client sends.
	PendingClient Status = "pending_client"
)

// Approval is the approval of a tool call.
type Approval struct {
	// Arguments are the arguments to decide about. Unset after the decision.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// ExpiresAt is when the call fails without a decision.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	// Decision is empty until the decision is made. The fields below describe the decision.
	Decision event.Decision `json:"decision,omitempty"`
	Reason   string         `json:"reason,omitempty"`
	// DecidedBy names the person or program; "" if unknown.
	DecidedBy string `json:"decided_by,omitempty"`
	// Edited means that the decision replaced the arguments.
	Edited bool `json:"edited,omitempty"`
}

// Subtype is the topic of a system_message or error_message.
type Subtype string

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
	// SubtypeTranscript marks a warning about input that the transcript does not show
	// ([EmitWarning]).
	SubtypeTranscript Subtype = "transcript"
)

// Level is the severity of a system_message.
type Level string

const (
	Info    Level = "info"
	Warning Level = "warning"
)

// ActionType describes a tool call independently of the agent's tool names. Action
// determines which other fields can be set.
type ActionType struct {
	Action Action `json:"action"`

	// Path is set on a file_read, file_edit and search. A path below the agent's
	// working directory is relative to it.
	Path string `json:"path,omitempty"`
	// Changes are set on a file_edit.
	Changes []FileChange `json:"changes,omitempty"`
	// Command is set on a command_run.
	Command string `json:"command,omitempty"`
	// Query is set on a search.
	Query string `json:"query,omitempty"`
	// URL is set on a web_fetch.
	URL string `json:"url,omitempty"`
	// Todos are set on a todo_management.
	Todos []Todo `json:"todos,omitempty"`
	// Plan is Markdown, set on a plan_presentation.
	Plan string `json:"plan,omitempty"`
	// Description is set on another action, and on a plan_presentation with a reason.
	Description string `json:"description,omitempty"`
	// Arguments are the JSON arguments of a generic tool.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Result is a [CommandResult] for a command_run, any JSON for a tool, and a string
	// for other actions. On a file_edit, todo_management and plan_presentation it is
	// set for errors only.
	Result json.RawMessage `json:"result,omitempty"`
}

// Action is the type of an action.
type Action string

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

// FileChange is one change to a file.
type FileChange struct {
	// Action is one of [Write], [Delete], [Rename] and [Edit].
	Action Change `json:"action"`
	// Path is set on an action with several files.
	Path string `json:"path,omitempty"`
	// Content is the new content of a write.
	Content string `json:"content,omitempty"`
	// To is the new name of a rename.
	To string `json:"to,omitempty"`
	// UnifiedDiff is the diff of an edit. Its line numbers are relative to the excerpt
	// unless the agent reported the diff.
	UnifiedDiff string `json:"unified_diff,omitempty"`
}

// Change is a way to change a file.
type Change string

const (
	Write  Change = "write"
	Delete Change = "delete"
	Rename Change = "rename"
	Edit   Change = "edit"
)

// Todo is an item of a todo list.
type Todo struct {
	Content string `json:"content"`
	// Status is the agent's term, such as pending, in_progress or completed.
	Status string `json:"status,omitempty"`
	// Priority is the agent's term, such as high, medium or low; "" if unknown.
	Priority string `json:"priority,omitempty"`
}

// CommandResult is the outcome of a command.
type CommandResult struct {
	// ExitStatus is nil if unknown.
	ExitStatus *int   `json:"exit_status,omitempty"`
	Output     string `json:"output"`
}
