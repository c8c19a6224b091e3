package event

import (
	"cmp"
	"fmt"
	"log/slog"
	"strings"
)

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

const TagLLMRequestStarted Tag = "LLMRequestStartedEvent"

func (LLMRequestStarted) Tag() Tag          { return TagLLMRequestStarted }
func (b LLMRequestStarted) Request() string { return b.RequestID }

func (b LLMRequestStarted) validate() error {
	return cmp.Or(knownOrNone("purpose", b.Purpose), requestID(b.RequestID))
}

func (b LLMRequestStarted) Words() (subject, text string) {
	subject = "request started"
	if b.Purpose != "" {
		subject = "summary requested"
	}
	return subject, fmt.Sprintf("%s, attempt %d: %s %s", b.RequestID, b.Attempt, b.ProviderID, b.Model)
}

func (b LLMRequestStarted) Line() Line {
	return Line{slog.LevelInfo, "request started", []any{
		"attempt", b.Attempt, "provider", LoggedName(b.ProviderID), "model", LoggedName(b.Model), "purpose", string(b.Purpose),
	}}
}

func (LLMRequestStarted) example() Body {
	return LLMRequestStarted{
		RequestID: "demo:r0001", ProviderID: "openai", Model: "gpt-4o-mini", ThroughEventID: "demo:0001", Attempt: 1, Purpose: PurposeCompaction,
	}
}

// Purpose is what an attempt is for.
type Purpose string

// PurposeCompaction is the purpose of an attempt whose answer is the summary of a [Compacted]. The
// attempt contains only messages that the summary covers.
const PurposeCompaction Purpose = "compaction"

// Values returns all values.
func (Purpose) Values() []Purpose { return []Purpose{PurposeCompaction} }

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

const TagLLMRequestCompleted Tag = "LLMRequestCompletedEvent"

func (LLMRequestCompleted) Tag() Tag             { return TagLLMRequestCompleted }
func (b LLMRequestCompleted) Request() string    { return b.RequestID }
func (b LLMRequestCompleted) Unanswered() string { return b.ThroughEventID }

func (b LLMRequestCompleted) validate() error {
	return cmp.Or(requestID(b.RequestID), b.Usage.validate())
}

func (b LLMRequestCompleted) Words() (subject, text string) {
	text = "after " + milliseconds(b.DurationMs) + b.Usage.suffix()
	if b.FinishReason != "" {
		text += ", " + b.FinishReason
	}
	return "completed", text
}

func (b LLMRequestCompleted) Line() Line {
	return Line{slog.LevelInfo, "request answered", append([]any{"finish", LoggedName(b.FinishReason), "duration_ms", b.DurationMs}, b.Usage.logged()...)}
}

func (LLMRequestCompleted) example() Body {
	return LLMRequestCompleted{
		RequestID: "demo:r0001", DurationMs: 1200, FinishReason: "stop", ThroughEventID: "demo:0001",
		Usage: Usage{InputTokens: 3, CachedTokens: 1, OutputTokens: 4, ReasoningTokens: 2, CostMicros: new(int64(42)), PriceVersion: "2026-01"},
	}
}

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

const TagLLMRequestInterrupted Tag = "LLMRequestInterruptedEvent"

func (LLMRequestInterrupted) Tag() Tag             { return TagLLMRequestInterrupted }
func (b LLMRequestInterrupted) Request() string    { return b.RequestID }
func (b LLMRequestInterrupted) Unanswered() string { return b.ThroughEventID }

func (b LLMRequestInterrupted) validate() error {
	return cmp.Or(known("reason", b.Reason), requestID(b.RequestID), b.Usage.validate())
}

func (b LLMRequestInterrupted) Words() (subject, text string) {
	return "interrupted", strings.ReplaceAll(string(b.Reason), "_", " ") + b.Usage.suffix()
}

func (b LLMRequestInterrupted) Line() Line {
	return Line{slog.LevelInfo, "request interrupted", append([]any{"reason", string(b.Reason)}, b.Usage.logged()...)}
}

func (LLMRequestInterrupted) example() Body {
	return LLMRequestInterrupted{
		RequestID: "demo:r0001", PartialResponse: "Hi", Reason: ReasonNewUserInput, ThroughEventID: "demo:0001",
		Usage: Usage{InputTokens: 3, OutputTokens: 1, Estimated: true},
	}
}

// Reason is why a request was interrupted.
type Reason string

// Reasons for an interruption.
const (
	ReasonNewUserInput Reason = "new_user_input"
	ReasonCancelled    Reason = "cancelled"
	ReasonTimeout      Reason = "timeout"
)

// Values returns all values.
func (Reason) Values() []Reason {
	return []Reason{ReasonNewUserInput, ReasonCancelled, ReasonTimeout}
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

const TagLLMRequestFailed Tag = "LLMRequestFailedEvent"

func (LLMRequestFailed) Tag() Tag             { return TagLLMRequestFailed }
func (b LLMRequestFailed) Request() string    { return b.RequestID }
func (b LLMRequestFailed) Unanswered() string { return b.ThroughEventID }

func (b LLMRequestFailed) validate() error {
	return cmp.Or(requestID(b.RequestID), knownOrNone("kind", b.Kind), b.Usage.validate())
}

func (b LLMRequestFailed) Words() (subject, text string) {
	return "failed", strings.TrimSuffix(b.Error, ".") + retries(b.RetriesAttempted) + b.Usage.suffix() + b.Kind.advice(b.Retryable)
}

func (b LLMRequestFailed) Line() Line {
	return Line{slog.LevelWarn, "request failed", append(b.Kind.logged(b.Error), "retries", b.RetriesAttempted, "retryable", b.Retryable)}
}

func (LLMRequestFailed) example() Body {
	return LLMRequestFailed{
		RequestID: "demo:r0001", Error: "status 503", RetriesAttempted: 3, ThroughEventID: "demo:0001", Kind: FailureUnavailable, Retryable: true,
	}
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

const TagLLMRequestFellBack Tag = "LLMRequestFellBackEvent"

func (LLMRequestFellBack) Tag() Tag          { return TagLLMRequestFellBack }
func (b LLMRequestFellBack) Request() string { return b.RequestID }

func (b LLMRequestFellBack) validate() error {
	return cmp.Or(requestID(b.RequestID), knownOrNone("kind", b.Kind), b.Usage.validate())
}

func (b LLMRequestFellBack) Words() (subject, text string) {
	return "fell back", fmt.Sprintf("from %s to %s: %s%s%s", b.FromProvider, b.ToProvider, b.Error, retries(b.RetriesAttempted), b.Usage.suffix())
}

func (b LLMRequestFellBack) Line() Line {
	return Line{slog.LevelWarn, "request falls back", append([]any{"from", LoggedName(b.FromProvider), "to", LoggedName(b.ToProvider)}, b.Kind.logged(b.Error)...)}
}

func (LLMRequestFellBack) example() Body {
	return LLMRequestFellBack{
		RequestID: "demo:r0001", FromProvider: "openai", ToProvider: "ollama", Error: "status 401", RetriesAttempted: 1, Kind: FailureUnauthorized,
	}
}

func retries(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return " (after 1 retry)"
	}
	return fmt.Sprintf(" (after %d retries)", n)
}
