package workflows_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/workflows"
)

// counted is a message that counts how often it is encoded.
type counted struct {
	event.UserMessage
	encodings *int
}

func (c counted) MarshalJSON() ([]byte, error) {
	*c.encodings++
	return json.Marshal(c.UserMessage)
}

// update is an update of the test environment, and its callbacks.
type update struct {
	t       testing.TB
	result  wire.Appended
	expires bool  // an error is expected
	err     error // if expires
}

func (*update) Accept()            {}
func (u *update) Reject(err error) { u.Complete(wire.Appended{}, err) }
func (u *update) Complete(result any, err error) {
	if u.expires {
		u.err = err
		return
	}
	require.NoError(u.t, err)
	u.result = result.(wire.Appended)
}

// appends appends events by an update.
func (w *testRun) appends(events ...event.Event) *update {
	u := &update{t: w.t}
	value, err := wire.JSON(events)
	require.NoError(w.t, err)
	w.UpdateWorkflow(wire.UpdateAppend, "", u, value)
	return u
}

// counting is [reducer.Step] with messages that count their encodings.
func counting(encodings *int) reducer.Stepper {
	return func(s reducer.Session, in reducer.Input) (reducer.Session, []reducer.Effect) {
		s, effects := reducer.Step(s, in)
		for _, effect := range effects {
			if record, ok := effect.(reducer.Record); ok {
				for i, e := range record.Events {
					if message, ok := e.Body.(event.UserMessage); ok {
						record.Events[i].Body = counted{message, encodings}
					}
				}
			}
		}
		return s, effects
	}
}

func TestARecordedEventIsEncodedOnce(t *testing.T) {
	no := false
	for name, send := range map[string]func(*testRun, ...event.Event){
		"an update": func(w *testRun, events ...event.Event) { w.appends(events...) },
		"a signal":  func(w *testRun, events ...event.Event) { w.SignalWorkflow(wire.SignalEvent, events) },
	} {
		for _, test := range []struct {
			n, size int
		}{{1, 1}, {3, 1}, {1, 2 << 20}} {
			n := test.n
			if test.size > wire.MaxAppendBytes && name == "an update" {
				continue // it is too large
			}
			t.Run(fmt.Sprintf("%d of %d bytes by %s", n, test.size, name), func(t *testing.T) {
				w := newRun(t)
				encodings := 0
				w.RegisterWorkflowWithOptions(workflows.WithStep(counting(&encodings)),
					workflow.RegisterOptions{Name: wire.WorkflowType, DisableAlreadyRegisteredCheck: true})
				w.opens()
				var events []event.Event
				for i := range n {
					events = append(events, event.New(event.UserMessage{Content: strings.Repeat(fmt.Sprint(i), test.size), TriggersTurn: &no}))
				}
				w.at(time.Minute, func() { send(w, events...) })
				w.at(time.Hour, w.close)
				w.ExecuteWorkflow(wire.WorkflowType)
				require.NoError(t, w.GetWorkflowError())
				require.Equal(t, n, encodings)
			})
		}
	}
}

// replacing replaces the input of an update between its validator and its handler.
type replacing struct {
	interceptor.WorkerInterceptorBase
	with []byte
}

func (r *replacing) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	i := &replacingInbound{with: r.with}
	i.Next = next
	return i
}

type replacingInbound struct {
	interceptor.WorkflowInboundInterceptorBase
	with []byte
}

func (i *replacingInbound) ValidateUpdate(ctx workflow.Context, in *interceptor.UpdateInput) error {
	err := i.Next.ValidateUpdate(ctx, in)
	in.Args[0].(converter.RawValue).Payload().Data = i.with
	return err
}

// TestAnAppendedEventIsDecodedOnce replaces the input after it was validated. A handler
// that decoded it again would fail.
func TestAnAppendedEventIsDecodedOnce(t *testing.T) {
	w := bareRun(t, "context:demo", workflows.Interceptor(), &replacing{with: []byte("decoded again")})
	w.OnActivity(acts.Archive, mock.Anything, mock.Anything).Return(nil)
	w.opens()
	var first, second *update
	w.at(time.Minute, func() { first = w.appends(event.New(event.SystemPrompt{Content: "One"})) })
	w.at(2*time.Minute, func() { second = w.appends(event.New(event.SystemPrompt{Content: "Two"})) })
	w.at(time.Hour, w.close)
	w.run("SessionStarted", "SystemPrompt", "SystemPrompt", "SessionEnded done")
	require.Equal(t, []string{"demo:0002"}, first.result.EventIDs)
	require.Equal(t, []string{"demo:0003"}, second.result.EventIDs)
}

func TestInputIsEncodedToMeasureItOnlyNearTheLimit(t *testing.T) {
	const near = wire.MaxStoredBytes - workflows.MaxFixedGrowth
	for _, test := range []struct {
		name  string
		input string
		want  int
	}{
		{"small", "x", 0},
		{"of 2 MB", strings.Repeat("x", 2<<20), 0},
		{"of 2 MB of separators", strings.Repeat("\u2028", 2<<20/3), 0},
		{"near the limit", strings.Repeat("x", near), 0},
		{"nearer", strings.Repeat("x", near+1), 1},
		{"of separators near the limit", strings.Repeat("\u2029", near/6+1), 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			encodings := 0
			require.NoError(t, workflows.Fits([]event.Event{event.New(counted{encodings: &encodings})}, []byte(test.input)))
			require.Equal(t, test.want, encodings)
		})
	}
}

// oddText has characters that are escaped in JSON or have several spellings.
var oddText = []string{
	"", `"`, `\`, "/", "<b>&</b>", "\x00\x1f\x7f", "\b\f\n\r\t", "\u2028\u2029", "ü", "日本", "🙂", "\ufffd", "</script>",
	`{"_tag":"UserMessage"}`, strings.Repeat("\u2028", 1000),
}

// odd returns a message with an odd text in its content and in unknown fields.
func odd(t *testing.T, text string) (e event.Event) {
	unknown, err := json.Marshal(map[string]any{text + "?": []any{text, 1, nil}})
	require.NoError(t, err)
	require.NoError(t, e.UnmarshalJSON([]byte(`{"_tag":"UserMessage","content":"","unknown":`+string(unknown)+`,"z":1e400}`)))
	e.Body = event.UserMessage{Content: text}
	return e
}

func TestInputGrowsByLessThanItsBound(t *testing.T) {
	requireBound := func(t require.TestingT, input []byte) {
		events, err := event.DecodeInput(input)
		require.NoError(t, err)
		data, err := events[0].MarshalJSON()
		require.NoError(t, err)
		require.LessOrEqual(t, len(data), workflows.MaxEncoded(input), string(input))
	}
	for _, input := range []string{
		`{"_tag":"SetRetryConfig","maxRetries":1,"initialDelayMs":1,"backoffFactor":1e1}`,
		`{"_tag":"SetProviderConfig","providerId":"a","model":"b","temperature":1e-6}`,
		`{"_tag":"Note","kind":"thinking","content":""}`,
	} {
		requireBound(t, []byte(input))
	}
	for _, text := range oddText {
		for _, n := range []int{1, 4 * workflows.MaxFixedGrowth / max(1, len(text))} {
			data, err := odd(t, strings.Repeat(text, n)).MarshalJSON()
			require.NoError(t, err)
			requireBound(t, []byte(strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029").Replace(string(data))))
		}
	}
	_, err := event.DecodeInput([]byte(`{"_tag":"UserMessage","content":"` + "\xff" + `"}`))
	require.ErrorContains(t, err, "invalid UTF-8", "U+FFFD would be longer than the invalid byte")
	rapid.Check(t, func(t *rapid.T) {
		data, err := event.New(eventtest.InputBody().Draw(t, "body")).MarshalJSON()
		require.NoError(t, err)
		requireBound(t, data)
	})
}

func TestARecordIsTheJSONOfItsEvents(t *testing.T) {
	requireSame := func(t require.TestingT, events []event.Event) {
		want, err := wire.JSON(wire.Record{Events: events})
		require.NoError(t, err)
		require.Equal(t, string(want.Payload().GetData()), string(workflows.RecordJSON(events)))
	}
	var examples []event.Event
	for i, body := range event.Examples() {
		e := loaded(i+1, body)
		e.Timestamp, e.ContextName, e.ParentID, e.ClientEventID = time.Unix(1, 123456789), "demo", event.FormatID("demo", i), "<&>"
		requireSame(t, []event.Event{e})
		examples = append(examples, e)
	}
	for _, text := range oddText {
		examples = append(examples, odd(t, text))
		requireSame(t, []event.Event{odd(t, text)})
	}
	requireSame(t, examples)
	rapid.Check(t, func(t *rapid.T) {
		if log := eventtest.Log("demo").Draw(t, "log"); len(log) > 0 {
			requireSame(t, log)
		}
	})
}

// BenchmarkAppend processes updates with an event of 60 KB of JSON.
func BenchmarkAppend(b *testing.B) {
	no := false
	value, err := wire.JSON(event.New(event.UserMessage{Content: strings.Repeat("A line with \"quotes\".\n", 54_000/22), TriggersTurn: &no}))
	require.NoError(b, err)
	w := newRun(b)
	w.SetTestTimeout(time.Minute)
	w.OnActivity(acts.Open, mock.Anything, mock.Anything).Return(activities.OpenResult{}, nil).Once()
	w.at(time.Minute, func() {
		b.ReportAllocs()
		b.ResetTimer()
	})
	for i := range b.N {
		w.at(time.Minute+time.Duration(i+1)*time.Millisecond, func() {
			w.UpdateWorkflow(wire.UpdateAppend, "", &update{t: b}, converter.NewRawValue(&commonpb.Payload{
				Metadata: value.Payload().GetMetadata(), Data: value.Payload().GetData()}))
		})
	}
	w.at(time.Hour, w.close)
	w.ExecuteWorkflow(wire.WorkflowType)
	b.StopTimer()
	require.NoError(b, w.GetWorkflowError())
}
