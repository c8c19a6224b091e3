package llm

import (
	"encoding/json"
	"strings"

	"github.com/sashabaranov/go-openai"
)

// message replaces that of go-openai, which has no content parts for PDFs and audio and no fields for
// provider state (no upstream issue is known).
type message struct {
	role       string
	text       string // a plain string, which every server accepts; empty with parts
	parts      []part
	toolCalls  []openai.ToolCall
	toolCallID string
	state      returned // provider state to send back with an answer
}

// part is a content part, in the formats of the providers in [presets].
type part struct {
	// Type is text, image_url, file, input_audio or document_url: the field that is set.
	Type        string    `json:"type"`
	Text        string    `json:"text,omitempty"`
	ImageURL    *imageURL `json:"image_url,omitempty"`
	File        *filePart `json:"file,omitempty"`
	InputAudio  any       `json:"input_audio,omitempty"` // an inputAudio; for Mistral a string in base64
	DocumentURL string    `json:"document_url,omitempty"`
}

type imageURL struct {
	URL string `json:"url"`
}

type filePart struct {
	FileName string `json:"filename"`
	FileData string `json:"file_data"` // a URL, usually a data URL
}

type inputAudio struct {
	Data   string `json:"data"`   // base64
	Format string `json:"format"` // wav or mp3
}

func textPart(text string) part { return part{Type: "text", Text: text} }

func (m message) encode() ([]byte, error) {
	encoded := struct {
		Role string `json:"role"`
		// A string, []part or []any; null for calls without text: DeepSeek requires the field.
		Content    any        `json:"content"`
		ToolCalls  []toolCall `json:"tool_calls,omitempty"`
		ToolCallID string     `json:"tool_call_id,omitempty"`
		returned
	}{Role: m.role, ToolCallID: m.toolCallID, returned: m.state}
	for i, call := range m.toolCalls {
		encoded.ToolCalls = append(encoded.ToolCalls, toolCall{call, m.state.ofCall(i)})
	}
	switch {
	case m.state.thinking != nil:
		encoded.Content = m.state.withText(m.text)
	case m.parts != nil:
		encoded.Content = m.parts
	case m.text != "":
		encoded.Content = m.text
	}
	return json.Marshal(encoded)
}

// messageOf returns a message with a plain string if all blocks are text. Adjacent notes become one text.
func messageOf(blocks []block) message {
	var joined []block
	for _, b := range blocks {
		if last := len(joined) - 1; last >= 0 && b.isNote && joined[last].isNote {
			joined[last].Text += "\n" + b.Text
			continue
		}
		joined = append(joined, b)
	}
	m := message{role: openai.ChatMessageRoleUser}
	var texts []string
	for _, b := range joined {
		m.parts = append(m.parts, b.part)
		if b.Text != "" {
			texts = append(texts, b.Text)
		}
	}
	if len(texts) == len(joined) {
		m.text, m.parts = strings.Join(texts, "\n\n"), nil
	}
	return m
}

// Only b may have tool calls. The merged message keeps the state of these calls. It also keeps the
// reasoning of b, or else of a, because some providers require reasoning in every answer after the results
// of calls.
func merge(a, b message) message {
	reasoning := a.state.ReasoningContent
	if b.state.ReasoningContent != nil {
		reasoning = b.state.ReasoningContent
	}
	a.toolCalls, a.state = b.toolCalls, returned{}
	if len(b.toolCalls) > 0 {
		a.state = b.state
	}
	a.state.ReasoningContent = reasoning
	if a.parts == nil && b.parts == nil {
		if b.text != "" {
			a.text += "\n\n" + b.text
		}
		return a
	}
	a.parts = append(asParts(a), asParts(b)...)
	a.text = ""
	return a
}

func asParts(m message) []part {
	if m.parts != nil {
		return m.parts
	}
	return []part{textPart(m.text)}
}
