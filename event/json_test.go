package event_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
)

func TestAnEventIsFlatJSON(t *testing.T) {
	e := event.Event{
		ID:          "demo:0002",
		Timestamp:   time.Date(2026, 1, 2, 16, 4, 5, 600, time.FixedZone("CET", 3600)),
		ContextName: "demo", ParentID: "demo:0001", ClientEventID: "c1",
		Body:  event.UserMessage{Content: "a < b"},
		Extra: map[string]json.RawMessage{"z": json.RawMessage(`1`), "a": json.RawMessage(`{"n":[]}`)},
	}
	got, err := e.MarshalJSON()
	require.NoError(t, err)
	require.Equal(t, `{"_tag":"UserMessageEvent","id":"demo:0002","timestamp":"2026-01-02T15:04:05.0000006Z",`+
		`"contextName":"demo","parentEventId":"demo:0001","clientEventId":"c1","content":"a < b","a":{"n":[]},"z":1}`, string(got))
}

func TestTimesAreUTC(t *testing.T) {
	var e event.Event
	require.NoError(t, json.Unmarshal([]byte(`{"_tag":"UserMessage","content":"x","timestamp":"2026-01-02T16:04:05+01:00"}`), &e))
	require.Equal(t, time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC), e.Timestamp)
}

func TestUnknownFieldsSurviveARoundTrip(t *testing.T) {
	in := `{"_tag":"UserMessageEvent","content":"x","mood":"<good>","n":123456789012345678901234567890,"nested":{"a":[null,1.50]},"nothing":null}`
	var e event.Event
	require.NoError(t, e.UnmarshalJSON([]byte(in)))
	out, err := e.MarshalJSON()
	require.NoError(t, err)
	require.Equal(t, in, string(out))
}

func TestAnInvalidFieldIsAnErrorWithAndWithoutAnID(t *testing.T) {
	for _, fields := range []string{
		`"_tag":"UserMessageEvent","content":"Hi","settings":"dark"`,
		`"_tag":"UserMessageEvent","content":"Hi","settings":{"temperature":99}`,
		`"_tag":"UserMessageEvent","content":"Hi","settings":{"apiKey":"x"}`,
		`"_tag":"AssistantMessageEvent","content":"Hi","reasoning":{"tokens":7}`,
		`"_tag":"AssistantMessageEvent","content":"Hi","providerState":"done","reasoning":7`,
		`"_tag":"ToolResultEvent","toolCallId":"c","value":1,"durationMs":-5`,
	} {
		for _, data := range []string{`{` + fields + `}`, `{"id":"demo:0001","contextName":"demo",` + fields + `}`} {
			var e event.Event
			require.ErrorAs(t, json.Unmarshal([]byte(data), &e), new(*event.FieldError), data)
			_, err := event.DecodeInput([]byte(data))
			require.ErrorAs(t, err, new(*event.FieldError), data)
		}
	}
}

func TestLogsOfInputWithTheMaximumDepthCanBeRead(t *testing.T) {
	for name, test := range map[string]struct {
		before, after string
		depth         int // of the value between
	}{
		"an unknown field":           {`{"_tag":"UserMessage","content":"x","unknown":`, `}`, 1},
		"the value of a tool result": {`{"_tag":"ToolResult","toolCallId":"call_1","value":`, `}`, 1},
		"within an object":           {`{"_tag":"UserMessage","content":"x","unknown":{"{\"{":`, `}}`, 2},
	} {
		t.Run(name, func(t *testing.T) {
			input := func(depth int) []byte {
				levels := depth - test.depth
				return []byte(test.before + strings.Repeat("[", levels) + `"]\"]"` + strings.Repeat("]", levels) + test.after)
			}
			events, err := event.DecodeInput(input(event.MaxDepth))
			require.NoError(t, err)
			log, err := json.Marshal(map[string]any{"page": map[string]any{"events": events}})
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(log, &struct {
				Page struct{ Events []event.Event }
			}{}))

			_, err = event.DecodeInput(input(event.MaxDepth + 1))
			require.ErrorContains(t, err, "JSON nested more than 9000 levels deep")
			_, err = event.DecodeInput(slices.Concat([]byte("["), input(event.MaxDepth+1), []byte("]")))
			require.ErrorContains(t, err, "event 1 of 1: ")
		})
	}
	flat := `{"_tag":"UserMessage","content":"[[[","unknown":[{}` + strings.Repeat(",{}", event.MaxDepth) + `]}`
	_, err := event.DecodeInput([]byte(flat))
	require.NoError(t, err)
}

// The last of several fields with the same name wins, so a key cannot hide in the first.
func TestDuplicateFieldsCannotHideAKey(t *testing.T) {
	var e event.Event
	require.NoError(t, e.UnmarshalJSON([]byte(`{"_tag":"UserMessage","content":"x","meta":{"a":{"apiKey":"s3cr3t"},"a":1}}`)))
	out, err := e.MarshalJSON()
	require.NoError(t, err)
	require.Equal(t, `{"_tag":"UserMessageEvent","content":"x","meta":{"a":1}}`, string(out))
}

func TestEveryEventSurvivesJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := eventtest.Event().Draw(t, "event")
		require.NoError(t, want.Validate())

		// Histories use the escaping of json.Marshal; MarshalJSON does not escape.
		escaped, err := json.Marshal(want)
		require.NoError(t, err)
		plain, err := want.MarshalJSON()
		require.NoError(t, err)
		for _, data := range [][]byte{escaped, plain} {
			var got event.Event
			require.NoError(t, json.Unmarshal(data, &got))
			require.Equal(t, want, got)
			again, err := got.MarshalJSON()
			require.NoError(t, err)
			require.Equal(t, string(plain), string(again))
		}
	})
}
