package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Claude is the output of Claude Code with --output-format stream-json:
// https://code.claude.com/docs/en/headless
const Claude Format = "claude"

var _ = register(Claude, "output of Claude Code with --output-format stream-json", func() parser { return &claude{} })

type claudeLine struct {
	whole     json.RawMessage // the unparsed line
	Type      string          `json:"type"`
	Subtype   string          `json:"subtype"`
	SessionID string          `json:"session_id"`
	Timestamp json.RawMessage `json:"timestamp"`

	// type "system"
	Cwd   string          `json:"cwd"`
	Tools json.RawMessage `json:"tools"`
	Model string          `json:"model"`

	// type "assistant" and "user"
	Message claudeMessage `json:"message"`
	// ParentToolUseID is the call that started the subagent speaking here.
	ParentToolUseID string `json:"parent_tool_use_id"`

	// type "result"
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

type claudeBlock struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Thinking string `json:"thinking"`

	// type "tool_use"
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`

	// type "tool_result"
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
	items, err = c.itemsOf(l)
	return l.SessionID, items, err
}

func (c *claude) itemsOf(l claudeLine) ([]item, error) {
	fields := extra{"messageId": l.Message.ID, "parentToolCallId": l.ParentToolUseID, sourceTimestamp: timeOf(l.Timestamp)}
	switch l.Type {
	case "system":
		at := timeOf(l.Timestamp)
		if l.Subtype != "init" {
			return []item{note(event.NoteSystem, l.Subtype, extra{"line": l.whole, sourceTimestamp: at})}, nil
		}
		return c.repeats.initialized(initLine{l.SessionID, l.Cwd, l.Model}, extra{"tools": l.Tools, sourceTimestamp: at}), nil
	case "assistant", "user":
		return c.message(l, fields)
	case "result":
		return c.result(l, fields), nil
	case "stream_event":
		return nil, nil // deltas of the message that follows
	}
	return nil, fmt.Errorf("unknown claude line type %q", l.Type)
}

func (c *claude) message(l claudeLine, fields extra) ([]item, error) {
	convert := c.repeats.assistantSaid
	switch {
	case l.Type == "user" && l.ParentToolUseID != "":
		convert = subagentPrompt
	case l.Type == "user":
		convert = c.repeats.userSaid
	}
	blocks, err := blocksOf(l.Message.Content)
	if err != nil {
		return nil, err
	}
	var out []item
	for _, b := range blocks {
		switch b.Type {
		case "text":
			out = append(out, convert(b.Text, fields)...)
		case "thinking":
			out = append(out, note(event.NoteThinking, b.Thinking, fields))
		case "redacted_thinking":
			out = append(out, note(event.NoteThinking, "(redacted by the provider)", fields))
		case "tool_use", "server_tool_use":
			call := newItem(event.ToolCall{
				ToolCallID: b.ID, MessageID: l.Message.ID, ToolName: cmp.Or(b.Name, unknownTool), Parameters: b.Input,
			}, extra{"parentToolCallId": l.ParentToolUseID, sourceTimestamp: fields[sourceTimestamp]})
			if b.Name == "" {
				call.problem = namelessCall
			}
			out = append(out, call)
		default:
			switch {
			case b.ToolUseID != "":
				// A tool_result, or a provider tool's result like web_search_tool_result.
				out = append(out, newItem(b.result(), fields))
			case b.Type == "tool_result":
				out = append(out, item{problem: "tool result without a tool_use_id"})
			default:
				out = append(out, note(event.NoteWarning, fmt.Sprintf("content block of type %q omitted", b.Type), fields))
			}
		}
	}
	return out, nil
}

func subagentPrompt(text string, fields extra) []item {
	return []item{note(event.NoteSystem, text, fields)}
}

func blocksOf(content json.RawMessage) ([]claudeBlock, error) {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return []claudeBlock{{Type: "text", Text: text}}, nil
	}
	if len(content) == 0 {
		return nil, errors.New("message.content: missing")
	}
	var blocks []claudeBlock
	if err := decode(content, &blocks); err != nil {
		return nil, fmt.Errorf("message.content: %w", err)
	}
	return blocks, nil
}

// result returns the outcome of a call, with text blocks joined.
func (b claudeBlock) result() event.ToolResult {
	r := event.ToolResult{ToolCallID: b.ToolUseID, Value: b.Content, IsError: b.IsError}
	if !isSet(r.Value) {
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

// result converts the line that ends the run.
func (c *claude) result(l claudeLine, fields extra) []item {
	var out []item
	if l.IsError || l.Subtype != "success" && l.Subtype != "" {
		c.repeats.finished = true
		out = append(out, note(event.NoteError, cmp.Or(l.Result, l.Subtype, "failed"), fields))
	} else {
		out = c.repeats.finalAnswer(l.Result, fields)
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
