package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

type droidLine struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	SessionID string          `json:"session_id"`
	Timestamp json.RawMessage `json:"timestamp"`

	// type "system"
	Subtype string          `json:"subtype"`
	Cwd     string          `json:"cwd"`
	Tools   json.RawMessage `json:"tools"`
	Model   string          `json:"model"`

	// type "message" of a stream
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
	Source string          `json:"source"`
	Level  json.RawMessage `json:"level"`

	// Message is the text of an error, or a droidMessage in a session file.
	Message json.RawMessage `json:"message"`

	// of session files: types "session_start" and "compaction_state"
	Title       string `json:"title"`
	SummaryText string `json:"summaryText"`
}

type droidMessage struct {
	Role string `json:"role"`
	// Content is a string or []block.
	Content json.RawMessage `json:"content"`
}

type droid struct{ repeats repeats }

func (d *droid) parse(line []byte) (session string, items []item, err error) {
	var l droidLine
	if err := decode(line, &l); err != nil {
		return "", nil, err
	}
	if l.Type == "session_start" {
		l.SessionID = l.ID
	}
	items, err = d.itemsOf(l)
	return l.SessionID, items, err
}

func (d *droid) itemsOf(l droidLine) ([]item, error) {
	at := timeOf(l.Timestamp)
	switch l.Type {
	case "system":
		if l.Subtype != "init" {
			return []item{skip("system/" + l.Subtype)}, nil
		}
		return []item{d.repeats.initialized(initLine{l.SessionID, l.Cwd, l.Model}, extra{"tools": l.Tools, sourceTimestamp: at})}, nil
	case "session_start":
		return []item{d.repeats.initialized(initLine{l.SessionID, l.Cwd, ""}, extra{"title": l.Title})}, nil
	case "compaction_state":
		return noted(event.NoteSystem)(l.SummaryText, extra{sourceTimestamp: at}), nil
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
		return []item{note(event.NoteError, cmp.Or(plainText(l.Message), plainText(l.Error)), extra{"source": l.Source, sourceTimestamp: at})}, nil
	case "":
		if len(l.Level) > 0 || len(l.Error) > 0 {
			return []item{logged(l, at)}, nil
		}
	}
	return []item{skip(l.Type)}, nil
}

func (d *droid) message(l droidLine, fields extra) ([]item, error) {
	blocks, role := []block{{Type: "text", Text: l.Text}}, l.Role
	var inner droidMessage
	if json.Unmarshal(l.Message, &inner) == nil {
		var err error
		if blocks, err = blocksOf(inner.Content); err != nil {
			return nil, err
		}
		role = inner.Role
	}
	var say func(string, extra) []item
	switch role {
	case "user":
		say = d.repeats.userSaid
	case "assistant":
		say = d.repeats.assistantSaid
	case "system":
		say = noted(event.NoteSystem)
	default:
		return nil, fmt.Errorf("unknown role %q", role)
	}
	return itemsOfBlocks(blocks, say, fields), nil
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
	content := cmp.Or(e.Message, plainText(l.Message))
	if e.Name != "" {
		content = strings.TrimSuffix(e.Name+": "+content, ": ")
	}
	return note(kind, content, fields)
}
