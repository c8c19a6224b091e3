package agentlog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Claude is what Claude Code prints with --output-format stream-json:
// https://code.claude.com/docs/en/headless
const Claude Format = "claude"

// claudeLine is any line of such a log.
type claudeLine struct {
	whole     json.RawMessage // the line as it is
	Type      string          `json:"type"`
	Subtype   string          `json:"subtype"`
	SessionID string          `json:"session_id"`
	Timestamp json.RawMessage `json:"timestamp"`

	// Of a system line.
	Cwd   string          `json:"cwd"`
	Tools json.RawMessage `json:"tools"`
	Model string          `json:"model"`

	// Of an assistant and of a user.
	Message claudeMessage `json:"message"`
	// ParentToolUseID is the call by which an agent started the one that speaks.
	ParentToolUseID string `json:"parent_tool_use_id"`

	// Of a result.
	Result       string          `json:"result"`
	IsError      bool            `json:"is_error"`
	NumTurns     int             `json:"num_turns"`
	DurationMs   int64           `json:"duration_ms"`
	Usage        json.RawMessage `json:"usage"`
	TotalCostUSD float64         `json:"total_cost_usd"`
}

type claudeMessage struct {
	ID string `json:"id"`
	// Content is a string or []claudeBlock.
	Content json.RawMessage `json:"content"`
}

// claudeBlock is a part of a message.
type claudeBlock struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Thinking string `json:"thinking"`

	// Of a tool_use.
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`

	// Of a tool_result.
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

type claude struct{ repeats repeats }

func (c *claude) parse(line []byte) (session string, items []item, err error) {
	var l claudeLine
	if err := decode(line, &l); err != nil {
		return "", nil, err
	}
	l.whole = line
	items, err = c.mean(l)
	return l.SessionID, items, err
}

// mean says what a line means.
func (c *claude) mean(l claudeLine) ([]item, error) {
	fields := extra{"messageId": l.Message.ID, "parentToolCallId": l.ParentToolUseID, sourceTimestamp: timeOf(l.Timestamp)}
	switch l.Type {
	case "system":
		at := timeOf(l.Timestamp)
		if l.Subtype != "init" {
			return []item{note(event.NoteSystem, l.Subtype, extra{"line": l.whole, sourceTimestamp: at})}, nil
		}
		return c.repeats.begins(beginning{l.SessionID, l.Cwd, l.Model}, extra{"tools": l.Tools, sourceTimestamp: at}), nil
	case "assistant", "user":
		return c.message(l, fields)
	case "result":
		return c.result(l, fields), nil
	case "stream_event":
		return nil, nil // pieces of the message that follows
	}
	return nil, fmt.Errorf("claude has no lines of type %q", l.Type)
}

func (c *claude) message(l claudeLine, fields extra) ([]item, error) {
	says := c.repeats.answers
	switch {
	case l.Type == "user" && l.ParentToolUseID != "":
		says = told
	case l.Type == "user":
		says = c.repeats.asks
	}
	blocks, err := blocksOf(l.Message.Content)
	if err != nil {
		return nil, err
	}
	var out []item
	for _, b := range blocks {
		switch b.Type {
		case "text":
			out = append(out, says(b.Text, fields)...)
		case "thinking":
			out = append(out, note(event.NoteThinking, b.Thinking, fields))
		case "redacted_thinking":
			out = append(out, note(event.NoteThinking, "(not shown by the model's provider)", fields))
		case "tool_use", "server_tool_use":
			out = append(out, newItem(event.ToolCall{
				ToolCallID: b.ID, MessageID: l.Message.ID, ToolName: cmp.Or(b.Name, unknownTool), Parameters: b.Input,
			}, extra{"parentToolCallId": l.ParentToolUseID, sourceTimestamp: fields[sourceTimestamp]}))
		default:
			if b.ToolUseID == "" {
				out = append(out, note(event.NoteWarning, fmt.Sprintf("a part of type %q is left out of a message", b.Type), fields))
				continue
			}
			// A tool_result, or that of a tool of the provider, like
			// web_search_tool_result.
			out = append(out, newItem(b.result(), fields))
		}
	}
	return out, nil
}

// told is what an agent told another one that it started.
func told(text string, fields extra) []item {
	return []item{note(event.NoteSystem, text, fields)}
}

// blocksOf are the parts of a content, which may be a text alone.
func blocksOf(content json.RawMessage) ([]claudeBlock, error) {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return []claudeBlock{{Type: "text", Text: text}}, nil
	}
	var blocks []claudeBlock
	err := json.Unmarshal(content, &blocks)
	return blocks, err
}

// result is the outcome of a call; texts are one text.
func (b claudeBlock) result() event.ToolResult {
	r := event.ToolResult{ToolCallID: b.ToolUseID, Value: b.Content, IsError: b.IsError}
	if !said(r.Value) {
		r.Value = json.RawMessage(`""`)
	}
	var parts []claudeBlock
	if json.Unmarshal(r.Value, &parts) != nil {
		return r
	}
	var texts []string
	for _, part := range parts {
		if part.Type != "text" {
			return r
		}
		texts = append(texts, part.Text)
	}
	if text, err := encode(strings.Join(texts, "\n")); err == nil {
		r.Value = text
	}
	return r
}

// result tells how the work has ended.
func (c *claude) result(l claudeLine, fields extra) []item {
	var out []item
	if l.IsError || l.Subtype != "success" && l.Subtype != "" {
		c.repeats.isOver = true
		out = append(out, note(event.NoteError, cmp.Or(l.Result, l.Subtype, "failed"), fields))
	} else {
		out = c.repeats.ends(l.Result, fields)
	}
	var tokens struct {
		Input  int `json:"input_tokens"`
		Output int `json:"output_tokens"`
	}
	var more []string
	if json.Unmarshal(l.Usage, &tokens) == nil {
		more = append(more, fmt.Sprintf("%d tokens in, %d out", tokens.Input, tokens.Output))
	}
	if l.TotalCostUSD > 0 {
		more = append(more, fmt.Sprintf("$%.4f", l.TotalCostUSD))
	}
	return append(out, note(event.NoteUsage, usage(l.NumTurns, l.DurationMs, more...), extra{
		"subtype": l.Subtype, "numTurns": l.NumTurns, "durationMs": l.DurationMs, "usage": l.Usage, "totalCostUsd": l.TotalCostUSD,
		sourceTimestamp: fields[sourceTimestamp],
	}))
}
