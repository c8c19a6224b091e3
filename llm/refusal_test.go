package llm_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// suspects formats what the provider of a failed request may have refused: "images schemas:run".
func suspects(failed *llm.Error) string {
	var all []string
	for _, s := range failed.Suspects {
		all = append(all, strings.TrimSuffix(string(s.Content)+":"+s.Tool, ":"))
	}
	return strings.Join(all, " ")
}

func TestARefusedRequestNamesWhatMayBeWrong(t *testing.T) {
	const everyTool = "schemas tools"
	image, pdf, sound := blob("image/png", "a.png", []byte("png")), blob("application/pdf", "a.pdf", []byte("PDF")), blob("audio/mpeg", "a.mp3", []byte("MP3"))
	look := []reducer.Message{user("Look", image)}
	read, listen, both := []reducer.Message{user("", pdf)}, []reducer.Message{user("", sound)}, []reducer.Message{user("", pdf, sound)}
	answered := []reducer.Message{user("Look", image), assistant("A cat."), user("And now?")}
	called := []reducer.Message{user("Go"), assistant("", call("c1", "run")), toolResult("c1", "one"), user("And?")}
	for _, test := range []struct {
		name     string
		messages []reducer.Message
		tools    []llm.Tool
		status   int
		message  string
		kind     llm.Kind
		want     string
	}{
		{"OpenAI about images", look, nil, 400, "Invalid content type. image_url is only supported by certain models.", llm.KindBadRequest, "images"},
		{"Ollama about images", look, nil, 400, "this model does not support image input", llm.KindBadRequest, "images"},
		{"LM Studio about images", look, nil, 400, "Model does not support images. Please use a model that does.", llm.KindBadRequest, "images"},
		{"OpenRouter about images", look, nil, 404, "No endpoints found that support image input", llm.KindNotFound, "images"},
		{"llama.cpp about images", look, nil, 500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj", llm.KindBadRequest, "images"},
		{"an older llama.cpp", look, nil, 500, `Failed to parse messages: Unsupported content part type: "image_url"`, llm.KindBadRequest, "images"},
		{"an older Ollama", look, nil, 500, "this model is missing data required for image input", llm.KindBadRequest, "images"},
		{"a damaged image", look, nil, 400, "Could not process image", llm.KindBadRequest, "images"},
		{"an image that is too large", look, nil, 413, "image exceeds 5 MB", llm.KindContextTooLong, "images"},
		{"an image behind the content filter", look, nil, 400, "the image was rejected by our content filter", llm.KindContentFilter, "images"},
		{"an image that was answered", answered, nil, 400, "the photo of message 0 is not readable", llm.KindBadRequest, "images"},
		{"OpenAI about a PDF", read, nil, 400, "Invalid value: 'file'. Supported values are: 'text', 'image_url' and 'input_audio'.", llm.KindBadRequest, "pdfs"},
		{"LiteLLM about a PDF", read, nil, 400, "Invalid content part type: file", llm.KindBadRequest, "pdfs"},
		{"a server that calls a PDF an image", read, nil, 400, "Image input is not supported.", llm.KindBadRequest, "pdfs"},
		{"OpenAI about audio", listen, nil, 400, "Invalid content type. input_audio is only supported by certain models.", llm.KindBadRequest, "audio"},
		{"OpenRouter about audio", listen, nil, 404, "No endpoints found that support input audio", llm.KindNotFound, "audio"},
		{"vLLM about audio", listen, nil, 400, "At most 0 audio(s) may be provided in one prompt.", llm.KindBadRequest, "audio"},
		{"the audio of two files", both, nil, 400, "audio is not supported", llm.KindBadRequest, "audio pdfs"},

		{"a 400 without a reason", both, nil, 400, "", llm.KindBadRequest, "pdfs audio"},
		{"a 400 that nothing explains", hello, nil, 400, "no", llm.KindBadRequest, ""},
		{"a 500 without a reason", both, nil, 500, "", llm.KindServer, "pdfs audio"},
		{"a 500 after an answer to the image", answered, nil, 500, "", llm.KindServer, ""},
		{"a conversation that is too long", look, tools, 400, "This model's maximum context length is 100 tokens. However, your messages resulted in 120 tokens (110 in the messages, 10 in the functions). Please reduce the length of the messages or functions, or remove an image.", llm.KindContextTooLong, ""},
		{"a filter that names tools", hello, tools, 400, "the content_filter stopped the tool call", llm.KindContentFilter, ""},
		{"an overloaded server that names images", look, nil, 503, "the image service is busy", llm.KindServer, ""},
		{"a body that is too large", look, nil, 413, "Request Entity Too Large", llm.KindContextTooLong, "images"},
		{"a body that is too large because of its text", append([]reducer.Message{user(strings.Repeat("long ", 500))}, look...), nil, 413, "", llm.KindContextTooLong, ""},
		{"a 503", look, nil, 503, "overloaded", llm.KindServer, ""},
		{"a 429", look, nil, 429, "slow down", llm.KindRateLimited, ""},
		{"a 401", look, nil, 401, "no image for you", llm.KindUnauthorized, ""},
		{"an image that is not there", hello, nil, 500, "does not support images", llm.KindServer, ""},

		{"Ollama about tools", hello, tools, 400, "registry.ollama.ai/library/gemma3:4b does not support tools", llm.KindBadRequest, "tools schemas"},
		{"OpenRouter about tools", hello, tools, 404, "No endpoints found that support tool use. To learn more, …", llm.KindNotFound, "tools"},
		{"vLLM about tools", hello, tools, 400, `"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set`, llm.KindBadRequest, "tools schemas"},
		{"llama.cpp about tools", hello, tools, 500, "tools param requires --jinja flag", llm.KindBadRequest, "tools schemas"},
		{"no tools are offered", hello, nil, 400, "this model does not support tools", llm.KindBadRequest, ""},
		{"the schema of a tool by name", hello, tools, 400, "Invalid schema for function 'weather': None is not of type 'object'", llm.KindBadRequest, "schemas:weather tools:weather " + everyTool},
		{"the schema of a tool by number", hello, tools, 400, "tools.0.custom.input_schema: JSON schema is invalid", llm.KindBadRequest, "schemas:weather tools:weather " + everyTool},
		{"the schema of some tool", hello, tools, 400, "the input_schema is invalid", llm.KindBadRequest, everyTool},
		{"a call", called, tools, 400, "messages.1: tool_use blocks need an id", llm.KindBadRequest, "calls " + everyTool},
		{"a call without tools", called, nil, 400, "an assistant message with 'tool_calls' must be followed by tool messages", llm.KindBadRequest, "calls"},
		{"a 400 with a bit of everything", called, tools, 400, "", llm.KindBadRequest, "calls " + everyTool},
	} {
		t.Run(test.name, func(t *testing.T) {
			model := llmtest.Start(t, llmtest.Error(test.status, "", test.message))
			to, err := llm.New(anyMedia("scripted", model)).Resolve(reducer.ProviderConfig{ProviderID: "scripted", Model: "m", BaseURL: model.URL})
			require.NoError(t, err)
			to.Tools = test.tools
			_, err = to.Stream(within(t), test.messages, nil)
			failed := requireKind(t, test.kind, err)
			require.Equal(t, test.want, suspects(failed))
		})
	}
}

func TestAnAnswerThatHasBegunIsNotSuspicious(t *testing.T) {
	model := llmtest.Start(t, llmtest.Raw("text/event-stream", llmtest.Chunk(`{"content":"Hel"}`, ""), `data: {"error":{"message":"the image is broken","code":400}}`+"\n\n"))
	result, err := target(t, model).Stream(within(t), []reducer.Message{user("Look", blob("image/png", "a.png", []byte("png")))}, nil)
	var failed *llm.Error
	require.ErrorAs(t, err, &failed)
	require.Equal(t, "Hel", result.Text)
	require.Empty(t, failed.Suspects)
}

func TestRefusedContentIsANote(t *testing.T) {
	refused := func(m reducer.Message, content event.Content) reducer.Message {
		m.Refused = map[event.Content]string{content: "the image is broken"}
		return m
	}
	image, text := blob("image/png", "a.png", []byte("png")), blob("text/plain", "a.txt", []byte("Text"))
	model := llmtest.Start(t, llmtest.Answer("ok"), llmtest.Answer("ok"))
	to := target(t, model)
	to.Tools = tools
	messages := []reducer.Message{user("Look", image, text), assistant("", call("c1", "run")), toolResult("c1", "one"), user("Well?"), assistant("Hm"), user("And?")}
	_, err := to.Stream(within(t), messages, nil)
	require.NoError(t, err)
	messages = slices.Clone(messages)
	messages[0], messages[1] = refused(messages[0], event.ContentImages), refused(messages[1], event.ContentCalls)
	result, err := to.Stream(within(t), messages, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"content_refused"}, result.Quirks)
	require.Contains(t, string(model.Requests()[0].Body), "image_url")
	require.Equal(t, []string{
		"user: Look\n\n[Attached: a.png, which the provider refused: the image is broken]\n\n[Attached: a.txt]\nText",
		`assistant: [Called the tool run with {"x":1}]`, "user: [The tool run returned: one]", "user: Well?", "assistant: Hm", "user: And?",
	}, lines(model.Requests()[1].Messages))
}
