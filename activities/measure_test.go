package activities_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.temporal.io/sdk/temporal"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/tracing"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// outcomes returns a function that returns the counted attempts by outcome, the recovered answers, and the name of
// the counter of retries or fallbacks.
func (w *environment) outcomes() func() (requests map[string]int, recovered int, others string) {
	reader := sdkmetric.NewManualReader()
	w.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	w.reset(nil)
	return func() (requests map[string]int, recovered int, others string) {
		w.t.Helper()
		var data metricdata.ResourceMetrics
		require.NoError(w.t, reader.Collect(w.t.Context(), &data))
		requests = map[string]int{}
		for _, scope := range data.ScopeMetrics {
			for _, m := range scope.Metrics {
				sum, _ := m.Data.(metricdata.Sum[float64])
				for _, point := range sum.DataPoints {
					switch m.Name {
					case "chronicle_requests":
						outcome, _ := point.Attributes.Value(attribute.Key("outcome"))
						requests[outcome.AsString()] += int(point.Value)
					case "chronicle_recovered_answers":
						recovered += int(point.Value)
					case "chronicle_retries", "chronicle_fallbacks":
						others += strings.TrimPrefix(m.Name, "chronicle_")
					}
				}
			}
		}
		return requests, recovered, others
	}
}

func TestAttemptsAreCountedByTheirOutcome(t *testing.T) {
	sent := &activities.Heartbeat{Sent: true, ProviderID: "openai", Model: "scripted"}
	for name, test := range map[string]struct {
		previous  *activities.PreviousAttempt
		fallback  bool
		step      llmtest.Step
		want      map[string]int
		recovered int
		others    string // counters of retries and fallbacks
	}{
		"an answer":          {nil, false, llmtest.Answer("Hi"), map[string]int{"completed": 1}, 0, ""},
		"a failure":          {nil, false, llmtest.Error(503, "overloaded", "busy"), map[string]int{"failed": 1}, 0, ""},
		"a retry":            {&activities.PreviousAttempt{Outcome: reducer.Failed}, false, llmtest.Answer("Hi"), map[string]int{"completed": 1}, 0, "retries"},
		"a fallback":         {&activities.PreviousAttempt{Outcome: reducer.Failed}, true, llmtest.Answer("Hi"), map[string]int{"completed": 1}, 0, "fallbacks"},
		"a fallback's retry": {&activities.PreviousAttempt{Outcome: reducer.Failed, Fallback: true}, true, llmtest.Answer("Hi"), map[string]int{"completed": 1}, 0, "retries"},
		"after a lost attempt": {&activities.PreviousAttempt{Outcome: reducer.Lost, Heartbeat: sent}, false, llmtest.Answer("Hi"),
			map[string]int{string(event.AttemptLost): 1, "completed": 1}, 1, ""},
		"a failure after it": {&activities.PreviousAttempt{Outcome: reducer.Lost, Heartbeat: sent}, false, llmtest.Error(503, "overloaded", "busy"),
			map[string]int{string(event.AttemptLost): 1, "failed": 1}, 0, ""},
		"after a lost attempt without a heartbeat": {&activities.PreviousAttempt{Outcome: reducer.Lost}, false, llmtest.Answer("Hi"), map[string]int{"completed": 1}, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnvironment(t, newSession(), test.step)
			w.useSession(newSession(event.SetProviderConfig{ProviderID: "openai", Model: "scripted", BaseURL: w.model.URL, AsFallback: true}))
			counted := w.outcomes()
			w.in.Previous, w.in.Fallback = test.previous, test.fallback
			w.generated()
			requests, recovered, others := counted()
			require.Equal(t, test.want, requests)
			require.Equal(t, test.recovered, recovered)
			require.Equal(t, test.others, others)
		})
	}
}

func TestSpansQuoteContentOnlyIfAskedFor(t *testing.T) {
	for want, err := range map[string]error{
		"the tool failed":       temporal.NewApplicationError("it said secret words", activities.FailedTool),
		"the worker shut down":  temporal.NewApplicationError("the worker shut down", "handed-back"),
		"dial: it said nothing": errors.New("dial: it said nothing"),
	} {
		text, _, _ := strings.Cut(activities.Traceable(activities.Options{}, err), " (type: ")
		require.Equal(t, want, text)
		require.Equal(t, err.Error(), activities.Traceable(activities.Options{TraceContent: true}, err))
	}
	for want, kind := range map[string]event.FailureKind{"it said secret words": event.FailureUnavailable, "bad_response": event.FailureBadResponse} {
		failed := reducer.AttemptEnded{Kind: kind, Error: "it said secret words"}
		require.Equal(t, want, activities.ProblemOf(activities.Options{}, failed))
		require.Equal(t, failed.Error, activities.ProblemOf(activities.Options{TraceContent: true}, failed))
	}
}

func TestTheSpanOfAnAttemptLinksToOthers(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	_, span := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)).Tracer("").Start(t.Context(), "attempt")
	activities.Describe(activities.AttemptInput{
		ContextName: "demo", StartAttempt: reducer.StartAttempt{RequestID: "demo:r0001", Attempt: 2},
		Links: []activities.TraceLink{{Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Reason: tracing.LinkReplaces}},
	}, span)
	span.End()
	require.Len(t, spans.GetSpans(), 1)
	require.Contains(t, spans.GetSpans()[0].Attributes, tracing.Attempt.Int(2))
	require.Len(t, spans.GetSpans()[0].Links, 1)
	require.Equal(t, []attribute.KeyValue{tracing.Reason.String(tracing.LinkReplaces)}, spans.GetSpans()[0].Links[0].Attributes)
}
