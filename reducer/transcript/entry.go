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

// Item wraps an [Entry].
type Item struct {
	Type    string `json:"type" schema:"const=NormalizedEntry"`
	Content Entry  `json:"content"`
}

// NormalizedEntry is the type of every [Item].
const NormalizedEntry = "NORMALIZED_ENTRY"

// Entry is a visible element of a transcript.
type Entry struct {
	// Timestamp is from the agent's log, else of the recording. A streaming answer has none.
	Timestamp time.Time `json:"timestamp,omitzero"`
	EntryType EntryType `json:"entry_type"`
	Content   string    `json:"content"` // text of a message or note, or a one-line summary of a tool call
	// Chunks are the text of a streaming answer, split arbitrarily, while Content is empty.
	Chunks          []string     `json:"chunks,omitempty" schema:"min=1"`
	Partial         bool         `json:"partial,omitempty"`         // interrupted answer or reasoning
	Attachments     []Attachment `json:"attachments,omitempty"`     // files of a user_message
	Progress        string       `json:"progress,omitempty"`        // newest progress of a running tool call
	ResultTimestamp time.Time    `json:"result_timestamp,omitzero"` // of a tool_use; see Timestamp
	// Metadata is a JSON object with the messageId of an agent's or client's call, and the extra fields
	// of the event, such as sessionId and parentToolCallId, but not sourceTimestamp and status. Values
	// longer than 4 KiB become truncated texts, and fields beyond 16 KiB are omitted.
	Metadata json.RawMessage `json:"metadata,omitempty" schema:"type=object"`
}

// Text returns the text of the entry, streaming or not.
func (e Entry) Text() string { return e.Content + strings.Join(e.Chunks, "") }

// Attachment describes a file attached to a user message, without its bytes.
type Attachment struct {
	Name      string `json:"name"`
	MediaType string `json:"media_type"`
	Size      int64  `json:"size,omitempty"`     // in bytes; 0 means unknown
	URL       string `json:"url,omitempty"`      // of a file on the web
	EventID   string `json:"event_id,omitempty"` // the event with the file
}

// Kind is the type of an entry.
type Kind string

// Types of entries.
const (
	UserMessage      Kind = "user_message"
	AssistantMessage Kind = "assistant_message"
	SystemMessage    Kind = "system_message"
	ErrorMessage     Kind = "error_message"
	Thinking         Kind = "thinking"
	ToolUse          Kind = "tool_use"
	TokenUsageInfo   Kind = "token_usage_info"
)

// EntryType classifies an entry. Type determines which other fields can be set.
//
//schema:rules {"if":{"properties":{"type":{"const":"tool_use"}}},"then":{"required":["tool_name","action_type","status"]}}
type EntryType struct {
	Type Kind `json:"type"`

	// Set on a tool_use.
	ToolName   string      `json:"tool_name,omitempty"`
	ActionType *ActionType `json:"action_type,omitempty"` // for a tool_use
	// For a tool_use: the status of the call. A `pending_approval` with an `approval` waits for an ApprovalDecidedEvent,
	// a `pending_client` for a ToolResultEvent.
	Status     Status    `json:"status,omitempty"`
	ToolCallID string    `json:"tool_call_id,omitempty"` // of a call of a request
	Approval   *Approval `json:"approval,omitempty"`     // if required
	Question   *Question `json:"question,omitempty"`     // while the call waits for a client

	// Set on a system_message, and Subtype on an error_message.
	Subtype Subtype `json:"subtype,omitempty"`
	Level   Level   `json:"level,omitempty"` // for a system_message: the severity; `info` is unobtrusive

	// Set on a token_usage_info, see [event.Usage]; 0 means unknown.
	Model           string `json:"model,omitempty"`
	InputTokens     int    `json:"input_tokens,omitempty"`
	CachedTokens    int    `json:"cached_tokens,omitempty"` // input tokens that the provider read from its cache
	OutputTokens    int    `json:"output_tokens,omitempty"`
	ReasoningTokens int    `json:"reasoning_tokens,omitempty"` // output tokens that are reasoning
	// Whether the worker counted the tokens, because the provider reported none.
	Estimated  bool   `json:"estimated,omitempty"`
	CostMicros *int64 `json:"cost_micros,omitempty"` // the cost in millionths of a US dollar
	// Quirks are those of all attempts of the request.
	Quirks []string `json:"quirks,omitempty" schema:"is=Quirks"`
	// Steps is the number of answers, if above 1. Usage and duration are sums over them.
	Steps int `json:"steps,omitempty" schema:"min=2"`
	// FailedAttempts counts the attempts that used tokens and ended before a retry or a fallback. Their
	// usage is included.
	FailedAttempts int `json:"failed_attempts,omitempty" schema:"min=1"`
	// DurationMs is also set on a tool_use with a result. If the result of an agent or a client has no
	// duration, it is the time between the call and the result.
	DurationMs int64 `json:"duration_ms,omitempty"`

	// Set on the error_message of a failed request, see [event.LLMRequestFailed].
	FailureKind event.FailureKind `json:"kind,omitempty"`
	// For an error_message of a failed request: whether the same request may succeed later.
	Retryable bool `json:"retryable,omitempty"`
}

// Status is the state of a tool call.
type Status string

// States of a tool call.
const (
	Created         Status = "created" // no result yet
	Success         Status = "success"
	Failed          Status = "failed"
	Denied          Status = "denied" // by a person or a rule
	TimedOut        Status = "timed_out"
	PendingApproval Status = "pending_approval" // [event.ApprovalRequested], or extra field "status"
	PendingClient   Status = "pending_client"   // a client sends the result
)

// Approval is the approval of a tool call.
type Approval struct {
	// Arguments are the indented JSON of the arguments to decide about, as text: JavaScript rounds
	// numbers. Unset after the decision.
	Arguments string         `json:"arguments,omitempty" schema:"media=application/json"`
	ExpiresAt time.Time      `json:"expires_at,omitzero"` // when the call fails without a decision
	Decision  event.Decision `json:"decision,omitempty"`  // empty until made; the fields below describe it
	Reason    string         `json:"reason,omitempty"`
	DecidedBy string         `json:"decided_by,omitempty"` // person or program; "" if unknown
	Edited    bool           `json:"edited,omitempty"`     // the decision replaced the arguments
}

// Question is what a client needs to know to send the result of a tool call.
type Question struct {
	Arguments   string          `json:"arguments,omitempty" schema:"media=application/json"` // indented JSON; see [Approval]
	Description string          `json:"description,omitempty"`                               // of the tool
	Schema      json.RawMessage `json:"schema,omitempty" schema:"type=object"`               // JSON Schema of the arguments, of the tool
}

// Subtype is the topic of a system_message or error_message.
type Subtype string

// Subtypes of entries.
const (
	SubtypePrompt         Subtype = "prompt"
	SubtypeSettings       Subtype = "settings"
	SubtypeSessionStarted Subtype = "session_started"
	SubtypeSessionEnded   Subtype = "session_ended"
	SubtypeInterrupted    Subtype = "interrupted"
	SubtypeFellBack       Subtype = "fell_back"
	SubtypeRequestFailed  Subtype = "request_failed"
	SubtypeRejected       Subtype = "rejected"
	SubtypeHook           Subtype = "hook"      // further lines of Content show what the hook changed
	SubtypeCompacted      Subtype = "compacted" // further lines of Content are the summary
	SubtypeContentRefused Subtype = "content_refused"
	SubtypeNote           Subtype = "note"
	SubtypeTranscript     Subtype = "transcript" // [EmitWarning]
)

// Level is the severity of a system_message.
type Level string

// Levels of entries.
const (
	Info    Level = "info"
	Warning Level = "warning"
)

// ActionType describes a call independently of the agent. Action determines the other fields.
//
//schema:rules {"if":{"properties":{"action":{"const":"command_run"}}}}
//schema:rules {"then":{"properties":{"result":{"$ref":"CommandResult"}}}}
type ActionType struct {
	Action Action `json:"action"`

	// Path of a file_read, file_edit or search; relative if below the agent's working directory.
	Path        string          `json:"path,omitempty"`
	Changes     []FileChange    `json:"changes,omitempty"`     // of a file_edit
	Command     string          `json:"command,omitempty"`     // of a command_run
	Query       string          `json:"query,omitempty"`       // of a search
	URL         string          `json:"url,omitempty"`         // of a web_fetch
	Todos       []Todo          `json:"todos,omitempty"`       // of a todo_management
	Plan        string          `json:"plan,omitempty"`        // Markdown of a plan_presentation
	Description string          `json:"description,omitempty"` // of action other, or the reason for a plan
	Arguments   json.RawMessage `json:"arguments,omitempty"`   // JSON of a generic tool
	// Result is a [CommandResult] for a command_run, any JSON for a tool, else a string. On a
	// file_edit, todo_management and plan_presentation it is set for errors only.
	Result json.RawMessage `json:"result,omitempty"`
}

// Action is the type of an action.
type Action string

// Types of actions.
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
	Action  Change `json:"action"`
	Path    string `json:"path,omitempty"`    // set if an action has several files
	Content string `json:"content,omitempty"` // new content of a write
	To      string `json:"to,omitempty"`      // new name of a rename
	// UnifiedDiff numbers lines from the start of the excerpt, unless the agent reported the diff.
	UnifiedDiff string `json:"unified_diff,omitempty"`
}

// Change is a way to change a file.
type Change string

// Ways to change a file.
const (
	Write  Change = "write"
	Delete Change = "delete"
	Rename Change = "rename"
	Edit   Change = "edit"
)

// Todo is an item of a todo list. Status and Priority are the agent's terms, such as in_progress.
type Todo struct {
	Content string `json:"content"`
	// In the agent's words, such as pending, in_progress or completed.
	Status   string `json:"status,omitempty"`
	Priority string `json:"priority,omitempty"` // in the agent's words, such as high, medium or low
}

// CommandResult is the outcome of a command.
type CommandResult struct {
	ExitStatus *int   `json:"exit_status,omitempty"` // nil if unknown
	Output     string `json:"output"`
}
