package exchange

// The messages of the Chat Completions API, as far as a log can hold them:
// https://platform.openai.com/docs/api-reference/chat/create
type (
	document struct {
		Messages []message `json:"messages"`
	}
	message struct {
		Role string `json:"role"`
		// Content is a string or []part; nil beside tool calls.
		Content    any        `json:"content"`
		ToolCalls  []toolCall `json:"tool_calls,omitempty"`
		ToolCallID string     `json:"tool_call_id,omitempty"`
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
		// Data is base64 and no data URL.
		Data   string `json:"data"`
		Format string `json:"format"`
	}
	file struct {
		// Filename must be there beside FileData.
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

// Values of the fields.
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

// noArguments are the arguments of a call without any.
const noArguments = "{}"

// betweenTexts parts texts that become one.
const betweenTexts = "\n\n"
