package llm_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/baseurl"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// spanOf returns the span of one request, and its attributes.
func spanOf(t *testing.T, model *llmtest.Server, options llm.Options, messages ...reducer.Message) (tracetest.SpanStub, map[attribute.Key]any) {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	defer func() { require.NoError(t, tracers.Shutdown(context.Background())) }()
	options.Getenv = func(string) string { return testKey }
	options.Providers = []llm.Provider{{ID: "scripted", BaseURL: baseurl.MustParse(model.URL), KeyRef: "env:TEST_API_KEY"}}
	target, err := llm.New(options).Resolve(reducer.ProviderConfig{ProviderID: "scripted", Model: "model-1"})
	require.NoError(t, err)
	target.Settings = event.RequestSettings{Temperature: new(0.5), MaxTokens: new(100)}
	ctx, root := tracers.Tracer("test").Start(within(t), "root")
	_, _ = target.Stream(ctx, messages, nil)
	root.End()
	span := spans.GetSpans()[0]
	attributes := map[attribute.Key]any{}
	for _, a := range span.Attributes {
		attributes[a.Key] = a.Value.AsInterface()
	}
	return span, attributes
}

func TestContentIsTracedOnlyIfAskedFor(t *testing.T) {
	messages := []reducer.Message{
		{Role: reducer.RoleSystem, Content: "Be brief."},
		{Role: reducer.RoleUser, Content: "My key is sk-abcdefghijklmnopqrstuvwxyz012345"},
	}
	_, attributes := spanOf(t, llmtest.Start(t, llmtest.Answer("Hi")), llm.Options{}, messages...)
	require.Equal(t, 0.5, attributes["gen_ai.request.temperature"])
	require.Equal(t, int64(100), attributes["gen_ai.request.max_tokens"])
	require.NotContains(t, attributes, attribute.Key("gen_ai.input.messages"))
	require.NotContains(t, attributes, attribute.Key("gen_ai.output.messages"))

	_, attributes = spanOf(t, llmtest.Start(t, llmtest.Answer("Hi")), llm.Options{TraceContent: true}, messages...)
	require.JSONEq(t, `[{"type":"text","content":"Be brief."}]`, attributes["gen_ai.system_instructions"].(string))
	require.JSONEq(t, `[{"role":"user","parts":[{"type":"text","content":"My key is `+event.Removed+`"}]}]`, attributes["gen_ai.input.messages"].(string))
	require.JSONEq(t, `[{"role":"assistant","parts":[{"type":"text","content":"Hi"}],"finish_reason":"stop"}]`, attributes["gen_ai.output.messages"].(string))
}

func TestTheStatusOfASpanQuotesContentOnlyIfAskedFor(t *testing.T) {
	failed := llmtest.Error(403, "403", "Your input was flagged as violence: Hello")
	question := reducer.Message{Role: reducer.RoleUser, Content: "Hello"}
	span, _ := spanOf(t, llmtest.Start(t, failed), llm.Options{}, question)
	require.Equal(t, "content filter", span.Status.Description)
	span, _ = spanOf(t, llmtest.Start(t, failed), llm.Options{TraceContent: true}, question)
	require.Contains(t, span.Status.Description, "Hello")
}

func TestASpanOfAFailedRequestHasItsKind(t *testing.T) {
	span, attributes := spanOf(t, llmtest.Start(t, llmtest.Error(401, "invalid_api_key", "Incorrect API key: "+testKey)), llm.Options{},
		reducer.Message{Role: reducer.RoleUser, Content: "Hello"})
	require.Equal(t, codes.Error, span.Status.Code)
	require.NotContains(t, span.Status.Description, testKey)
	require.Equal(t, "unauthorized", attributes["error.type"])
	require.Equal(t, int64(401), attributes["http.response.status_code"])
}
