package event

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
)

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

const TagToolCall Tag = "ToolCallEvent"

func (ToolCall) Tag() Tag          { return TagToolCall }
func (b ToolCall) Request() string { return b.RequestID }

func (b ToolCall) validate() error {
	if b.ToolCallID == "" {
		return fieldf("toolCallId", "empty")
	}
	if err := ValidateName("toolName", b.ToolName); err != nil {
		return err
	}
	return value("parameters", b.Parameters)
}

func (b ToolCall) Words() (subject, text string) {
	text = b.ToolName + " " + string(b.Parameters)
	if b.RequestID != "" {
		text += " (" + b.ToolCallID + ")"
	}
	return "tool call", text
}

func (b ToolCall) Line() Line {
	return Line{slog.LevelInfo, "tool call requested", []any{"tool", LoggedName(b.ToolName), "call", LoggedName(b.ToolCallID)}}
}

func (ToolCall) example() Body {
	return ToolCall{
		ToolCallID: "call_1", MessageID: "demo:0002", ToolName: "weather", Parameters: []byte(`{"city":"Paris"}`), RequestID: "demo:r0001",
	}
}

// MaxArgumentBytes is the maximum size of the arguments of a tool call.
const MaxArgumentBytes = 256 << 10

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

const TagToolResult Tag = "ToolResultEvent"

func (ToolResult) Tag() Tag { return TagToolResult }

func (b ToolResult) validate() error {
	switch {
	case b.ToolCallID == "":
		return fieldf("toolCallId", "empty")
	case has(b.Value) && has(b.Error):
		return fieldf("error", "set together with value (want only one of them)")
	case !has(b.Value) && !has(b.Error):
		return fieldf("value", "missing (want a value or an error)")
	}
	if b.DurationMs < 0 {
		return fieldf("durationMs", "want 0 or more, got %d", b.DurationMs)
	}
	if err := value("value", b.Value); err != nil {
		return err
	}
	return value("error", b.Error)
}

func (b ToolResult) Words() (subject, text string) {
	after := ""
	if b.DurationMs > 0 {
		after = " (after " + milliseconds(b.DurationMs) + ")"
	}
	if b.IsError || len(b.Value) == 0 {
		return "tool error", string(b.Error) + string(b.Value) + after
	}
	return "tool result", string(b.Value) + after
}

func (b ToolResult) Line() Line {
	return Line{slog.LevelInfo, "tool call ended", []any{"call", LoggedName(b.ToolCallID), "is_error", b.IsError, "duration_ms", b.DurationMs}}
}

func (ToolResult) example() Body {
	return ToolResult{ToolCallID: "call_0", Value: []byte(`"sunny"`), DurationMs: 1200}
}

// OutcomeUnknown is the text of a placeholder result: providers reject calls without a result.
const OutcomeUnknown = "interrupted, outcome unknown"

// UnknownResult returns the placeholder result of a call: [OutcomeUnknown] as an error.
func UnknownResult(toolCallID string) ToolResult {
	return ToolResult{ToolCallID: toolCallID, Error: json.RawMessage(`"` + OutcomeUnknown + `"`), IsError: true}
}

// has reports whether a value is present; null counts as missing.
func has(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// ToolProgress is the newest text about a running tool call. It is never recorded.
//
//doc:effect the progress of a running tool call. Each `text` replaces the previous one; `index` increases with the texts of a call and has gaps
type ToolProgress struct {
	RequestID  string `json:"requestId" schema:"id,min=1"`
	ToolCallID string `json:"toolCallId" schema:"min=1"`
	Index      int    `json:"index" schema:"min=0"` // increases from text to text of a call; may have gaps
	Text       string `json:"text"`                 // replaces the previous text
}

const TagToolProgress Tag = "ToolProgressEvent"

func (ToolProgress) Tag() Tag          { return TagToolProgress }
func (b ToolProgress) Request() string { return b.RequestID }

func (b ToolProgress) validate() error {
	if b.ToolCallID == "" {
		return fieldf("toolCallId", "empty")
	}
	return requestID(b.RequestID)
}

func (b ToolProgress) Words() (subject, text string) { return "tool progress", b.Text }

func (ToolProgress) example() Body {
	return ToolProgress{RequestID: "demo:r0001", ToolCallID: "call_0", Index: 0, Text: "page 3 of 12"}
}

// MaxProgressBytes bounds the text of a [ToolProgress].
const MaxProgressBytes = 1 << 10

// ToolValue returns the output of a model or a tool as canonical JSON that an event can contain,
// redacted if necessary ([RedactJSON]). Output that is not JSON, or nested more than 100 levels
// deep, becomes a string; null becomes nil.
func ToolValue(raw json.RawMessage) json.RawMessage {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	if !json.Valid(raw) || isTooDeep(raw, maxNestingDepth) {
		raw, _ = encode(strings.ToValidUTF8(string(raw), "\uFFFD"))
		return raw
	}
	kept, err := canonical(raw)
	if err == nil && value("", kept) != nil {
		kept, err = RedactJSON(kept)
	}
	if err != nil {
		return nil // unreachable: the JSON is valid
	}
	return kept
}
