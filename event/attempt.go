package event

import (
	"cmp"
	"fmt"
	"log/slog"
	"strings"
)

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

const TagLLMAttemptEnded Tag = "LLMAttemptEndedEvent"

func (LLMAttemptEnded) Tag() Tag          { return TagLLMAttemptEnded }
func (b LLMAttemptEnded) Request() string { return b.RequestID }

func (b LLMAttemptEnded) validate() error {
	if err := known("outcome", b.Outcome); err != nil {
		return err
	}
	if b.Attempt < 1 {
		return fieldf("attempt", "want 1 or more, got %d", b.Attempt)
	}
	return cmp.Or(requestID(b.RequestID), knownOrNone("kind", b.Kind), b.Usage.validate())
}

func (b LLMAttemptEnded) Words() (subject, text string) {
	outcome := strings.ReplaceAll(string(b.Outcome), "_", " ")
	if b.Outcome == AttemptToolCalls {
		outcome = "called tools"
	}
	text = b.Error
	if b.DurationMs > 0 {
		text += ", after " + milliseconds(b.DurationMs)
	}
	return fmt.Sprintf("attempt %d %s", b.Attempt, outcome), strings.TrimPrefix(text+b.Usage.suffix(), ", ")
}

func (b LLMAttemptEnded) Line() Line {
	fields := append([]any{"attempt", b.Attempt, "outcome", string(b.Outcome), "duration_ms", b.DurationMs}, b.Usage.logged()...)
	switch b.Outcome {
	case AttemptFailed:
		return Line{slog.LevelWarn, "attempt failed; the request is retried", append(fields, b.Kind.logged(b.Error)...)}
	case AttemptLost:
		return Line{slog.LevelWarn, "attempt lost; the request is sent again", fields}
	case AttemptHandedBack:
		return Line{slog.LevelInfo, "attempt handed back", fields}
	}
	return Line{slog.LevelInfo, "attempt ended", fields}
}

func (LLMAttemptEnded) example() Body {
	return LLMAttemptEnded{
		RequestID: "demo:r0001", Attempt: 1, Outcome: AttemptFailed, Kind: FailureTimeout, Retryable: true, Error: "no token for 5s", DurationMs: 5200,
		Usage: Usage{InputTokens: 3, OutputTokens: 1, Estimated: true},
	}
}

// AttemptOutcome is how an attempt ended while its request continues.
type AttemptOutcome string

// Outcomes of an [LLMAttemptEnded].
const (
	AttemptFailed     AttemptOutcome = "failed"      // another attempt follows
	AttemptHandedBack AttemptOutcome = "handed_back" // its worker shut down, its run continued as new, or nobody had asked it to stop
	AttemptLost       AttemptOutcome = "lost"        // its worker died
	AttemptToolCalls  AttemptOutcome = "tool_calls"  // the next attempt contains the results of the calls
	AttemptCompacted  AttemptOutcome = "compacted"   // its answer is the summary of a [Compacted]
)

// Values returns all values.
func (AttemptOutcome) Values() []AttemptOutcome {
	return []AttemptOutcome{AttemptFailed, AttemptHandedBack, AttemptLost, AttemptToolCalls, AttemptCompacted}
}
