package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/baseurl"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// house is a provider that accepts some attachments, and plain one that accepts none.
func (w *world) houseAccepts(accepted ...event.Media) func(*contexts.Options) {
	return func(o *contexts.Options) {
		o.Models = llm.New(llm.Options{
			Getenv: func(string) string { return "" }, AllowLoopback: true, Defaults: llm.Defaults{ProviderID: "house", Model: "scripted"},
			Providers: []llm.Provider{
				{ID: "house", BaseURL: baseurl.MustParse(w.model.URL), Accepts: accepted},
				{ID: "plain", BaseURL: baseurl.MustParse(w.model.URL), Accepts: []event.Media{}},
			},
		})
	}
}

func attached(name, mediaType, data string) event.Event {
	return event.New(event.FileAttachment{
		Source: event.Source{Type: event.SourceBlob, Data: []byte(data)}, MediaType: mediaType, FileName: name, Size: int64(len(data)),
	})
}

// A provider that refuses an image, and the tools of a context, answers in the end, and goes on answering.
func TestAContextSurvivesContentThatItsProviderRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Func(func(r llmtest.Request) llmtest.Step {
		switch body := string(r.Body); {
		case strings.Contains(body, "image_url"):
			return llmtest.Error(400, "invalid_request_error", "messages.0.content.1: this picture cannot be decoded")
		case strings.Contains(body, `"colour"`):
			return llmtest.Error(400, "invalid_request_error", "Invalid schema for function 'paint'")
		}
		return llmtest.Answer("I see")
	}))
	w.worker(w.houseAccepts(event.MediaImage))
	c := w.open("refused")
	log := w.say(c, "Look", attached("broken.png", "image/png", "no image"))
	requests := w.model.Requests()
	require.Len(t, requests, 2, "no retry")
	require.Contains(t, string(requests[1].Body), "[Attached: broken.png, which the provider refused: house: bad request (400): messages.0.content.1: this picture cannot be decoded]")
	log = append(log, w.say(c, "And without it?")...)
	require.Len(t, w.model.Requests(), 3, "the image is not sent again")

	log = append(log, w.say(c, "Paint", event.New(event.SetTools{Tools: event.ToolList{
		{Name: "paint", Parameters: event.Object(`{"type":"object","properties":{"colour":{"type":"string"}}}`)},
	}}))...)
	requests = w.model.Requests()
	require.Len(t, requests, 5)
	require.Contains(t, string(requests[4].Body), `The arguments match this JSON Schema: {\"type\":\"object\"`)

	var refused []event.ContentRefused
	for _, e := range log {
		if body, ok := e.Body.(event.ContentRefused); ok {
			refused = append(refused, body)
		}
		if body, ok := e.Body.(event.LLMRequestCompleted); ok {
			require.Contains(t, body.Quirks, "content_refused")
		}
		require.NotEqual(t, event.TagLLMRequestFailed, e.Tag())
	}
	require.Len(t, refused, 2)
	require.Equal(t, event.ContentImages, refused[0].Content)
	require.Equal(t, "paint", refused[1].Tool)
	w.replay(c, "")
}
