package chat

import "encoding/json"

// The subset of Chat Completions messages that a log can represent:
// https://platform.openai.com/docs/api-reference/chat/create
type (
	document struct {
		// Model is set if there are reasoning details, which only this model can use.
		Model    string    `json:"model,omitempty"`
		Messages []message `json:"messages"`
	}
	message struct {
		Role string `json:"role"`
		// Content is a string or []part; it may be nil if there are tool calls.
		Content    any        `json:"content"`
		ToolCalls  []toolCall `json:"tool_calls,omitempty"`
		ToolCallID string     `json:"tool_call_id,omitempty"`
		Reasoning  string     `json:"reasoning_content,omitempty"`
		// Details is an array, as OpenRouter sends it.
		Details json.RawMessage `json:"reasoning_details,omitempty"`
	}
	part struct {
		Type       string      `json:"type"`
		Text       string      `json:"text,omitempty"`
		Refusal    string      `json:"refusal,omitempty"`
		ImageURL   *imageURL   `json:"image_url,omitempty"`
		InputAudio *inputAudio `json:"input_audio,omitempty"`
		File       *file       `json:"file,omitempty"`
	}
	imageURL struct {
		URL string `json:"url"`
	}
	inputAudio struct {
		// Data is plain base64, not a data URL.
		Data   string `json:"data"`
		Format string `json:"format"`
	}
	file struct {
		// Filename is required with FileData.
		Filename string `json:"filename,omitempty"`
		// FileData is a data URL.
		FileData string `json:"file_data,omitempty"`
		FileID   string `json:"file_id,omitempty"`
	}
	toolCall struct {
		ID       string   `json:"id"`
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
)

// The provider of reasoning details, a preset of package llm.
const (
	openRouter    = "openrouter"
	openRouterURL = "https://openrouter.ai/api/v1"
)

const (
	roleDeveloper = "developer"

	partText    = "text"
	partRefusal = "refusal"
	partImage   = "image_url"
	partAudio   = "input_audio"
	partFile    = "file"

	typeFunction = "function"

	audioWAV = "wav"
	audioMP3 = "mp3"
)

const noArguments = "{}"

const betweenTexts = "\n\n"
