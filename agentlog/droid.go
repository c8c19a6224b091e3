package agentlog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Droid is what the Droid CLI prints with --output-format stream-json.
const Droid Format = "droid"

// droidLine is any line of such a log.
type droidLine struct {
	whole     json.RawMessage // the line as it is
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	SessionID string          `json:"session_id"`
	Timestamp json.RawMessage `json:"timestamp"`

	// Of a system line.
	Subtype string          `json:"subtype"`
	Cwd     string          `json:"cwd"`
	Tools   json.RawMessage `json:"tools"`
	Model   string          `json:"model"`

	// Of a message.
	Role string `json:"role"`
	Text string `json:"text"`

	// Of a tool_call and a tool_result, which may do without an id.
	MessageID  string          `json:"messageId"`
	ToolID     string          `json:"toolId"`
	ToolName   string          `json:"toolName"`
	Parameters json.RawMessage `json:"parameters"`
	IsError    bool            `json:"isError"`
	Value      json.RawMessage `json:"value"`
	Error      json.RawMessage `json:"error"`

	// Of a completion.
	FinalText  string `json:"finalText"`
	NumTurns   int    `json:"numTurns"`
	DurationMs int64  `json:"durationMs"`

	// Of an error; those of the logger have a level instead of a type.
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
	items, err = d.mean(l)
	return l.SessionID, items, err
}

// mean says what a line means.
func (d *droid) mean(l droidLine) ([]item, error) {
	at := timeOf(l.Timestamp)
	switch l.Type {
	case "system":
		if l.Subtype != "init" {
			return []item{note(event.NoteSystem, l.Subtype, extra{"line": l.whole, sourceTimestamp: at})}, nil
		}
		return d.repeats.begins(beginning{l.SessionID, l.Cwd, l.Model}, extra{"tools": l.Tools, sourceTimestamp: at}), nil
	case "message":
		return d.message(l, extra{"messageId": l.ID, sourceTimestamp: at})
	case "tool_call":
		call := newItem(event.ToolCall{
			ToolCallID: l.ID, MessageID: l.MessageID, ToolName: cmp.Or(l.ToolName, l.tool()), Parameters: l.Parameters,
		}, extra{sourceTimestamp: at})
		call.tool = l.tool()
		return []item{call}, nil
	case "tool_result":
		result := newItem(l.result(), extra{"messageId": l.MessageID, sourceTimestamp: at})
		result.tool = l.tool()
		return []item{result}, nil
	case "completion":
		out := d.repeats.ends(l.FinalText, extra{sourceTimestamp: at})
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
	return nil, fmt.Errorf("a droid has no lines of type %q", l.Type)
}

func (d *droid) message(l droidLine, fields extra) ([]item, error) {
	switch l.Role {
	case "user":
		return d.repeats.asks(l.Text, fields), nil
	case "assistant":
		return d.repeats.answers(l.Text, fields), nil
	case "system":
		return []item{note(event.NoteSystem, l.Text, fields)}, nil
	}
	return nil, fmt.Errorf("nobody has the role %q", l.Role)
}

// tool is what calls and results name a tool by.
func (l droidLine) tool() string { return cmp.Or(l.ToolID, l.ToolName, unknownTool) }

// result is the outcome of a call. There is always one, if only that the tool had
// nothing to say.
func (l droidLine) result() event.ToolResult {
	r := event.ToolResult{ToolCallID: l.ID, Value: l.Value, Error: l.Error, IsError: l.IsError}
	hasValue, hasError := said(l.Value), said(l.Error)
	switch {
	case hasValue && hasError:
		r.Value = json.RawMessage(fmt.Sprintf(`{"error":%s,"value":%s}`, l.Error, l.Value))
		r.Error = nil
	case !hasValue && !hasError && l.IsError:
		r.Error = json.RawMessage(`"failed without a word"`)
	case !hasValue && !hasError:
		r.Value = json.RawMessage(`""`)
	}
	r.IsError = r.IsError || hasError
	return r
}

// said reports whether a value is there and not null.
func said(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// logged is a line of the logger, {"level":…,"error":{"name":…,"message":…,"stack":…}}.
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
