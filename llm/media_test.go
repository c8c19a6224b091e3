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
			options.ReadAttachment = files
			require.NoError(t, sendWith(within(t), model, options, blobs, reducer.ProviderConfig{ProviderID: test.provider}, []reducer.Message{test.message}))
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
