package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// block is a content block of the Anthropic Messages API.
type block struct {
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

// blocksOf reads content that is a text or a list of blocks.
func blocksOf(content json.RawMessage) ([]block, error) {
	if !isSet(content) {
		return nil, errors.New("message.content: missing")
	}
	var text string
	if json.Unmarshal(content, &text) == nil {
		return []block{{Type: "text", Text: text}}, nil
	}
	var blocks []block
	if content[0] != '[' || decode(content, &blocks) != nil {
		return nil, errors.New("message.content: want a text or a list of blocks")
	}
	return blocks, nil
}

// itemsOfBlocks converts the blocks of a message; say converts its texts.
func itemsOfBlocks(blocks []block, say func(string, extra) []item, fields extra) []item {
	messageID, _ := fields["messageId"].(string)
	callFields := maps.Clone(fields)
	delete(callFields, "messageId")
	var out []item
	for _, b := range blocks {
		switch {
		case b.Type == "text":
			out = append(out, say(b.Text, fields)...)
		case b.Type == "thinking":
			out = append(out, note(event.NoteThinking, b.Thinking, fields))
		case b.Type == "redacted_thinking":
			out = append(out, note(event.NoteThinking, "(redacted by the provider)", fields))
		case b.Type == "tool_use" || b.Type == "server_tool_use":
			call := newItem(event.ToolCall{
				ToolCallID: b.ID, MessageID: messageID, ToolName: cmp.Or(b.Name, unknownTool), Parameters: b.Input,
			}, callFields)
			if b.Name == "" {
				call.problem = namelessCall
			}
			out = append(out, call)
		case b.ToolUseID != "":
			// A tool_result, or a provider tool's result like web_search_tool_result.
			out = append(out, newItem(b.result(), fields))
		case b.Type == "tool_result":
			out = append(out, item{problem: "tool result without a tool_use_id"})
		default:
			out = append(out, skip(fmt.Sprintf("content/%s", b.Type)))
		}
	}
	return out
}

// result returns the outcome of a call, with text blocks joined.
func (b block) result() event.ToolResult {
	return event.ToolResult{ToolCallID: b.ToolUseID, Value: joinTexts(b.Content, "text"), IsError: b.IsError}
}

// joinTexts returns the text of a list of blocks that all have the type, any other value as it is, and ""
// for none.
func joinTexts(value json.RawMessage, blockType string) json.RawMessage {
	if !isSet(value) {
		return json.RawMessage(`""`)
	}
	var parts []block
	if json.Unmarshal(value, &parts) != nil {
		return value
	}
	var texts []string
	for _, part := range parts {
		if part.Type != blockType {
			return value
		}
		texts = append(texts, part.Text)
	}
	text, err := encode(strings.Join(texts, "\n"))
	if err != nil {
		return value
	}
	return text
}

func isSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }
