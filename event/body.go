package event

import (
	"encoding/json"
	"strings"
)

// SystemPrompt adds the system message of a context or replaces it. An empty
// content takes it away.
type SystemPrompt struct {
	Content string `json:"content"`
}

// UserMessage is something the user said.
type UserMessage struct {
	Content string `json:"content"`
	// TriggersTurn says whether the model is to answer; unset means true.
	TriggersTurn *bool `json:"triggersTurn,omitempty"`
}

// Triggers is TriggersTurn with its default.
func (m UserMessage) Triggers() bool { return m.TriggersTurn == nil || *m.TriggersTurn }

// AssistantMessage is something the model said, or is made to have said when
// a client sends it.
type AssistantMessage struct {
	Content string `json:"content"`
	// RequestID is the request that it answers; empty when a client sent it.
	RequestID string `json:"requestId,omitempty"`
	// ThroughEventID is the newest event that the request had seen: the
	// message stands after it and before what came later. Empty: at the end.
	ThroughEventID string `json:"throughEventId,omitempty"`
	// Partial marks an answer that was cut off.
	Partial bool `json:"partial,omitempty"`
}

// FileAttachment is a file for the next user message.
type FileAttachment struct {
	Source    Source `json:"source"`
	MediaType string `json:"mediaType"`
	FileName  string `json:"fileName,omitempty"`
	// Size is the number of bytes; 0 means unknown.
	Size int64 `json:"size,omitempty"`
}

// The types of a [Source].
const (
	SourceFile = "file"
	SourceURL  = "url"
	SourceBlob = "blob"
)

// Source says where the bytes of an attachment are.
type Source struct {
	// Type is one of [SourceFile], [SourceURL] and [SourceBlob].
	Type string `json:"type"`
	// Path is, for a file, where the worker finds it. A worker reads only
	// below the folder that its operator named, see the worker's
	// --attachments-dir.
	Path string `json:"path,omitempty"`
	// URL is, for a url, an http, https or data URL.
	URL string `json:"url,omitempty"`
	// Data is, for a blob, the bytes themselves, base64 in JSON (RFC 4648).
	Data []byte `json:"data,omitempty"`
	// Ref is, for a blob without Data, the name of its bytes in the blob store:
	// "sha256/" and their hash in 64 small hex digits. Events with a Ref say the
	// size, up to [MaxAttachmentBytes], and are of a media type that a model can be
	// shown, see [MediaOf].
	Ref string `json:"ref,omitempty"`
}

// refScheme may stand in front of a Ref in JSON.
const refScheme = "blob:"

// UnmarshalJSON reads a source; "blob:" in front of its Ref is not kept.
func (s *Source) UnmarshalJSON(data []byte) error {
	type plain Source
	if err := json.Unmarshal(data, (*plain)(s)); err != nil {
		return err
	}
	s.Ref = strings.TrimPrefix(s.Ref, refScheme)
	return nil
}

// IsRef reports whether the bytes of the source are in the blob store.
func (s Source) IsRef() bool { return s.Type == SourceBlob && s.Ref != "" }

// String names the source in a note to the model: the path, the URL, the Ref
// behind "blob:", or "blob". A data URL is cut behind its media type.
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

// ToolCall is a call of a tool that the model asked for in a message.
type ToolCall struct {
	ToolCallID string `json:"toolCallId"`
	// MessageID is the event id of the assistant message that it belongs to,
	// or that message's id in a foreign log; empty: the newest one.
	MessageID  string          `json:"messageId,omitempty"`
	ToolName   string          `json:"toolName"`
	Parameters json.RawMessage `json:"parameters,omitempty"`
}

// ToolResult is the outcome of a [ToolCall]: a value, or an error.
type ToolResult struct {
	ToolCallID string          `json:"toolCallId"`
	Value      json.RawMessage `json:"value,omitempty"`
	Error      json.RawMessage `json:"error,omitempty"`
	IsError    bool            `json:"isError,omitempty"`
}

// NoteKind says what a [Note] is about.
type NoteKind string

// The kinds of notes.
const (
	NoteThinking NoteKind = "thinking"
	NoteError    NoteKind = "error"
	NoteWarning  NoteKind = "warning"
	NoteSystem   NoteKind = "system"
	NoteUsage    NoteKind = "usage"
)

// Note is something that an agent reported. Viewers see it, and no model is
// shown it.
type Note struct {
	Kind    NoteKind `json:"kind"`
	Content string   `json:"content"`
}

// SetRetryConfig sets how often and how fast a failed attempt is repeated.
type SetRetryConfig struct {
	// MaxRetries is the number of attempts after the first, per provider.
	// 0 means a single attempt; at most [MaxMaxRetries].
	MaxRetries int `json:"maxRetries"`
	// InitialDelayMs is the wait before the first retry, at least 1 ms.
	InitialDelayMs int64 `json:"initialDelayMs"`
	// BackoffFactor multiplies the wait from retry to retry, at least 1;
	// unset means 2.
	BackoffFactor *float64 `json:"backoffFactor,omitempty"`
	// MaxDelayMs bounds the wait; unset means 60,000 ms.
	MaxDelayMs *int64 `json:"maxDelayMs,omitempty"`
	// Jitter spreads each wait evenly over its upper half.
	Jitter bool `json:"jitter,omitempty"`
}

// SetProviderConfig chooses the provider and model of a context.
type SetProviderConfig struct {
	// ProviderID names a preset like "openai" or a provider that the worker's
	// operator configured, or, together with BaseURL, is any name.
	ProviderID string `json:"providerId"`
	Model      string `json:"model"`
	// APIKeyRef says where the worker finds the key, never the key itself:
	// "env:NAME" or "file:/absolute/path". It is accepted if the worker's operator
	// configured it for the URL. Empty: the provider's default.
	APIKeyRef string `json:"apiKeyRef,omitempty"`
	// BaseURL is an http or https URL up to and including the version, like
	// "https://api.openai.com/v1", that the worker's operator allows; no key is
	// sent there. Empty: the provider's default.
	BaseURL string `json:"baseUrl,omitempty"`
	// Temperature is between 0 and 2; unset leaves it to the provider.
	Temperature *float64 `json:"temperature,omitempty"`
	// MaxTokens bounds an answer; unset leaves it to the provider.
	MaxTokens *int `json:"maxTokens,omitempty"`
	// TextOnly marks a model without vision: it is told of attachments by a
	// note instead of being sent them.
	TextOnly bool `json:"textOnly,omitempty"`
	// AsFallback makes this the provider that takes over when the primary
	// one refuses or is exhausted.
	AsFallback bool `json:"asFallback,omitempty"`
}

// SetTimeout bounds one attempt, and two of its parts. All of it is set at
// once: what is unset goes back to its default.
type SetTimeout struct {
	// TimeoutMs bounds the attempt, from sending the request to the end of the
	// answer. It is between 1 ms and 24 h.
	TimeoutMs int64 `json:"timeoutMs"`
	// FirstTokenMs bounds the wait for the beginning of the answer, while the
	// request queues and the prompt is read. It is between 1 ms and TimeoutMs;
	// unset means no other bound than that.
	FirstTokenMs *int64 `json:"firstTokenMs,omitempty"`
	// StallMs bounds each silence in the answer after its beginning. It is
	// between 1 ms and TimeoutMs; unset means no other bound than that.
	StallMs *int64 `json:"stallMs,omitempty"`
}

// Policy is what new input does to a running answer.
type Policy string

// The delivery policies.
const (
	// PolicyInterrupt stops the answer, keeps what was said, and answers anew.
	PolicyInterrupt Policy = "interrupt"
	// PolicyQueue lets the answer end and then answers what is new.
	PolicyQueue Policy = "queue"
	// PolicyReject records an [InputRejected] instead of the input.
	PolicyReject Policy = "reject"
)

// SetDeliveryPolicy sets what new input does to a running answer and how long
// a request waits for more input. At least one field is set; those that are
// unset stay as they are.
type SetDeliveryPolicy struct {
	Policy Policy `json:"policy,omitempty"`
	// QuietPeriodMs is the time without new input before a request is sent,
	// 0 to 60,000 ms; 0 means at once.
	QuietPeriodMs *int64 `json:"quietPeriodMs,omitempty"`
	// MaxWaitMs is the longest that a request waits when input keeps coming,
	// 0 to 60,000 ms.
	MaxWaitMs *int64 `json:"maxWaitMs,omitempty"`
}

// SessionStarted begins a session: one life of a context.
type SessionStarted struct {
	// LoadedEventCount is the number of events of earlier sessions.
	LoadedEventCount int `json:"loadedEventCount"`
	// PreviousRunID is the Temporal run with the session before; empty for
	// the first.
	PreviousRunID string `json:"previousRunId,omitempty"`
	// ForkedFrom is the event of another context after which this one goes its
	// own way, in the first session of a fork; else empty. It stays that event
	// when the log is moved to another name.
	ForkedFrom string `json:"forkedFrom,omitempty"`
}

// SessionEnded ends a session.
type SessionEnded struct {
	Reason string `json:"reason"`
}

// LLMRequestStarted says that an attempt of a request was sent to a provider.
type LLMRequestStarted struct {
	RequestID  string `json:"requestId"`
	ProviderID string `json:"providerId"`
	Model      string `json:"model"`
	// ThroughEventID is the newest event that the provider was shown.
	ThroughEventID string `json:"throughEventId"`
	// Attempt counts the attempts of the request from 1, over all providers.
	// There is one such event for each attempt that got as far as sending.
	Attempt int `json:"attempt,omitempty"`
}

// LLMRequestCompleted ends a request that was answered.
type LLMRequestCompleted struct {
	RequestID  string `json:"requestId"`
	DurationMs int64  `json:"durationMs"`
	// InputTokens and OutputTokens are as the provider reported them; 0 when
	// it did not.
	InputTokens  int    `json:"inputTokens,omitempty"`
	OutputTokens int    `json:"outputTokens,omitempty"`
	FinishReason string `json:"finishReason"`
	// ThroughEventID is the newest event that goes without an answer, because the
	// request was asked to stop and had come to its end. Empty: none does but what
	// the request was shown, and has answered.
	ThroughEventID string `json:"throughEventId,omitempty"`
}

// Reason says why a request was interrupted.
type Reason string

// The reasons of an interruption.
const (
	ReasonNewUserInput Reason = "new_user_input"
	ReasonCancelled    Reason = "cancelled"
	ReasonTimeout      Reason = "timeout"
)

// LLMRequestInterrupted ends a request that was stopped. When there is a
// partial response, an [AssistantMessage] that is partial stands before it.
type LLMRequestInterrupted struct {
	RequestID       string `json:"requestId"`
	PartialResponse string `json:"partialResponse"`
	Reason          Reason `json:"reason"`
	// ThroughEventID is the newest event that goes without an answer. Empty:
	// the newest one that the request was shown.
	ThroughEventID string `json:"throughEventId,omitempty"`
}

// LLMRequestFailed ends a request that got no answer.
type LLMRequestFailed struct {
	RequestID        string `json:"requestId"`
	Error            string `json:"error"`
	RetriesAttempted int    `json:"retriesAttempted"`
	// ThroughEventID is the newest event that goes without an answer. Empty:
	// the newest one that the request was shown.
	ThroughEventID string `json:"throughEventId,omitempty"`
}

// LLMRequestFellBack says that the fallback takes a request over.
type LLMRequestFellBack struct {
	RequestID        string `json:"requestId"`
	FromProvider     string `json:"fromProvider"`
	ToProvider       string `json:"toProvider"`
	Error            string `json:"error"`
	RetriesAttempted int    `json:"retriesAttempted"`
}

// InputRejected stands for an input that could not be taken.
type InputRejected struct {
	Reason string `json:"reason"`
	// Input is what came, cut and with secrets removed, see [Redact].
	Input string `json:"input"`
}

// TextDelta is a piece of an answer on its way. It is never recorded.
type TextDelta struct {
	RequestID string `json:"requestId"`
	// Attempt counts the attempts of the request from 1.
	Attempt int `json:"attempt"`
	// Index counts the deltas of an attempt from 0.
	Index int    `json:"index"`
	Delta string `json:"delta"`
	// Reset says that whatever was shown of the request before is void and
	// this delta begins the answer anew.
	Reset bool `json:"reset,omitempty"`
	// ThroughEventID is the newest event that the provider was shown: the
	// delta stands after it. Empty before the provider was asked.
	ThroughEventID string `json:"throughEventId,omitempty"`
}

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
func (SessionStarted) Tag() Tag        { return TagSessionStarted }
func (SessionEnded) Tag() Tag          { return TagSessionEnded }
func (LLMRequestStarted) Tag() Tag     { return TagLLMRequestStarted }
func (LLMRequestCompleted) Tag() Tag   { return TagLLMRequestCompleted }
func (LLMRequestInterrupted) Tag() Tag { return TagLLMRequestInterrupted }
func (LLMRequestFailed) Tag() Tag      { return TagLLMRequestFailed }
func (LLMRequestFellBack) Tag() Tag    { return TagLLMRequestFellBack }
func (InputRejected) Tag() Tag         { return TagInputRejected }
func (TextDelta) Tag() Tag             { return TagTextDelta }
