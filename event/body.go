package event

import (
	"encoding/json"
	"strings"
)

// SystemPrompt sets the system message of a context.
//
//doc:effect sets the system message; empty removes it
type SystemPrompt struct {
	Content string `json:"content"` // empty removes the message
}

// UserMessage is a message of the user, with all files attached since the previous message.
//
//doc:effect adds a user message with the pending attachments; requests an answer unless `triggersTurn` is false; `settings` are [request settings](#request-settings) for this turn only
type UserMessage struct {
	Content      string `json:"content"`                // may be empty if files are attached
	TriggersTurn *bool  `json:"triggersTurn,omitempty"` // whether the model answers; absent means true
	// Settings override those of the context while this is the newest message that triggers a turn. A queued
	// message counts from the time when the context answers it.
	Settings *RequestSettings `json:"settings,omitempty"`
}

// Triggers reports whether the model answers.
func (m UserMessage) Triggers() bool { return m.TriggersTurn == nil || *m.TriggersTurn }

// AssistantMessage is an answer of the model, or one supplied by a client.
//
//doc:effect adds an assistant message after the last message that its request contained
type AssistantMessage struct {
	Content string `json:"content"`
	// The request that the message answers; absent if a client sent it.
	RequestID string `json:"requestId,omitempty" schema:"id"`
	// The newest event that the request included: the message follows it, before later events. Absent: at the end.
	ThroughEventID string `json:"throughEventId,omitempty" schema:"id"`
	// Whether the answer is partial: it was stopped before its end. The content is empty if it was interrupted during
	// reasoning.
	Partial bool `json:"partial,omitempty"`
	// The reasoning text that the provider returned, at most [MaxReasoningBytes]. It is never sent to a model.
	Reasoning     string         `json:"reasoning,omitempty"`
	ProviderState *ProviderState `json:"providerState,omitempty"`
}

// Bounds of an [AssistantMessage].
const (
	// MaxAnswerBytes bounds the content of an answer of a worker: a history must be able to store it. A
	// longer answer is truncated and has the finish reason "length".
	MaxAnswerBytes        = 768 << 10
	MaxReasoningBytes     = 256 << 10
	MaxProviderStateBytes = 256 << 10
)

// ProviderState is what the provider of an answer receives back exactly, such as encrypted reasoning. It is sent only
// to the same model of the same provider at the same URL. Data, CallIDs or both are set.
//
//schema:rules {"anyOf":[{"required":["data"]},{"required":["callIds"]}],"properties":{"baseUrl":{"pattern":"^[Hh][Tt][Tt][Pp][Ss]?://"}}}
type ProviderState struct {
	ProviderID string          `json:"providerId" schema:"is=Name"`
	Model      string          `json:"model" schema:"is=Name"`
	BaseURL    string          `json:"baseUrl" schema:"max=maxURLBytes"`    // the URL that the answer came from
	Data       json.RawMessage `json:"data,omitempty" schema:"type=object"` // at most [MaxProviderStateBytes] of JSON
	// The ids of the tool calls as the provider sent them, in order, up to [MaxProviderStateBytes]; absent: those of
	// the [ToolCall] events.
	CallIDs []string `json:"callIds,omitempty" schema:"max=maxCallIDs"`
}

// UnmarshalJSON compacts Data without changing its values, because providers sign them.
func (s *ProviderState) UnmarshalJSON(data []byte) error {
	type plain ProviderState
	if err := json.Unmarshal(data, (*plain)(s)); err != nil {
		return err
	}
	if len(s.Data) == 0 {
		return nil
	}
	var err error
	s.Data, err = compact(s.Data)
	return err
}

// FileAttachment is a file that belongs to the next user message.
//
//schema:rules {"if":{"properties":{"source":{"required":["ref"]}}}}
//schema:rules {"then":{"required":["size"],"properties":{"size":{"minimum":1,"maximum":"$MaxAttachmentBytes"}}}}
//schema:rules {"properties":{"source":{"oneOf":[{"properties":{"type":{"const":"file"}},"required":["path"]},{"properties":{"type":{"const":"url"}},"required":["url"]},{"properties":{"type":{"const":"blob"}},"required":["data"],"not":{"required":["ref"]}},{"properties":{"type":{"const":"blob"}},"required":["ref"],"not":{"required":["data"]}}]}}}
//doc:effect is pending until the next user message
type FileAttachment struct {
	Source Source `json:"source"`
	// RFC 6838. `/limits` lists the types that models can be shown; for other types, models receive only the name.
	MediaType string `json:"mediaType" schema:"pattern=mediaTypePattern"`
	FileName  string `json:"fileName,omitempty"`
	Size      int64  `json:"size,omitempty" schema:"min=0"` // in bytes; 0: unknown
}

// Types of a [Source].
const (
	SourceFile = "file"
	SourceURL  = "url"
	SourceBlob = "blob"
)

// Source is where the bytes of a file are: a `file` has a Path, a `url` has a URL, a `blob` has Data or a Ref. With a blob
// store, the log has a Ref in place of long Data.
//
//schema:rules {"properties":{"url":{"pattern":"^(https?://[^/?#@]+([/?#]|$)|data:)"},"data":{"pattern":"^[A-Za-z0-9+/]*={0,2}$"}}}
//schema:rules {"properties":{"ref":{"pattern":"^(blob:)?sha256/[0-9a-f]{64}$"}}}
type Source struct {
	Type string `json:"type" schema:"enum=file|url|blob"`
	// Where the worker finds the file, below the folder that its operator allows.
	Path string `json:"path,omitempty" schema:"min=1"`
	URL  string `json:"url,omitempty"`                 // an http, https or data URL without a user name or password
	Data []byte `json:"data,omitempty" schema:"min=1"` // the bytes; `/limits` has the maximum
	// The name of the bytes in the blob store. The event must have a `size`, and a `mediaType` that models can be
	// shown.
	Ref string `json:"ref,omitempty"`
}

const refScheme = "blob:"

// UnmarshalJSON strips the optional prefix "blob:" from the Ref.
func (s *Source) UnmarshalJSON(data []byte) error {
	type plain Source
	if err := json.Unmarshal(data, (*plain)(s)); err != nil {
		return err
	}
	s.Ref = strings.TrimPrefix(s.Ref, refScheme)
	return nil
}

// IsRef reports whether the bytes are in the blob store.
func (s Source) IsRef() bool { return s.Type == SourceBlob && s.Ref != "" }

// String returns the path, the URL without the data of a data URL, "blob:" and the Ref, or "blob".
func (s Source) String() string {
	switch {
	case s.Type == SourceFile:
		return s.Path
	case s.Type == SourceURL:
		return shortURL(s.URL)
	case s.IsRef():
		return refScheme + s.Ref
	default:
		return s.Type
	}
}

// ToolCall is a tool call requested by the model.
//
//doc:effect adds a call to an assistant message; `requestId` is the request whose model made the call
type ToolCall struct {
	ToolCallID string `json:"toolCallId" schema:"min=1"`
	// MessageID is the id of the assistant message that contains the call: its event id or, in an imported
	// log, its id in that log. Empty: the newest assistant message.
	MessageID  string          `json:"messageId,omitempty" schema:"id"`
	ToolName   string          `json:"toolName" schema:"is=Name"`
	Parameters json.RawMessage `json:"parameters,omitempty"` // any JSON
	// The request whose model made the call; absent: a client sent the call.
	RequestID string `json:"requestId,omitempty" schema:"id"`
}

// ToolResult is the outcome of a [ToolCall]: a value or an error.
//
//schema:rules {"oneOf":[{"required":["value"]},{"required":["error"]}]}
//doc:effect adds a tool message after its call
type ToolResult struct {
	ToolCallID string `json:"toolCallId" schema:"min=1"` // the call
	// Any JSON except `null`.
	Value json.RawMessage `json:"value,omitempty" schema:"type=object|array|string|number|boolean"`
	// Any JSON except `null`.
	Error   json.RawMessage `json:"error,omitempty" schema:"type=object|array|string|number|boolean"`
	IsError bool            `json:"isError,omitempty"` // whether the call failed
	// How long the tool ran, measured by its worker, in milliseconds; absent: unknown.
	DurationMs int64 `json:"durationMs,omitempty" schema:"min=0"`
}

// OutcomeUnknown is the text of a placeholder result: providers reject calls without a result.
const OutcomeUnknown = "interrupted, outcome unknown"

// UnknownResult returns the placeholder result of a call: [OutcomeUnknown] as an error.
func UnknownResult(toolCallID string) ToolResult {
	return ToolResult{ToolCallID: toolCallID, Error: json.RawMessage(`"` + OutcomeUnknown + `"`), IsError: true}
}

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

var noteKinds = []NoteKind{NoteThinking, NoteError, NoteWarning, NoteSystem, NoteUsage}

// Note is a note of an agent. Viewers see it; models do not.
//
//doc:effect none; information for viewers
type Note struct {
	Kind    NoteKind `json:"kind"`
	Content string   `json:"content"`
}

// SetRetryConfig sets how failed attempts are retried. It replaces all settings: absent ones return to their defaults. A new
// context has 3 retries from 100 ms.
//
//doc:effect none; sets retries
type SetRetryConfig struct {
	// The number of attempts after the first, for each provider.
	MaxRetries int `json:"maxRetries" schema:"min=0,max=MaxMaxRetries"`
	// The delay before the first retry, in milliseconds.
	InitialDelayMs int64 `json:"initialDelayMs" schema:"min=1,max=MaxDelayMs"`
	// The factor from one delay to the next.
	BackoffFactor *float64 `json:"backoffFactor,omitempty" schema:"min=1,max=MaxBackoffFactor,default=2"`
	// MaxDelayMs is between InitialDelayMs and [MaxDelayMs]; unset: 60,000, or InitialDelayMs if greater.
	MaxDelayMs *int64 `json:"maxDelayMs,omitempty" schema:"min=1,max=MaxDelayMs,default=60_000"`
	// Whether each delay is drawn at random from its upper half.
	Jitter bool `json:"jitter,omitempty"`
}

// SetProviderConfig sets the provider and the model, and replaces all their settings. Without this event, a context uses the
// default of its worker.
//
//schema:rules {"anyOf":[{"required":["providerId","model"]},{"required":["useDefault"]}]}
//schema:rules {"properties":{"apiKeyRef":{"pattern":"^(env:[A-Za-z_][A-Za-z0-9_]{0,127}|file:/.*)?$"}}}
//schema:rules {"properties":{"baseUrl":{"pattern":"^(https?://[!$&-.0-;=A-Z_a-z~\\[\\]]+(/[!$&-;=@-\\[\\]_a-z~]*)?)?$"}}}
//doc:effect none; sets the provider or the fallback; `useDefault` returns to the worker's default or to no fallback
type SetProviderConfig struct {
	// A preset such as `openai`, a provider that the worker configures, or, with BaseURL, any name.
	ProviderID string `json:"providerId,omitempty" schema:"is=Name"`
	Model      string `json:"model,omitempty" schema:"is=Name"`
	// Where the worker finds the key, never the key itself: `env:NAME` or `file:/absolute/path`, at most 2048 bytes.
	// The worker's operator must allow it for the URL. Absent or empty: the default of the provider.
	APIKeyRef string `json:"apiKeyRef,omitempty"`
	// The URL of a server with OpenAI's chat completions API, such as `https://api.openai.com/v1`, without user, query
	// or fragment. The worker's operator must configure or allow it. A URL that is only allowed receives no key.
	// Absent or empty: the URL of the provider.
	BaseURL string `json:"baseUrl,omitempty" schema:"max=maxURLBytes"`
	// Absent: the default of the provider.
	Temperature *float64 `json:"temperature,omitempty" schema:"min=0,max=MaxTemperature"`
	// The maximum length of an answer, in tokens; absent: the default of the provider.
	MaxTokens *int `json:"maxTokens,omitempty" schema:"min=1,max=MaxMaxTokens"`
	// Whether the model accepts only text: attachments, including text files, are replaced by notes.
	TextOnly bool `json:"textOnly,omitempty"`
	// Whether these settings are the fallback, used when the primary provider rejects a request or its retries are
	// exhausted.
	AsFallback bool `json:"asFallback,omitempty"`
	// Return to the default provider of the worker or, with AsFallback, to no fallback; without other settings.
	UseDefault bool `json:"useDefault,omitempty"`
}

// SetTimeout bounds an attempt and two of its phases. It replaces all settings: absent ones return to their defaults. A new
// context has a timeout of 30,000 ms and no other limits.
//
//doc:effect none; sets timeouts
type SetTimeout struct {
	// From sending the request to the end of the answer, in milliseconds.
	TimeoutMs int64 `json:"timeoutMs" schema:"min=1,max=MaxTimeoutMs"`
	// Until the answer begins, in milliseconds, at most TimeoutMs; absent: no separate limit.
	FirstTokenMs *int64 `json:"firstTokenMs,omitempty" schema:"min=1,max=MaxTimeoutMs"`
	// The longest silence within the answer, in milliseconds, at most TimeoutMs; absent: no separate limit.
	StallMs *int64 `json:"stallMs,omitempty" schema:"min=1,max=MaxTimeoutMs"`
}

// Policy decides what new input does to a running answer.
type Policy string

// Delivery policies.
const (
	PolicyInterrupt Policy = "interrupt" // stops the answer, keeps the partial text, and answers again
	PolicyQueue     Policy = "queue"     // finishes the answer, then answers the new input
	PolicyReject    Policy = "reject"    // records an [InputRejected] instead of the input
	// PolicySteer includes the new input in the next step of the turn, or queues it after the last.
	PolicySteer Policy = "steer"
)

// Policies returns all delivery policies, the default first.
func Policies() []Policy { return []Policy{PolicyInterrupt, PolicyQueue, PolicyReject, PolicySteer} }

// SetDeliveryPolicy sets the effect of new input on a running answer, and how long input is debounced. At least one field is
// set; absent ones keep their value, except that a QuietPeriodMs raises a smaller maximum wait to the same value. A new
// context has [PolicyInterrupt], 10 and 500.
//
//schema:rules {"anyOf":[{"required":["policy"]},{"required":["quietPeriodMs"]},{"required":["maxWaitMs"]}]}
//doc:effect none; sets what new input does to a running answer
type SetDeliveryPolicy struct {
	// `interrupt` stops the answer, keeps its text, and answers again; `queue` answers new input after the running
	// answer; `reject` rejects the input; `steer` adds new input to the next step of the turn.
	Policy Policy `json:"policy,omitempty"`
	// The debounce: how long no input must arrive before a request is sent, in milliseconds; 0: no delay.
	QuietPeriodMs *int64 `json:"quietPeriodMs,omitempty" schema:"min=0,max=MaxQuietPeriodMs"`
	// The maximum delay of a request while input keeps arriving, in milliseconds; 0: no delay.
	MaxWaitMs *int64 `json:"maxWaitMs,omitempty" schema:"min=0,max=MaxQuietPeriodMs"`
}

// SetRequestSettings replaces all request settings of the context.
//
//doc:effect none; replaces all [request settings](#request-settings) of the context; without fields, resets them
type SetRequestSettings RequestSettings

// SessionStarted starts a session, which a [SessionEnded] ends.
//
//doc:effect when a session begins
type SessionStarted struct {
	// The number of events of earlier sessions.
	LoadedEventCount int `json:"loadedEventCount" schema:"min=0"`
	// PreviousRunID is the Temporal run before the one in which the session starts. It is "" if there is none,
	// in the first session of a fork, and if an earlier session ended in the same run.
	PreviousRunID string `json:"previousRunId,omitempty"`
	// ForkedFrom is the event of the original context that a fork continues, set in its first session.
	ForkedFrom string `json:"forkedFrom,omitempty" schema:"is=EventID"`
}

// SessionEnded ends a session.
//
//doc:effect when it ends; `reason` is `closed`, that of the client, or `idle`
type SessionEnded struct {
	Reason string `json:"reason"`
}

// LLMRequestStarted records that an attempt was scheduled. If no event records its end, and another one of the same
// request follows, it was withdrawn before it was sent; with the same attempt, the newer one corrects the provider and
// the model.
//
//doc:effect when an attempt is scheduled, before its debounce; `purpose` is `compaction` if it writes a [summary](#compaction)
type LLMRequestStarted struct {
	RequestID      string `json:"requestId" schema:"id,min=1"`
	ProviderID     string `json:"providerId"`
	Model          string `json:"model"`
	ThroughEventID string `json:"throughEventId" schema:"id"` // the newest event in the request
	Attempt        int    `json:"attempt,omitempty"`          // counts from 1, across providers
	// Purpose is [PurposeCompaction] if the attempt summarises the conversation, and empty if it answers.
	Purpose Purpose `json:"purpose,omitempty"`
}

// Purpose is what an attempt is for.
type Purpose string

// PurposeCompaction is the purpose of an attempt whose answer is the summary of a [Compacted]. The
// attempt contains only messages that the summary covers.
const PurposeCompaction Purpose = "compaction"

// LLMRequestCompleted records that a request was answered.
//
//doc:effect when an answer is complete; `finishReason` is `stop`, `tool_calls`, `length`, `content_filter` or `other`
type LLMRequestCompleted struct {
	RequestID string `json:"requestId" schema:"id,min=1"`
	// DurationMs is the duration of the last attempt, including its debounce.
	DurationMs int64 `json:"durationMs"`
	Usage
	FinishReason string `json:"finishReason"`
	// ThroughEventID is the newest message that stays unanswered although the request completed: the message was
	// to interrupt the answer, a client then cancelled the request ([ReasonCancelled]), and the answer completed
	// before it could be stopped. Empty: none.
	ThroughEventID string `json:"throughEventId,omitempty" schema:"id"`
}

// Reason is why a request was interrupted.
type Reason string

// Reasons for an interruption.
const (
	ReasonNewUserInput Reason = "new_user_input"
	ReasonCancelled    Reason = "cancelled"
	ReasonTimeout      Reason = "timeout"
)

var reasons = []Reason{ReasonNewUserInput, ReasonCancelled, ReasonTimeout}

// LLMRequestInterrupted records a stopped request, after its partial [AssistantMessage], if any.
//
//doc:effect when an answer is stopped, or its last attempt times out with partial text
type LLMRequestInterrupted struct {
	RequestID       string `json:"requestId" schema:"id,min=1"`
	PartialResponse string `json:"partialResponse"`
	Reason          Reason `json:"reason"`
	// ThroughEventID is the newest event that stays unanswered; empty: the newest one in the request.
	ThroughEventID string `json:"throughEventId,omitempty" schema:"id"`
	Usage
}

// LLMRequestFailed records that a request got no answer.
//
//doc:effect when an attempt fails or cannot be sent, and neither a retry nor a fallback follows
type LLMRequestFailed struct {
	RequestID        string      `json:"requestId" schema:"id,min=1"`
	Error            string      `json:"error"`
	RetriesAttempted int         `json:"retriesAttempted"`
	ThroughEventID   string      `json:"throughEventId,omitempty" schema:"id"` // as in [LLMRequestInterrupted]
	Kind             FailureKind `json:"kind,omitempty"`
	Retryable        bool        `json:"retryable,omitempty"` // the same request may succeed later
	Usage
}

// LLMRequestFellBack records that the request continues with the fallback provider.
//
//doc:effect when the fallback provider takes over
type LLMRequestFellBack struct {
	RequestID        string      `json:"requestId" schema:"id,min=1"`
	FromProvider     string      `json:"fromProvider"`
	ToProvider       string      `json:"toProvider"`
	Error            string      `json:"error"`
	RetriesAttempted int         `json:"retriesAttempted"`
	Kind             FailureKind `json:"kind,omitempty"`
	Retryable        bool        `json:"retryable,omitempty"` // whether the same request may succeed later
	Usage
}

// LLMAttemptEnded records how an attempt ended while its request continues. An event that ends a
// request also records the end of its last attempt. [LLMRequestFellBack] also records the end of the
// attempt before it.
//
//doc:effect when an attempt ended and the request continues: `outcome` is `failed` (another attempt follows), `handed_back` (its worker shut down, the run continued as new, or nobody had asked it to stop), `lost` (its worker died), `tool_calls` (its answer has tool calls) or `compacted` (its answer is a [summary](#compaction))
type LLMAttemptEnded struct {
	RequestID string `json:"requestId" schema:"id,min=1"`
	Attempt   int    `json:"attempt" schema:"min=1"`
	// `failed`: another one follows; `handed_back`: its worker shut down, or new input stopped it; `lost`: its worker
	// died, or its end was not reported; `tool_calls`: its answer has tool calls, and the next attempt contains their
	// results; `compacted`: its answer is the summary of a CompactedEvent.
	Outcome    AttemptOutcome `json:"outcome"`
	Kind       FailureKind    `json:"kind,omitempty"`
	Retryable  bool           `json:"retryable,omitempty"` // whether the same request may succeed later
	Error      string         `json:"error,omitempty"`
	DurationMs int64          `json:"durationMs,omitempty"` // 0 if unknown
	Usage
}

// InputRejected records an input that was not accepted.
//
//doc:effect when a signal is invalid, or the context rejects valid input, for example by its delivery policy; `input` is truncated and secrets are removed
type InputRejected struct {
	Reason string `json:"reason"`
	Input  string `json:"input"` // the input, truncated and with secrets redacted
}

// TextDelta is a piece of a running answer. It is streamed and never recorded: it has no id and no timestamp.
//
//doc:effect a piece of streamed text. A reader that was disconnected reads the complete answer from the log. `reset` discards the text and the reasoning received so far
type TextDelta struct {
	RequestID string `json:"requestId" schema:"id,min=1"`
	Attempt   int    `json:"attempt" schema:"min=1"` // the attempt of the request, from 1
	// The index in the attempt, from 0; coalesced deltas leave gaps.
	Index int    `json:"index" schema:"min=0"`
	Delta string `json:"delta"` // is appended to the text, or to the reasoning, of the attempt
	// Whether Delta replaces the text and the reasoning received before.
	Reset bool `json:"reset,omitempty"`
	// The newest event that the request included: the answer follows it.
	ThroughEventID string `json:"throughEventId,omitempty" schema:"id"`
}

// ReasoningDelta is a piece of the reasoning of a running answer. Within an attempt, it shares one sequence of indexes with
// [TextDelta]. It is streamed and never recorded.
//
//doc:effect a piece of streamed reasoning. Within an attempt, both kinds of deltas share one sequence of indexes
type ReasoningDelta TextDelta

func (SystemPrompt) Tag() Tag          { return TagSystemPrompt }
func (UserMessage) Tag() Tag           { return TagUserMessage }
func (AssistantMessage) Tag() Tag      { return TagAssistantMessage }
func (FileAttachment) Tag() Tag        { return TagFileAttachment }
func (ToolCall) Tag() Tag              { return TagToolCall }
func (ToolResult) Tag() Tag            { return TagToolResult }
func (Note) Tag() Tag                  { return TagNote }
func (SetRetryConfig) Tag() Tag        { return TagSetRetryConfig }
func (SetProviderConfig) Tag() Tag     { return TagSetProviderConfig }
func (SetTimeout) Tag() Tag            { return TagSetTimeout }
func (SetDeliveryPolicy) Tag() Tag     { return TagSetDeliveryPolicy }
func (SetRequestSettings) Tag() Tag    { return TagSetRequestSettings }
func (SetTools) Tag() Tag              { return TagSetTools }
func (BudgetSet) Tag() Tag             { return TagBudgetSet }
func (ApprovalDecided) Tag() Tag       { return TagApprovalDecided }
func (SessionStarted) Tag() Tag        { return TagSessionStarted }
func (SessionEnded) Tag() Tag          { return TagSessionEnded }
func (LLMRequestStarted) Tag() Tag     { return TagLLMRequestStarted }
func (LLMRequestCompleted) Tag() Tag   { return TagLLMRequestCompleted }
func (LLMRequestInterrupted) Tag() Tag { return TagLLMRequestInterrupted }
func (LLMRequestFailed) Tag() Tag      { return TagLLMRequestFailed }
func (LLMRequestFellBack) Tag() Tag    { return TagLLMRequestFellBack }
func (LLMAttemptEnded) Tag() Tag       { return TagLLMAttemptEnded }
func (BudgetExceeded) Tag() Tag        { return TagBudgetExceeded }
func (ApprovalRequested) Tag() Tag     { return TagApprovalRequested }
func (InputRejected) Tag() Tag         { return TagInputRejected }
func (TextDelta) Tag() Tag             { return TagTextDelta }
func (ReasoningDelta) Tag() Tag        { return TagReasoningDelta }
func (ToolProgress) Tag() Tag          { return TagToolProgress }
