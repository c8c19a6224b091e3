package chat_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/internal/formats/chat"
)

var importedAt = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

func logOf(events ...event.Event) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func write(t require.TestingT, format chat.Format, events ...event.Event) string {
	var out bytes.Buffer
	_, err := chat.Write(&out, format, logOf(events...), nil)
	require.NoError(t, err)
	return out.String()
}

func read(t require.TestingT, text, contextName string) []event.Event {
	events, err := chat.ReadAll(strings.NewReader(text), contextName, importedAt)
	require.NoError(t, err, "%s", text)
	return events
}

// bodiesOf returns the bodies of the events in text.
func bodiesOf(t require.TestingT, text string) []event.Body {
	var bodies []event.Body
	for _, e := range read(t, text, "demo") {
		bodies = append(bodies, e.Body)
	}
	return bodies
}

// anyLog generates realistic session logs and arbitrary sequences of events.
func anyLog() *rapid.Generator[[]event.Event] {
	medley := rapid.Custom(func(t *rapid.T) []event.Event {
		stored := eventtest.Event().Filter(func(e event.Event) bool { return e.Tag().Class() != event.ClassEphemeral })
		return dense(rapid.SliceOfN(stored, 1, 20).Draw(t, "events")...)
	})
	return rapid.OneOf(eventtest.Log("demo"), medley)
}

// dense assigns dense ids to events.
func dense(events ...event.Event) []event.Event {
	for i := range events {
		events[i].ContextName, events[i].ID, events[i].ParentID = "demo", event.FormatID("demo", i+1), ""
		if i > 0 {
			events[i].ParentID = events[i-1].ID
		}
	}
	return events
}

func TestALogSurvivesARoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := anyLog().Draw(t, "log")
		text := write(t, chat.JSONL, log...)
		require.Equal(t, log, read(t, text, "demo"))
		require.Equal(t, text, write(t, chat.JSONL, read(t, text, "demo")...))
	})
}

func TestALogReadUnderAnotherNameIsRenamed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := anyLog().Draw(t, "log")
		var want []event.Event
		for _, e := range log {
			want = append(want, e.MovedTo("other"))
		}
		require.Equal(t, want, read(t, write(t, chat.JSONL, log...), "other"))
	})
}

// TestMissingEnvelopeFieldsAreAssigned removes random envelope fields, the same
// ones each time it reads.
func TestMissingEnvelopeFieldsAreAssigned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := anyLog().Draw(t, "log")
		missing := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"id", "timestamp", "contextName", "parentEventId"}), rapid.ID).Draw(t, "missing")
		var text strings.Builder
		for i, e := range log {
			if e.Tag().IsInput() && e.ValidateInput() != nil {
				log[i].Extra = nil // an event without an id and a time is input: its settings have no unknown fields
				e = log[i]
			}
			text.WriteString(without(t, e, missing...) + "\n")
		}
		got := read(t, text.String(), "demo")
		require.Len(t, got, len(log))
		for i, e := range got {
			want := log[i]
			if strings.Contains(strings.Join(missing, " "), "timestamp") {
				want.Timestamp = importedAt
			}
			require.Equal(t, want, e)
		}
	})
}

func without(t require.TestingT, e event.Event, fields ...string) string {
	data, err := e.MarshalJSON()
	require.NoError(t, err)
	var all map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(data, &all))
	for _, name := range fields {
		delete(all, name)
	}
	data, err = json.Marshal(all)
	require.NoError(t, err)
	return string(data)
}

// TestReferencesToOmittedEventsAreUpdated compares with a linear scan of the log for
// each id.
func TestReferencesToOmittedEventsAreUpdated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := eventtest.Log("demo").Draw(t, "log")
		var kept []event.Event
		for _, e := range log {
			if rapid.Bool().Draw(t, "keep") {
				kept = append(kept, e)
			}
		}
		if len(kept) == 0 {
			return
		}
		want := slices.Clone(kept)
		for i := range want {
			want[i] = want[i].MapIDs(func(id string) string {
				if event.Counter(id) == 0 {
					return id
				}
				upTo := 0
				for _, k := range kept {
					if event.Counter(k.ID) <= event.Counter(id) {
						upTo++
					}
				}
				if upTo == 0 {
					return ""
				}
				return event.FormatID("demo", upTo)
			})
		}
		for i, e := range dense(want...) {
			want[i] = e.MovedTo("other")
		}
		require.Equal(t, want, read(t, write(t, chat.JSONL, kept...), "other"))
	})
}

func TestACompactionOfOmittedMessagesIsRead(t *testing.T) {
	compacted := event.New(event.Compacted{
		RequestID: "demo:r0001", Strategy: event.StrategyTruncate, ThroughEventID: "demo:0002", Messages: 1, Window: 100,
		ProviderID: "openai", Model: "gpt-4o",
	})
	compacted.ID, compacted.Timestamp, compacted.ContextName = "demo:0007", importedAt, "demo"
	got := read(t, write(t, chat.JSONL, compacted), "other")
	require.Empty(t, got[0].Body.(event.Compacted).ThroughEventID)
}

func TestReferencesAreUpdated(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       []event.Body
	}{
		{"with ids of another program", `
			{"_tag":"AssistantMessage","id":"msg_7","content":"x"}
			{"_tag":"UserMessage","id":"msg_8","content":"y"}
			{"_tag":"ToolCall","toolCallId":"c","messageId":"msg_7","toolName":"n"}
			{"_tag":"AssistantMessage","content":"z","throughEventId":"msg_8","requestId":"req_1"}`,
			[]event.Body{
				event.AssistantMessage{Content: "x"}, event.UserMessage{Content: "y"},
				event.ToolCall{ToolCallID: "c", MessageID: "copy:0001", ToolName: "n"},
				event.AssistantMessage{Content: "z", ThroughEventID: "copy:0002", RequestID: "req_1"},
			}},
		{"to an unknown id", `{"_tag":"ToolCall","toolCallId":"c","messageId":"msg_7","toolName":"n"}`,
			[]event.Body{event.ToolCall{ToolCallID: "c", MessageID: "msg_7", ToolName: "n"}}},
		{"of another context", `{"_tag":"AssistantMessage","id":"demo:0001","content":"x","throughEventId":"elsewhere:0007","requestId":"demo:r0002"}`,
			[]event.Body{event.AssistantMessage{Content: "x", ThroughEventID: "elsewhere:0007", RequestID: "copy:r0002"}}},
		{"across an inserted line", `
			{"_tag":"UserMessage","id":"demo:0001","content":"x"}
			{"_tag":"SystemPrompt","content":"s"}
			{"_tag":"UserMessage","id":"demo:0002","content":"y"}
			{"_tag":"AssistantMessage","id":"demo:0003","content":"z","throughEventId":"demo:0001"}
			{"_tag":"AssistantMessage","id":"demo:0004","content":"z","throughEventId":"demo:0002"}`,
			[]event.Body{
				event.UserMessage{Content: "x"}, event.SystemPrompt{Content: "s"}, event.UserMessage{Content: "y"},
				event.AssistantMessage{Content: "z", ThroughEventID: "copy:0001"}, event.AssistantMessage{Content: "z", ThroughEventID: "copy:0003"},
			}},
		{"to an event before the file", `{"_tag":"AssistantMessage","id":"demo:0009","content":"x","throughEventId":"demo:0007"}`,
			[]event.Body{event.AssistantMessage{Content: "x"}}},
		{"by position if no event has an id", `
			{"_tag":"UserMessage","contextName":"demo","content":"x"}
			{"_tag":"UserMessage","contextName":"demo","content":"y"}
			{"_tag":"AssistantMessage","contextName":"demo","content":"z","throughEventId":"demo:0001"}`,
			[]event.Body{
				event.UserMessage{Content: "x"}, event.UserMessage{Content: "y"},
				event.AssistantMessage{Content: "z", ThroughEventID: "copy:0001"},
			}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []event.Body
			for _, e := range read(t, tc.text, "copy") {
				got = append(got, e.Body)
			}
			require.Equal(t, tc.want, got)
		})
	}
}

func TestEventLinesAreRead(t *testing.T) {
	hello := []event.Body{event.UserMessage{Content: "Hello"}}
	for name, text := range map[string]string{
		"with the short tag":             `{"_tag":"UserMessage","content":"Hello"}`,
		"with a byte order mark":         "\ufeff" + `{"_tag":"UserMessage","content":"Hello"}`,
		"with CRLF line endings":         "{\"_tag\":\"UserMessage\",\"content\":\"Hello\"}\r\n\r\n",
		"with blank lines":               "\n \n{\"_tag\":\"UserMessage\",\"content\":\"Hello\"}\n\n",
		"with a tag in the middle":       `{"content":"Hello","_tag":"UserMessage"}`,
		"with deltas, which are skipped": `{"_tag":"TextDelta","requestId":"r","attempt":1,"index":0,"delta":"H"}` + "\n" + `{"_tag":"UserMessage","content":"Hello"}`,
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, hello, bodiesOf(t, text))
		})
	}
}

func TestInvalidInputIsRejected(t *testing.T) {
	const one = `{"_tag":"UserMessage","content":"Hello"}` + "\n"
	const wanted = `want events, one JSON object per line, or a conversation like {"messages":[{"role":"user","content":"Hello"}]}`
	for _, tc := range []struct{ name, text, want string }{
		{"nothing", "", "the input has no events: " + wanted},
		{"blank lines", " \n\n", "the input has no events: " + wanted},
		{"nothing but deltas", `{"_tag":"TextDelta","requestId":"r","attempt":1,"index":0,"delta":"H"}`, "the input has no events: " + wanted},
		{"text", "\nHello", "line 2: " + wanted},
		{"a number", "7", "line 1: " + wanted},
		{"another object", `{"content":"s3cr3t"}`, "line 1: the object has neither _tag nor messages: " + wanted},
		{"broken JSON", "{\"a\":\n\n s3cr3t}", "line 3: is not JSON: invalid character 's' looking for beginning of value"},
		{"half an object", `{"_tag":"UserMessage"`, "line 1: is not JSON: unexpected end of JSON input"},
		{"invalid UTF-8", "[\n\"\xff\"]", "line 2: is not valid UTF-8 (JSON requires it: RFC 8259, section 8.1)"},
		{"events in an array", "[\n" + one + "]", "line 2, message 1: _tag: unexpected in a message (write events one per line, not in an array)"},

		{"an unknown tag", one + `{"_tag":"Nonsense"}`, ""},
		{"text among events", one + "\ns3cr3t", `line 3: want a JSON object like {"_tag":"UserMessageEvent","content":"Hello"}, got invalid JSON`},
		{"messages among events", one + `{"messages":[]}`, "line 2: _tag: missing"},
		{"an event without a field", one + `{"_tag":"UserMessage"}`, "line 2: UserMessageEvent.content: missing"},
		{"a raw key", one + `{"_tag":"UserMessage","content":"x","meta":{"apiKey":"s3cr3t"}}`,
			"line 2: UserMessageEvent.meta.apiKey: a raw key is not allowed (use apiKeyRef, such as env:OPENAI_API_KEY)"},
		{"an invalid time", `{"_tag":"UserMessage","content":"x","timestamp":"s3cr3t"}`,
			"line 1: UserMessageEvent.timestamp: want an RFC 3339 time like 2026-01-02T15:04:05Z, got a string"},
		{"the logs of two contexts", `{"_tag":"UserMessage","id":"a:0001","content":"x"}` + "\n" + `{"_tag":"UserMessage","contextName":"b","content":"x"}`,
			"line 2: UserMessageEvent.contextName: differs from earlier events (a file holds the log of one context)"},
		{"a log twice", `{"_tag":"UserMessage","id":"a:0002","content":"x"}` + "\n" + `{"_tag":"UserMessage","id":"a:0002","content":"x"}`,
			"line 2: UserMessageEvent.id: out of order: event 2 follows event 2"},
		{"an event id as the request id", `{"_tag":"LLMRequestFailed","id":"a:0002","requestId":"a:0001","error":"x","retriesAttempted":0}`,
			"line 1: LLMRequestFailedEvent.requestId: empty"},
		{"an id twice", `{"_tag":"UserMessage","id":"m1","content":"x"}` + "\n" + `{"_tag":"UserMessage","id":"m1","content":"x"}`,
			"line 2: UserMessageEvent.id: duplicate id"},
		{"a misspelt setting", one + `{"_tag":"SetTools","aprove":["*"]}`, `line 2: SetToolsEvent: unknown field "aprove" (did you mean "approve"?)`},
		{"a misspelt nested setting", one + `{"_tag":"SetTools","tools":[{"name":"a","schema":{}}]}`,
			`line 2: SetToolsEvent.tools.0: unknown field "schema" (want one of name, description, parameters)`},
		{"an event that is too long", one + `{"_tag":"UserMessage","content":"` + strings.Repeat("x", chat.MaxLineBytes) + `"}`,
			fmt.Sprintf("line 2: %d bytes; an event has at most %d", chat.MaxLineBytes+35, chat.MaxLineBytes)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			events, err := chat.ReadAll(strings.NewReader(tc.text), "demo", importedAt)
			require.Nil(t, events, "invalid input yielded events")
			require.Error(t, err)
			require.NotContains(t, err.Error(), "s3cr3t")
			if tc.want != "" {
				require.EqualError(t, err, tc.want)
			} else {
				require.ErrorContains(t, err, "line 2: _tag: unknown")
			}
		})
	}
	t.Run("an invalid context name", func(t *testing.T) {
		_, err := chat.ReadAll(strings.NewReader(one), "de mo", importedAt)
		require.Equal(t, event.ValidateContextName("de mo"), err)
	})
	t.Run("errors unwrap to a FieldError", func(t *testing.T) {
		_, err := chat.ReadAll(strings.NewReader(one+`{"_tag":"UserMessage"}`), "demo", importedAt)
		var fe *event.FieldError
		require.ErrorAs(t, err, &fe)
		require.Equal(t, "content", fe.Field)
	})
	t.Run("a read error", func(t *testing.T) {
		_, err := chat.ReadAll(io.MultiReader(strings.NewReader(one), iotest.ErrReader(errors.New("gone"))), "demo", importedAt)
		require.EqualError(t, err, "line 2: read: gone")
	})
}

func TestInputSizeIsLimited(t *testing.T) {
	const limit = 32 << 20
	chat.LimitDocuments(t, limit)
	t.Run("a line", func(t *testing.T) {
		_, err := chat.ReadAll(io.MultiReader(strings.NewReader("\n["), endless(strings.Repeat(" ", 1<<20))), "demo", importedAt)
		require.EqualError(t, err, fmt.Sprintf("line 2: line exceeds %d bytes", limit))
	})
	t.Run("a conversation", func(t *testing.T) {
		_, err := chat.ReadAll(io.MultiReader(strings.NewReader("["), endless(strings.Repeat("1,", 1<<19)+"\n")), "demo", importedAt)
		require.EqualError(t, err, fmt.Sprintf("line 32: conversation exceeds %d bytes", limit))
	})
	t.Run("a log", func(t *testing.T) {
		e := event.New(event.UserMessage{Content: "Hello"})
		require.NoError(t, chat.PlaceAfter(chat.MaxEvents-1, e))
		require.EqualError(t, chat.PlaceAfter(chat.MaxEvents, e), "log exceeds 1000000 events")
	})
}

// endless repeats text forever.
func endless(text string) io.Reader { return &repeated{text: text} }

type repeated struct {
	text string
	at   int
}

func (r *repeated) Read(p []byte) (int, error) {
	n := copy(p, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	return n, nil
}

func TestEventsAreStreamedWhileReading(t *testing.T) {
	var in bytes.Buffer // reading ahead would reach its end, which ends the log
	next, stop := iter.Pull2(chat.Read(&in, "demo", importedAt))
	defer stop()
	for n := 1; n <= 3; n++ {
		fmt.Fprintln(&in, `{"_tag":"UserMessage","content":"Hello"}`)
		e, err, ok := next()
		require.True(t, ok)
		require.NoError(t, err)
		require.Equal(t, event.FormatID("demo", n), e.ID)
	}
	_, _, ok := next()
	require.False(t, ok)
}

func TestReadingStopsWhenTheConsumerDoes(t *testing.T) {
	for range chat.Read(io.MultiReader(strings.NewReader(`{"_tag":"UserMessage","content":"Hello"}`+"\n"), iotest.ErrReader(errors.New("read on"))), "demo", importedAt) {
		break
	}
}

func TestTheLargestEventOfALogIsRead(t *testing.T) {
	const largest = 16_000_000 // wire.MaxStoredBytes
	line := `{"_tag":"UserMessageEvent","id":"demo:0001","timestamp":"2026-01-02T15:04:05Z","contextName":"demo","content":"` +
		strings.Repeat("x", largest) + `"}`
	for e, err := range chat.Read(strings.NewReader(line), "demo", time.Time{}) {
		require.NoError(t, err)
		require.Len(t, e.Body.(event.UserMessage).Content, largest)
	}
}
