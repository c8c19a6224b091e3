package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/baseurl"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// anyMedia accepts all content parts, in the formats of the provider with this id.
func anyMedia(id string, model *llmtest.Server) llm.Options {
	return llm.Options{Providers: []llm.Provider{{
		ID: id, BaseURL: baseurl.MustParse(model.URL), Accepts: []event.Media{event.MediaImage, event.MediaPDF, event.MediaAudio},
	}}}
}

func TestPDFsAndAudioAreContentParts(t *testing.T) {
	const pdfData, wavData = "data:application/pdf;base64,UERG", "data:audio/x-wav;base64,V0FW"
	pdf, mp3 := []byte("PDF"), []byte("MP3")
	files := func(string) ([]byte, error) { return pdf, nil }
	blobs := func(context.Context, string) ([]byte, error) { return mp3, nil }
	tests := map[string]struct {
		provider string
		message  reducer.Message
		want     string
	}{
		"a PDF": {"scripted", user("Read", blob("application/pdf", "a.pdf", pdf)),
			`[{"type":"text","text":"Read"},{"type":"file","file":{"filename":"a.pdf","file_data":"` + pdfData + `"}}]`},
		"a PDF without a name": {"scripted", user("", link("application/pdf", pdfData)),
			`[{"type":"file","file":{"filename":"document.pdf","file_data":"` + pdfData + `"}}]`},
		"a PDF in a file": {"scripted", user("", file("application/pdf", "docs/a.pdf")),
			`[{"type":"file","file":{"filename":"document.pdf","file_data":"` + pdfData + `"}}]`},
		"a PDF on the web becomes a note": {"scripted", user("", link("application/pdf", "https://x.example/a.pdf")),
			`"[Attached: https://x.example/a.pdf]"`},
		"an empty PDF becomes a note": {"scripted", user("", link("application/pdf", "data:application/pdf;base64,")),
			`"[Attached: data:application/pdf;base64,…, which could not be read]"`},
		"a referenced audio file": {"scripted", user("Listen", ref("audio/mpeg", "a.mp3", "mp3")),
			`[{"type":"text","text":"Listen"},{"type":"input_audio","input_audio":{"data":"TVAz","format":"mp3"}}]`},
		"an audio file with the name of another media type": {"scripted", user("", link("Audio/X-WAV", wavData)),
			`[{"type":"input_audio","input_audio":{"data":"V0FW","format":"wav"}}]`},
		"an audio file on the web becomes a note": {"scripted", user("", link("audio/mpeg", "https://x.example/a.mp3")),
			`"[Attached: https://x.example/a.mp3]"`},
		"an audio file in an unsupported format becomes a note": {"scripted", user("", blob("audio/midi", "a.mid", mp3)), `"[Attached: a.mid]"`},
		"an image, a PDF and an audio file, with notes in one part": {"scripted",
			user("", blob("image/png", "", []byte("PNG")), blob("application/zip", "a.zip", pdf), blob("video/mp4", "a.mp4", pdf), blob("audio/mp3", "", mp3), blob("application/pdf", "a.pdf", pdf)),
			`[{"type":"image_url","image_url":{"url":"data:image/png;base64,UE5H"}},{"type":"text","text":"[Attached: a.zip]\n[Attached: a.mp4]"},` +
				`{"type":"input_audio","input_audio":{"data":"TVAz","format":"mp3"}},{"type":"file","file":{"filename":"a.pdf","file_data":"` + pdfData + `"}}]`},
		"Mistral has parts of its own": {"mistral", user("Look", blob("application/pdf", "a.pdf", pdf), blob("audio/wav", "", []byte("WAV"))),
			`[{"type":"text","text":"Look"},{"type":"document_url","document_url":"` + pdfData + `"},{"type":"input_audio","input_audio":"V0FW"}]`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			model := llmtest.Start(t, llmtest.Answer("Hi"))
			options := anyMedia(test.provider, model)
			options.ReadAttachment, options.ReadBlob = files, blobs
			require.NoError(t, send(within(t), model, options, reducer.ProviderConfig{ProviderID: test.provider}, []reducer.Message{test.message}))
			var request struct {
				Messages []struct {
					Role    string          `json:"role"`
					Content json.RawMessage `json:"content"`
				} `json:"messages"`
			}
			require.NoError(t, json.Unmarshal(model.Requests()[0].Body, &request))
			require.Len(t, request.Messages, 1)
			require.Equal(t, "user", request.Messages[0].Role)
			require.Equal(t, test.want, string(request.Messages[0].Content))
		})
	}
}

func TestProvidersThatFetchPDFsGetTheirURLs(t *testing.T) {
	for provider, part := range map[string]string{
		"openrouter": `{"type":"file","file":{"filename":"document.pdf","file_data":"https://x.example/a.pdf"}}`,
		"mistral":    `{"type":"document_url","document_url":"https://x.example/a.pdf"}`,
		"openai":     `"[Attached: https://x.example/a.pdf]"`,
	} {
		var body []byte
		adapter := llm.New(llm.Options{
			Getenv: func(string) string { return testKey },
			HTTPClient: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
				body, _ = io.ReadAll(r.Body)
				return nil, errors.New("sent")
			})},
		})
		target, err := adapter.Resolve(reducer.ProviderConfig{ProviderID: provider, Model: "m"})
		require.NoError(t, err)
		_, err = target.Stream(within(t), []reducer.Message{user("", link("application/pdf", "https://x.example/a.pdf"))}, nil)
		requireKind(t, llm.KindConnection, err)
		require.Contains(t, string(body), part, provider)
	}
}

func TestOtherServersAreNotAskedToFetchPDFs(t *testing.T) {
	messages := []reducer.Message{user("", link("application/pdf", "https://x.example/a.pdf"))}
	preset := anyMedia("openrouter", &llmtest.Server{URL: "https://openrouter.ai/api/v1"})
	preset.Getenv = func(string) string { return testKey }
	for name, optionsFor := range map[string]func(*llmtest.Server) llm.Options{
		"configured under the name of a preset": func(model *llmtest.Server) llm.Options { return anyMedia("openrouter", model) },
		"named by the context":                  func(*llmtest.Server) llm.Options { return preset },
	} {
		t.Run(name, func(t *testing.T) {
			model := llmtest.Start(t, llmtest.Answer("Hi"))
			require.NoError(t, send(within(t), model, optionsFor(model), reducer.ProviderConfig{ProviderID: "openrouter"}, messages))
			require.Equal(t, "[Attached: https://x.example/a.pdf]", model.Requests()[0].Messages[0].Content)
		})
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestMediaThatProvidersAccept(t *testing.T) {
	elsewhere := baseurl.MustParse("https://llm.example.com/v1")
	none := []event.Media{}
	for _, test := range []struct {
		config     reducer.ProviderConfig
		configured []llm.Provider
		want       string
	}{
		{config: reducer.ProviderConfig{ProviderID: "openai", Model: "gpt-5"}, want: "image pdf"},
		{config: reducer.ProviderConfig{ProviderID: "openai", Model: "gpt-audio"}, want: "image pdf audio"},
		{config: reducer.ProviderConfig{ProviderID: "openai", Model: "gpt-audio", TextOnly: true}, want: ""},
		{config: reducer.ProviderConfig{ProviderID: "openrouter", Model: "anthropic/claude-sonnet-4.5"}, want: "image pdf"},
		{config: reducer.ProviderConfig{ProviderID: "openrouter", Model: "google/gemini-2.5-pro"}, want: "image pdf audio"},
		{config: reducer.ProviderConfig{ProviderID: "groq", Model: "any"}, want: "image"},
		{config: reducer.ProviderConfig{ProviderID: "cerebras", Model: "any"}, want: ""},
		{config: reducer.ProviderConfig{ProviderID: "together", Model: "any"}, want: "image"},
		{config: reducer.ProviderConfig{ProviderID: "mistral", Model: "mistral-small"}, want: "image pdf"},
		{config: reducer.ProviderConfig{ProviderID: "mistral", Model: "voxtral-small-latest"}, want: "image pdf audio"},
		{config: reducer.ProviderConfig{ProviderID: "deepseek", Model: "any"}, want: ""},
		{config: reducer.ProviderConfig{ProviderID: "gemini", Model: "gemini-2.5-flash"}, want: "image audio"},
		{config: reducer.ProviderConfig{ProviderID: "anthropic", Model: "claude-opus-4-5"}, want: "image"},
		{config: reducer.ProviderConfig{ProviderID: "ollama", Model: "any"}, want: "image"},
		{config: reducer.ProviderConfig{ProviderID: "vllm", Model: "Qwen/Qwen2.5-Omni-7B"}, want: "image audio"},
		{config: reducer.ProviderConfig{ProviderID: "llamacpp", Model: "gemma-3-4b"}, want: "image"},
		{config: reducer.ProviderConfig{ProviderID: "openai", Model: "gpt-audio", BaseURL: "http://127.0.0.1:1/v1"}, want: "image"},
		{config: reducer.ProviderConfig{ProviderID: "unknown", Model: "gpt-audio", BaseURL: "http://127.0.0.1:1/v1"}, want: "image"},
		{
			config: reducer.ProviderConfig{ProviderID: "openai", Model: "gpt-audio"}, want: "image",
			configured: []llm.Provider{{ID: "openai", BaseURL: elsewhere}},
		},
		{
			config: reducer.ProviderConfig{ProviderID: "house", Model: "any"}, want: "pdf audio",
			configured: []llm.Provider{{ID: "house", BaseURL: elsewhere, Accepts: []event.Media{event.MediaPDF, event.MediaAudio}}},
		},
		{
			config: reducer.ProviderConfig{ProviderID: "openai", Model: "gpt-audio"}, want: "",
			configured: []llm.Provider{{ID: "openai", BaseURL: elsewhere, Accepts: none}},
		},
	} {
		adapter := llm.New(llm.Options{Providers: test.configured, AllowLoopback: true, Getenv: func(string) string { return testKey }})
		target, err := adapter.Resolve(test.config)
		require.NoError(t, err)
		require.Equal(t, test.want, target.Accepts(), "%+v", test.config)
	}
}

func TestServerThatRejectsPDFsOrAudio(t *testing.T) {
	pdf, sound := blob("application/pdf", "a.pdf", []byte("PDF")), blob("audio/mpeg", "a.mp3", []byte("MP3"))
	answer := reducer.Message{Role: reducer.RoleAssistant, Content: "Nice."}
	tests := map[string]struct {
		messages []reducer.Message
		status   int
		message  string
		kind     llm.Kind
		advice   string
		once     bool
	}{
		"OpenAI rejects a PDF":          {[]reducer.Message{user("", pdf)}, 400, "Invalid value: 'file'. Supported values are: 'text', 'image_url' and 'input_audio'.", llm.KindNoPDF, "each PDF", false},
		"LiteLLM rejects a PDF":         {[]reducer.Message{user("", pdf)}, 400, "Invalid content part type: file", llm.KindNoPDF, "each PDF", false},
		"a server rejects files":        {[]reducer.Message{user("", pdf)}, 400, "This model does not support file inputs.", llm.KindNoPDF, "each PDF", false},
		"a server calls a PDF an image": {[]reducer.Message{user("", pdf)}, 400, "Image input is not supported.", llm.KindNoPDF, "each PDF", false},
		"OpenAI rejects audio":          {[]reducer.Message{user("", sound)}, 400, "Invalid content type. input_audio is only supported by certain models.", llm.KindNoAudio, "each audio file", false},
		"OpenRouter rejects audio":      {[]reducer.Message{user("", sound)}, 404, "No endpoints found that support input audio", llm.KindNoAudio, "each audio file", false},
		"llama.cpp rejects audio":       {[]reducer.Message{user("", sound)}, 500, "audio input is not supported - hint: if this is unexpected, you may need to provide the mmproj", llm.KindNoAudio, "each audio file", false},
		"vLLM rejects audio":            {[]reducer.Message{user("", sound)}, 400, "At most 0 audio(s) may be provided in one prompt.", llm.KindNoAudio, "each audio file", false},
		"the audio file of two files":   {[]reducer.Message{user("", pdf, sound)}, 400, "audio is not supported", llm.KindNoAudio, "each audio file", false},
		"a 500 without a reason":        {[]reducer.Message{user("", pdf, sound)}, 500, "", llm.KindServer, "each PDF and audio file", true},
		"a 500 after an answer":         {[]reducer.Message{user("", pdf), answer, user("And?")}, 500, "", llm.KindServer, "", false},
		"a rejection of absent audio":   {[]reducer.Message{user("", pdf)}, 400, "audio is not supported", llm.KindBadRequest, "", false},
		"an invalid PDF":                {[]reducer.Message{user("", pdf)}, 400, "Invalid value: 'file_data' is not base64.", llm.KindBadRequest, "", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			model := llmtest.Start(t, llmtest.Error(test.status, "", test.message))
			err := send(within(t), model, anyMedia("scripted", model), reducer.ProviderConfig{}, test.messages)
			failed := requireKind(t, test.kind, err)
			require.Equal(t, test.once, failed.RetryOnce)
			if test.advice == "" {
				require.NotContains(t, err.Error(), "textOnly")
			} else {
				require.ErrorContains(t, err, `(set textOnly, or the field "accepts" in the file of --providers, to send a note instead of `+test.advice+")")
			}
		})
	}
}

func TestServerWithoutVisionIsRetriedOnce(t *testing.T) {
	look := user("Look", blob("image/png", "a.png", []byte("png")))
	answer := reducer.Message{Role: reducer.RoleAssistant, Content: "A cat."}
	refusal := func(status int, message string) llmtest.Step { return llmtest.Error(status, "", message) }
	const (
		never = iota
		once
		often
	)
	tests := map[string]struct {
		messages []reducer.Message
		step     llmtest.Step
		retry    int
		kind     llm.Kind
	}{
		"OpenAI says 400":             {[]reducer.Message{look}, refusal(400, "Invalid content type. image_url is only supported by certain models."), never, llm.KindNoVision},
		"Ollama says 400":             {[]reducer.Message{look}, refusal(400, "this model does not support image input"), never, llm.KindNoVision},
		"LM Studio says 400":          {[]reducer.Message{look}, refusal(400, "Model does not support images. Please use a model that does."), never, llm.KindNoVision},
		"OpenRouter says 404":         {[]reducer.Message{look}, refusal(404, "No endpoints found that support image input"), never, llm.KindNoVision},
		"llama.cpp says 500":          {[]reducer.Message{look}, refusal(500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"), never, llm.KindNoVision},
		"an older llama.cpp says 500": {[]reducer.Message{look}, refusal(500, `Failed to parse messages: Unsupported content part type: "image_url"`), never, llm.KindNoVision},
		"Ollama says 500":             {[]reducer.Message{look}, refusal(500, "this model is missing data required for image input"), never, llm.KindNoVision},
		"an error in the stream": {
			[]reducer.Message{look}, llmtest.Raw("text/event-stream", `data: {"error":{"message":"test is not a multimodal model"}}`+"\n\n"), never, llm.KindNoVision,
		},
		"an image in an earlier message": {[]reducer.Message{look, answer, user("And now?")}, refusal(500, "image input is not supported"), never, llm.KindNoVision},

		"a 500 without a reason":                      {[]reducer.Message{look}, refusal(500, "Internal Server Error"), once, llm.KindServer},
		"the same for an earlier image":               {[]reducer.Message{look, user("Well?")}, refusal(500, ""), once, llm.KindServer},
		"the same for a new image":                    {[]reducer.Message{look, answer, look}, refusal(500, ""), once, llm.KindServer},
		"a 500 after an answer to the image":          {[]reducer.Message{look, answer, user("And now?")}, refusal(500, ""), often, llm.KindServer},
		"a 503":                                       {[]reducer.Message{look}, refusal(503, "overloaded"), often, llm.KindServer},
		"a 429":                                       {[]reducer.Message{look}, refusal(429, "slow down"), often, llm.KindRateLimited},
		"a 400 for an invalid image is a bad request": {[]reducer.Message{look}, refusal(400, "Could not process image"), never, llm.KindBadRequest},
		"the message without an image in the request": {hello, refusal(500, "does not support images"), often, llm.KindServer},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := target(t, llmtest.Start(t, test.step)).Stream(within(t), test.messages, nil)
			failed := requireKind(t, test.kind, err)
			require.Equal(t, test.retry != never, failed.Retryable())
			require.Equal(t, test.retry == once, failed.RetryOnce)
			if test.kind == llm.KindNoVision || test.retry == once {
				require.ErrorContains(t, err, "textOnly")
			} else {
				require.NotContains(t, err.Error(), "textOnly")
			}
		})
	}
}
