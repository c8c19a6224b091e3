package activities_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/tracing"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// outcomes returns a function that returns the counted attempts by outcome, and the recovered answers.
func (w *world) outcomes() func() (requests map[string]int, recovered int) {
	reader := sdkmetric.NewManualReader()
	w.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	w.reset(nil)
	return func() (map[string]int, int) {
		w.t.Helper()
		var data metricdata.ResourceMetrics
		require.NoError(w.t, reader.Collect(w.t.Context(), &data))
		requests, recovered := map[string]int{}, 0
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
					}
				}
			}
		}
		return requests, recovered
	}
}

func TestAFailedAttemptIsNotCountedAsLost(t *testing.T) {
	gate := llmtest.NewGate()
	for name, test := range map[string]struct {
		session reducer.Session
		first   llmtest.Step
	}{
		"after a heartbeat": {newSession(), llmtest.Answer("One", " two").HoldAfter(1, gate).Finish("MALFORMED_FUNCTION_CALL")},
		"under a budget":    {newSession(tokens(10_000)), llmtest.Error(503, "overloaded", "busy")},
		"repaired":          {newSession(inPerson), llmtest.Answer(`{"nick":"A"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.session, test.first, llmtest.Answer(`{"name":"Ann"}`))
			counted := w.outcomes()
			var details any
			w.env.SetOnActivityHeartbeatListener(func(_ *activity.Info, values converter.EncodedValues) {
				if err := values.Get(&details); err != nil {
					t.Error(err)
				}
				gate.Open()
			})
			_, err := w.generate()
			failure(t, err)

			w.in.FirstAttempt = 2
			w.env.SetHeartbeatDetails(details)
			_, err = w.generate()
			require.NoError(t, err)
			requests, recovered := counted()
			require.Equal(t, map[string]int{"failed": 1, "completed": 1}, requests)
			require.Zero(t, recovered, "no worker died")
		})
	}
}

func TestALostAttemptIsCountedByTheNextOne(t *testing.T) {
	w := newWorld(t, newSession(), llmtest.Answer("Hello"))
	counted := w.outcomes()
	w.in.FirstAttempt = 2
	w.env.SetHeartbeatDetails(json.RawMessage(`{"attempt":1,"sent":true,"throughEventId":"demo:0002","providerId":"openai","model":"scripted"}`))
	_, err := w.generate()
	require.NoError(t, err)
	requests, recovered := counted()
	require.Equal(t, map[string]int{string(event.AttemptLost): 1, "completed": 1}, requests)
	require.Equal(t, 1, recovered)
}

func TestALostAttemptIsCountedOnce(t *testing.T) {
	w := newWorld(t, newSession(), llmtest.Error(503, "overloaded", "busy"), llmtest.Answer("Hello"))
	counted := w.outcomes()
	var details any = activities.LostAttempt{Attempted: sent}
	w.env.SetOnActivityHeartbeatListener(func(_ *activity.Info, values converter.EncodedValues) {
		if err := values.Get(&details); err != nil {
			t.Error(err)
		}
	})
	w.in.FirstAttempt = 2
	w.env.SetHeartbeatDetails(details)
	_, err := w.generate()
	failure(t, err)

	w.in.FirstAttempt = 3
	w.env.SetHeartbeatDetails(details)
	_, err = w.generate()
	require.NoError(t, err)
	requests, _ := counted()
	require.Equal(t, map[string]int{string(event.AttemptLost): 1, "failed": 1, "completed": 1}, requests)
}

func TestSpansQuoteContentOnlyIfAskedFor(t *testing.T) {
	failed := func(kind event.FailureKind) error {
		return temporal.NewApplicationError("it said secret words", "model", activities.Failure{Kind: kind})
	}
	for want, err := range map[string]error{
		"it said secret words":  failed(event.FailureUnavailable),
		"bad_response":          failed(event.FailureBadResponse),
		"the tool failed":       temporal.NewApplicationError("it said secret words", activities.FailedTool),
		"the worker shut down":  temporal.NewApplicationError("the worker shut down", "handed-back"),
		"dial: it said nothing": errors.New("dial: it said nothing"),
	} {
		text, _, _ := strings.Cut(activities.Traceable(activities.Options{}, err), " (type: ")
		require.Equal(t, want, text)
		require.Equal(t, err.Error(), activities.Traceable(activities.Options{TraceContent: true}, err))
	}
}

func TestALinkToTheAttemptBeforeSaysHowItEnded(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	for reason, isEnded := range map[string]bool{tracing.LinkRetries: true, tracing.LinkReplaces: false} {
		_, span := tracers.Tracer("").Start(t.Context(), reason)
		activities.Describe(activities.GenerateInput{}, span, 2, false, "", &activities.LostAttempt{
			Attempted: sent, Ended: isEnded, Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		})
		span.End()
	}
	require.Len(t, spans.GetSpans(), 2)
	for _, span := range spans.GetSpans() {
		require.Len(t, span.Links, 1)
		require.Equal(t, []attribute.KeyValue{tracing.Reason.String(span.Name)}, span.Links[0].Attributes)
	}
}
