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
	// EventID is the recorded event of a user_message or an assistant_message, at which the context can be forked.
	EventID   string    `json:"event_id,omitempty"`
	EntryType EntryType `json:"entry_type"`
	// The text of a message or note, usually Markdown; for a tool_use, a one-line summary.
	Content string `json:"content"`
	// The deltas of a streaming answer: Content is empty, and the text is their concatenation. Boundaries have no
	// meaning. A patch appends a delta at `/entries/N/content/chunks/-`. When the answer is recorded, an entry without
	// chunks replaces this one.
	Chunks []string `json:"chunks,omitempty" schema:"min=1"`
	// Whether the answer is partial: it was stopped before its end.
	Partial     bool         `json:"partial,omitempty"`
	Attachments []Attachment `json:"attachments,omitempty"` // files of a user_message
	// For a tool_use without a result: its newest progress. A patch replaces it at `/entries/N/content/progress`.
	Progress string `json:"progress,omitempty"`
	// For a tool_use: the time of its result; absent: no result.
	ResultTimestamp time.Time `json:"result_timestamp,omitzero"`
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
	Size      int64  `json:"size,omitempty"`     // in bytes; absent: unknown
	URL       string `json:"url,omitempty"`      // the URL, for a file on the web
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

	ToolName   string      `json:"tool_name,omitempty"`   // for a tool_use: the name of the tool
	ActionType *ActionType `json:"action_type,omitempty"` // for a tool_use
	// For a tool_use: the status of the call. A `pending_approval` with an Approval waits for an ApprovalDecidedEvent,
	// a `pending_client` for a ToolResultEvent.
	Status Status `json:"status,omitempty"`
	// For a tool_use of a request: the `toolCallId` of the events about it.
	ToolCallID string `json:"tool_call_id,omitempty"`
	// For a tool_use that requires or required an approval.
	Approval *Approval `json:"approval,omitempty"`
	Question *Question `json:"question,omitempty"` // for a tool_use with the status `pending_client`

	// For a system_message or error_message: the subject; `hook`: the first line is what a hook did, and the others
	// are what it changed; `transcript` reports input that this document does not show.
	Subtype Subtype `json:"subtype,omitempty"`
	Level   Level   `json:"level,omitempty"` // for a system_message: the severity; `info` is unobtrusive

	// For a token_usage_info; absent: unknown, as for the fields below.
	Model       string `json:"model,omitempty"`
	InputTokens int    `json:"input_tokens,omitempty"`
	// Input tokens that the provider read from its cache.
	CachedTokens    int `json:"cached_tokens,omitempty"`
	OutputTokens    int `json:"output_tokens,omitempty"`
	ReasoningTokens int `json:"reasoning_tokens,omitempty"` // output tokens that are reasoning
	// Whether the worker counted the tokens, because the provider reported none.
	Estimated  bool   `json:"estimated,omitempty"`
	CostMicros *int64 `json:"cost_micros,omitempty"` // the cost in millionths of a US dollar
	// Quirks are those of all attempts of the request.
	Quirks []string `json:"quirks,omitempty" schema:"is=Quirks"`
	// For the token_usage_info of a request with tool calls: the number of answers of the model, whose tokens, costs
	// and times are added up.
	Steps int `json:"steps,omitempty" schema:"min=2"`
	// For a token_usage_info: the number of attempts that were retried, or after which the request fell back, and
	// whose tokens and costs are included.
	FailedAttempts int `json:"failed_attempts,omitempty" schema:"min=1"`
	// For a token_usage_info: the time of the answer or of the agent's run. For a tool_use: the duration of the call;
	// if an agent or a client made it, the time from the call to its result.
	DurationMs int64 `json:"duration_ms,omitempty"`

	FailureKind event.FailureKind `json:"kind,omitempty"` // For an error_message of a failed request
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
	// The indented JSON of the arguments to decide about, as text, because many parsers round numbers; absent after
	// the decision.
	Arguments string         `json:"arguments,omitempty" schema:"media=application/json"`
	ExpiresAt time.Time      `json:"expires_at,omitzero"` // when the call fails without a decision
	Decision  event.Decision `json:"decision,omitempty"`  // absent: not decided
	Reason    string         `json:"reason,omitempty"`
	DecidedBy string         `json:"decided_by,omitempty"` // who decided; not verified
	Edited    bool           `json:"edited,omitempty"`     // whether the decision replaced the arguments
}

// Question is what a client needs to know to send the result of a tool call.
type Question struct {
	// The indented JSON of the arguments, as text, because many parsers round numbers.
	Arguments   string `json:"arguments,omitempty" schema:"media=application/json"`
	Description string `json:"description,omitempty"` // the description of the tool
	// The JSON Schema of the arguments of the tool.
	Schema json.RawMessage `json:"schema,omitempty" schema:"type=object"`
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

	// For a file_read, file_edit or search: the path, relative to the working folder of the agent if it is inside.
	Path    string       `json:"path,omitempty"`
	Changes []FileChange `json:"changes,omitempty"` // for a file_edit, in order
	Command string       `json:"command,omitempty"` // for a command_run: the command line
	Query   string       `json:"query,omitempty"`   // for a search: the pattern or text
	URL     string       `json:"url,omitempty"`     // for a web_fetch
	Todos   []Todo       `json:"todos,omitempty"`   // for a todo_management
	Plan    string       `json:"plan,omitempty"`    // for a plan_presentation, in Markdown
	// For any other action: what it does. For a plan_presentation: the reason for it.
	Description string          `json:"description,omitempty"`
	Arguments   json.RawMessage `json:"arguments,omitempty"` // the arguments of a tool: any JSON
	// The result: a CommandResult for a command_run, any JSON for a tool, a text for others. For a file_read,
	// file_edit, todo_management or plan_presentation, only an error.
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
	Action Change `json:"action"`
	// The path of the changed file; absent if all changes of the file_edit are to the same file.
	Path    string `json:"path,omitempty"`
	Content string `json:"content,omitempty"` // the content that is written; absent: empty
	To      string `json:"to,omitempty"`      // the new name in a rename
	// The edit as a unified diff. Line numbers match the file only if the agent knew them.
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
	ExitStatus *int   `json:"exit_status,omitempty"` // absent: unknown
	Output     string `json:"output"`
}
