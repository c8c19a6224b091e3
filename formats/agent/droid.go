package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Droid is the output of the Droid CLI with --output-format stream-json.
const Droid Format = "droid"

var _ = register(Droid, "output of the Droid CLI with --output-format stream-json", func() parser { return &droid{} })

type droidLine struct {
	whole     json.RawMessage // the unparsed line
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	SessionID string          `json:"session_id"`
	Timestamp json.RawMessage `json:"timestamp"`

	// type "system"
	Subtype string          `json:"subtype"`
	Cwd     string          `json:"cwd"`
	Tools   json.RawMessage `json:"tools"`
	Model   string          `json:"model"`

	// type "message"
	Role string `json:"role"`
	Text string `json:"text"`

	// type "tool_call" and "tool_result"; the id is optional
	MessageID  string          `json:"messageId"`
	ToolID     string          `json:"toolId"`
	ToolName   string          `json:"toolName"`
	Parameters json.RawMessage `json:"parameters"`
	IsError    bool            `json:"isError"`
	Value      json.RawMessage `json:"value"`
	Error      json.RawMessage `json:"error"`

	// type "completion"
	FinalText  string `json:"finalText"`
	NumTurns   int    `json:"numTurns"`
	DurationMs int64  `json:"durationMs"`

	// type "error"; lines from the logger have a level and no type
	Source  string          `json:"source"`
	Message string          `json:"message"`
	Level   json.RawMessage `json:"level"`
}

type droid struct{ repeats repeats }

func (d *droid) parse(line []byte) (session string, items []item, err error) {
	var l droidLine
	if err := decode(line, &l); err != nil {
		return "", nil, err
	}
	l.whole = line
	items, err = d.itemsOf(l)
	return l.SessionID, items, err
}

func (d *droid) itemsOf(l droidLine) ([]item, error) {
	at := timeOf(l.Timestamp)
	switch l.Type {
	case "system":
		if l.Subtype != "init" {
			return []item{note(event.NoteSystem, l.Subtype, extra{"line": l.whole, sourceTimestamp: at})}, nil
		}
		return d.repeats.initialized(initLine{l.SessionID, l.Cwd, l.Model}, extra{"tools": l.Tools, sourceTimestamp: at}), nil
	case "message":
		return d.message(l, extra{"messageId": l.ID, sourceTimestamp: at})
	case "tool_call":
		call := newItem(event.ToolCall{
			ToolCallID: l.ID, MessageID: l.MessageID, ToolName: cmp.Or(l.ToolName, l.tool()), Parameters: l.Parameters,
		}, extra{sourceTimestamp: at})
		call.tool = l.tool()
		if call.tool == unknownTool {
			call.problem = namelessCall
		}
		return []item{call}, nil
	case "tool_result":
		result := newItem(l.result(), extra{"messageId": l.MessageID, sourceTimestamp: at})
		result.tool = l.tool()
		return []item{result}, nil
	case "completion":
		out := d.repeats.finalAnswer(l.FinalText, extra{sourceTimestamp: at})
		return append(out, note(event.NoteUsage, usage(l.NumTurns, l.DurationMs), extra{
			"numTurns": l.NumTurns, "durationMs": l.DurationMs, sourceTimestamp: at,
		})), nil
	case "error":
		return []item{note(event.NoteError, cmp.Or(l.Message, plainText(l.Error)), extra{"source": l.Source, sourceTimestamp: at})}, nil
	case "":
		if len(l.Level) > 0 || len(l.Error) > 0 {
			return []item{logged(l, at)}, nil
		}
	}
	return nil, fmt.Errorf("unknown droid line type %q", l.Type)
}

func (d *droid) message(l droidLine, fields extra) ([]item, error) {
	switch l.Role {
	case "user":
		return d.repeats.userSaid(l.Text, fields), nil
	case "assistant":
		return d.repeats.assistantSaid(l.Text, fields), nil
	case "system":
		return []item{note(event.NoteSystem, l.Text, fields)}, nil
	}
	return nil, fmt.Errorf("unknown role %q", l.Role)
}

// tool returns the key that calls and results share for a tool.
func (l droidLine) tool() string { return cmp.Or(l.ToolID, l.ToolName, unknownTool) }

// result returns the outcome of a call. A result with neither value nor error gets
// an empty value, or a generic error if it is marked as one.
func (l droidLine) result() event.ToolResult {
	r := event.ToolResult{ToolCallID: l.ID, Value: l.Value, Error: l.Error, IsError: l.IsError}
	hasValue, hasError := isSet(l.Value), isSet(l.Error)
	switch {
	case hasValue && hasError:
		r.Value = json.RawMessage(fmt.Sprintf(`{"error":%s,"value":%s}`, l.Error, l.Value))
		r.Error = nil
	case !hasValue && !hasError && l.IsError:
		r.Error = json.RawMessage(`"failed without an error message"`)
	case !hasValue && !hasError:
		r.Value = json.RawMessage(`""`)
	}
	r.IsError = r.IsError || hasError
	return r
}

func isSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// {"level":…,"error":{"name":…,"message":…,"stack":…}}
func logged(l droidLine, at string) item {
	level := plainText(l.Level)
	kind := event.NoteError
	switch strings.ToLower(level) {
	case "warn", "warning":
		kind = event.NoteWarning
	case "info", "debug", "trace":
		kind = event.NoteSystem
	}
	fields := extra{"level": level, sourceTimestamp: at}
	var e struct{ Name, Message, Stack string }
	if json.Unmarshal(l.Error, &e) != nil {
		e.Message = plainText(l.Error)
	}
	fields["stack"] = e.Stack
	content := cmp.Or(e.Message, l.Message)
	if e.Name != "" {
		content = strings.TrimSuffix(e.Name+": "+content, ": ")
	}
	return note(kind, content, fields)
}
