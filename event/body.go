package event

import (
	"encoding/json"
	"strings"
)

// SystemPrompt sets the system message of a context. Empty content removes it.
type SystemPrompt struct {
	Content string `json:"content"`
}

// UserMessage is a message from the user.
type UserMessage struct {
	Content string `json:"content"`
	// TriggersTurn makes the model answer; unset means true.
	TriggersTurn *bool `json:"triggersTurn,omitempty"`
	// Settings override those of the context while this is the newest message that triggers a
	// turn.
	Settings *RequestSettings `json:"settings,omitempty"`
}

// Triggers reports whether the model answers.
func (m UserMessage) Triggers() bool { return m.TriggersTurn == nil || *m.TriggersTurn }

// AssistantMessage is an answer of the model, or one supplied by a client.
type AssistantMessage struct {
	Content string `json:"content"`
	// RequestID is empty if a client sent the message.
	RequestID string `json:"requestId,omitempty"`
	// ThroughEventID is the newest event in the request. The message follows that
	// event; empty means at the end.
	ThroughEventID string `json:"throughEventId,omitempty"`
	// Partial marks an interrupted answer. Its content is empty if it was interrupted during
	// reasoning.
	Partial bool `json:"partial,omitempty"`
	// Reasoning is the reasoning text that the provider returned, up to [MaxReasoningBytes]. It
	// is never sent to a model.
	Reasoning string `json:"reasoning,omitempty"`
	// ProviderState is returned to the provider that produced it; nil for none.
	ProviderState *ProviderState `json:"providerState,omitempty"`
}

// Bounds of an [AssistantMessage], in bytes.
const (
	MaxReasoningBytes     = 256 << 10
	MaxProviderStateBytes = 256 << 10
)

// ProviderState is opaque data that a provider requires back with an answer, such as thought
// signatures or encrypted reasoning. It is sent only to the same model of the same provider at
// the same URL.
type ProviderState struct {
	ProviderID string `json:"providerId"`
	Model      string `json:"model"`
	// BaseURL is the URL that the answer came from.
	BaseURL string `json:"baseUrl"`
	// Data is a JSON object of up to [MaxProviderStateBytes].
	Data json.RawMessage `json:"data"`
}

// UnmarshalJSON removes the spaces between the values of Data and escapes <, > and &, so that
// encoding/json later keeps the bytes. It preserves the values, because providers sign them.
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
type FileAttachment struct {
	Source    Source `json:"source"`
	MediaType string `json:"mediaType"`
	FileName  string `json:"fileName,omitempty"`
	// Size is in bytes; 0 means unknown.
	Size int64 `json:"size,omitempty"`
}

// Types of a [Source].
const (
	SourceFile = "file"
	SourceURL  = "url"
	SourceBlob = "blob"
)

// Source locates the bytes of an attachment.
type Source struct {
	// Type is one of [SourceFile], [SourceURL] and [SourceBlob].
	Type string `json:"type"`
	// Path is set for type file. Workers read only files below --attachments-dir.
	Path string `json:"path,omitempty"`
	// URL is an http, https or data URL; set for type url.
	URL string `json:"url,omitempty"`
	// Data is the bytes of a blob.
	Data []byte `json:"data,omitempty"`
	// Ref is the address of a blob in the blob store: "sha256/" and 64 lowercase hex
	// digits. It requires a Size and a media type that models accept ([MediaOf]).
	Ref string `json:"ref,omitempty"`
}

// refScheme is an optional prefix of Ref in JSON.
const refScheme = "blob:"

// UnmarshalJSON decodes a source and strips "blob:" from its Ref.
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

// String returns the path, the URL without the data of a data URL, "blob:" and the Ref, or
// "blob".
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
type ToolCall struct {
	ToolCallID string `json:"toolCallId"`
	// MessageID is the assistant message with the call, as an event id or as the id in
	// an imported log; empty means the newest one.
	MessageID  string          `json:"messageId,omitempty"`
	ToolName   string          `json:"toolName"`
	Parameters json.RawMessage `json:"parameters,omitempty"`
	// RequestID is the request whose model made the call; empty if a client sent the call.
	RequestID string `json:"requestId,omitempty"`
}

// ToolResult is the outcome of a [ToolCall]: a value or an error.
type ToolResult struct {
	ToolCallID string          `json:"toolCallId"`
	Value      json.RawMessage `json:"value,omitempty"`
	Error      json.RawMessage `json:"error,omitempty"`
	IsError    bool            `json:"isError,omitempty"`
	// DurationMs is how long the tool ran, measured by its worker; 0 if unknown.
	DurationMs int64 `json:"durationMs,omitempty"`
}

// OutcomeUnknown is the text of a call's result before the actual result is known.
// Providers reject a conversation with a call that has no result.
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

// Note is a remark for viewers. Models never receive it.
type Note struct {
	Kind    NoteKind `json:"kind"`
	Content string   `json:"content"`
}

// SetRetryConfig sets the retry policy of requests.
type SetRetryConfig struct {
	// MaxRetries is per provider, 0 to [MaxMaxRetries].
	MaxRetries int `json:"maxRetries"`
	// InitialDelayMs is the delay before the first retry: 1 ms to [MaxDelayMs].
	InitialDelayMs int64 `json:"initialDelayMs"`
	// BackoffFactor multiplies the delay after each retry: 1 to [MaxBackoffFactor];
	// unset means 2.
	BackoffFactor *float64 `json:"backoffFactor,omitempty"`
	// MaxDelayMs bounds the delay; unset means 60,000 ms.
	MaxDelayMs *int64 `json:"maxDelayMs,omitempty"`
	// Jitter shortens each delay by a random part of up to a half.
	Jitter bool `json:"jitter,omitempty"`
}

// SetProviderConfig sets the provider and model of a context.
type SetProviderConfig struct {
	// ProviderID is a preset like "openai" or a provider of the worker's configuration.
	// With a BaseURL it can be any name.
	ProviderID string `json:"providerId"`
	Model      string `json:"model"`
	// APIKeyRef locates the key on the worker: "env:NAME" or "file:/absolute/path". The
	// worker's operator must configure it for the URL. Empty means the provider's default.
	APIKeyRef string `json:"apiKeyRef,omitempty"`
	// BaseURL is a URL with the version, like "https://api.openai.com/v1". The worker's
	// operator must allow it, and it receives no key. Empty means the provider's default.
	BaseURL string `json:"baseUrl,omitempty"`
	// Temperature is between 0 and 2; unset means the provider's default.
	Temperature *float64 `json:"temperature,omitempty"`
	// MaxTokens bounds the answer; unset means the provider's default.
	MaxTokens *int `json:"maxTokens,omitempty"`
	// TextOnly marks a model that accepts only text: attachments, including text files, are
	// replaced by notes.
	TextOnly bool `json:"textOnly,omitempty"`
	// AsFallback sets the fallback, used when the primary provider refuses or no attempt
	// is left.
	AsFallback bool `json:"asFallback,omitempty"`
}

// SetTimeout sets the timeouts of an attempt. Unset fields return to their default.
type SetTimeout struct {
	// TimeoutMs bounds the whole attempt: 1 ms to 24 h.
	TimeoutMs int64 `json:"timeoutMs"`
	// FirstTokenMs bounds the wait for the first token: 1 ms to TimeoutMs, the default.
	FirstTokenMs *int64 `json:"firstTokenMs,omitempty"`
	// StallMs bounds the time between tokens: 1 ms to TimeoutMs, the default.
	StallMs *int64 `json:"stallMs,omitempty"`
}

// Policy decides what new input does to a running answer.
type Policy string

// Delivery policies.
const (
	// PolicyInterrupt stops the answer, keeps the partial text, and answers again.
	PolicyInterrupt Policy = "interrupt"
	// PolicyQueue finishes the answer and then answers the new input.
	PolicyQueue Policy = "queue"
	// PolicyReject records an [InputRejected] instead of the input.
	PolicyReject Policy = "reject"
	// PolicySteer includes the new input in the next step of the turn, without stopping the
	// answer or its tool calls. After the last step, the input is answered next.
	PolicySteer Policy = "steer"
)

// Policies returns all delivery policies, the default first.
func Policies() []Policy { return []Policy{PolicyInterrupt, PolicyQueue, PolicyReject, PolicySteer} }

// SetDeliveryPolicy sets the delivery policy and the debouncing of requests. At least one
// field must be set; unset fields keep their value.
type SetDeliveryPolicy struct {
	Policy Policy `json:"policy,omitempty"`
	// QuietPeriodMs is the debounce interval, 0 to 60,000 ms.
	QuietPeriodMs *int64 `json:"quietPeriodMs,omitempty"`
	// MaxWaitMs bounds the delay while input keeps arriving, 0 to 60,000 ms.
	MaxWaitMs *int64 `json:"maxWaitMs,omitempty"`
}

// SetRequestSettings sets the request settings of the context. It replaces all of them: unset
// fields return to the default of the provider.
type SetRequestSettings RequestSettings

// SessionStarted starts a session: one life of a context.
type SessionStarted struct {
	// LoadedEventCount is the number of events from earlier sessions.
	LoadedEventCount int `json:"loadedEventCount"`
	// PreviousRunID is the Temporal run of the previous session; empty for the first.
	PreviousRunID string `json:"previousRunId,omitempty"`
	// ForkedFrom is the event of another context that this one continues from, in the
	// first session of a fork.
	ForkedFrom string `json:"forkedFrom,omitempty"`
}

// SessionEnded ends a session.
type SessionEnded struct {
	Reason string `json:"reason"`
}

// LLMRequestStarted records that an attempt was sent to a provider.
type LLMRequestStarted struct {
	RequestID  string `json:"requestId"`
	ProviderID string `json:"providerId"`
	Model      string `json:"model"`
	// ThroughEventID is the newest event in the request.
	ThroughEventID string `json:"throughEventId"`
	// Attempt counts the attempts of the request from 1, across providers.
	Attempt int `json:"attempt,omitempty"`
}

// LLMRequestCompleted records that a request was answered.
type LLMRequestCompleted struct {
	RequestID string `json:"requestId"`
	// DurationMs is the duration of the last attempt: from its start, including the
	// debounce, to the end of the answer.
	DurationMs int64 `json:"durationMs"`
	// Usage is that of the last attempt, as in every event that ends a request.
	Usage
	FinishReason string `json:"finishReason"`
	// ThroughEventID is the newest event that stays unanswered if a cancellation arrived
	// too late to stop the request. Empty means none.
	ThroughEventID string `json:"throughEventId,omitempty"`
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

// LLMRequestInterrupted records that a request was stopped. A partial [AssistantMessage]
// precedes it if there is a partial response.
type LLMRequestInterrupted struct {
	RequestID       string `json:"requestId"`
	PartialResponse string `json:"partialResponse"`
	Reason          Reason `json:"reason"`
	// ThroughEventID is the newest event that stays unanswered; empty means the newest
	// one in the request.
	ThroughEventID string `json:"throughEventId,omitempty"`
	Usage
}

// LLMRequestFailed records that a request got no answer.
type LLMRequestFailed struct {
	RequestID        string `json:"requestId"`
	Error            string `json:"error"`
	RetriesAttempted int    `json:"retriesAttempted"`
	// ThroughEventID is as in [LLMRequestInterrupted].
	ThroughEventID string `json:"throughEventId,omitempty"`
	// Kind is empty if unknown.
	Kind FailureKind `json:"kind,omitempty"`
	// Retryable means that the same request may succeed later.
	Retryable bool `json:"retryable,omitempty"`
	Usage
}

// LLMRequestFellBack records that the request continues with the fallback provider.
type LLMRequestFellBack struct {
	RequestID        string `json:"requestId"`
	FromProvider     string `json:"fromProvider"`
	ToProvider       string `json:"toProvider"`
	Error            string `json:"error"`
	RetriesAttempted int    `json:"retriesAttempted"`
	// Kind and Retryable are as in [LLMRequestFailed].
	Kind      FailureKind `json:"kind,omitempty"`
	Retryable bool        `json:"retryable,omitempty"`
	// Usage is that of the last attempt at FromProvider.
	Usage
}

// LLMAttemptEnded records how an attempt ended while its request continues. An event that ends
// a request, or a fallback, also records the end of the last attempt.
type LLMAttemptEnded struct {
	RequestID string         `json:"requestId"`
	Attempt   int            `json:"attempt"`
	Outcome   AttemptOutcome `json:"outcome"`
	// Kind and Retryable are as in [LLMRequestFailed].
	Kind      FailureKind `json:"kind,omitempty"`
	Retryable bool        `json:"retryable,omitempty"`
	Error     string      `json:"error,omitempty"`
	// DurationMs is 0 if unknown.
	DurationMs int64 `json:"durationMs,omitempty"`
	Usage
}

// InputRejected records an input that was not accepted.
type InputRejected struct {
	Reason string `json:"reason"`
	// Input is the rejected input, truncated and redacted ([Redact]).
	Input string `json:"input"`
}

// TextDelta is a streamed piece of an answer. It is never recorded.
type TextDelta struct {
	RequestID string `json:"requestId"`
	// Attempt counts from 1, Index counts the deltas of an attempt from 0.
	Attempt int    `json:"attempt"`
	Index   int    `json:"index"`
	Delta   string `json:"delta"`
	// Reset discards the text and the reasoning received so far for the request.
	Reset bool `json:"reset,omitempty"`
	// ThroughEventID is the newest event in the request; empty if none was sent.
	ThroughEventID string `json:"throughEventId,omitempty"`
}

// ReasoningDelta is a streamed piece of a model's reasoning. It is never recorded. Within an
// attempt, it shares one sequence of indexes with [TextDelta]. A Reset discards text and
// reasoning.
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
func (ApprovalDecided) Tag() Tag       { return TagApprovalDecided }
func (SessionStarted) Tag() Tag        { return TagSessionStarted }
func (SessionEnded) Tag() Tag          { return TagSessionEnded }
func (LLMRequestStarted) Tag() Tag     { return TagLLMRequestStarted }
func (LLMRequestCompleted) Tag() Tag   { return TagLLMRequestCompleted }
func (LLMRequestInterrupted) Tag() Tag { return TagLLMRequestInterrupted }
func (LLMRequestFailed) Tag() Tag      { return TagLLMRequestFailed }
func (LLMRequestFellBack) Tag() Tag    { return TagLLMRequestFellBack }
func (LLMAttemptEnded) Tag() Tag       { return TagLLMAttemptEnded }
func (ApprovalRequested) Tag() Tag     { return TagApprovalRequested }
func (InputRejected) Tag() Tag         { return TagInputRejected }
func (TextDelta) Tag() Tag             { return TagTextDelta }
func (ReasoningDelta) Tag() Tag        { return TagReasoningDelta }
func (ToolProgress) Tag() Tag          { return TagToolProgress }
