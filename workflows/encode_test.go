package workflows_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"
	"pgregory.net/rapid"

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
