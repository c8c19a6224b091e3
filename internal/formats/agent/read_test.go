package agent_test

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest/golden"
	"github.com/seed-9ed7edd4/chronicle/internal/formats/agent"
)

func TestSampleLogsMatchTheGoldenEvents(t *testing.T) {
	logs, err := filepath.Glob("testdata/*.jsonl")
	require.NoError(t, err)
	require.NotEmpty(t, logs)
	for _, log := range logs {
		name := strings.TrimSuffix(filepath.Base(log), ".jsonl")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(log)
			require.NoError(t, err)
			format, _, _ := strings.Cut(name, "-")
			got := written(t, read(t, agent.Format(format), string(text)))
			require.Equal(t, got, written(t, read(t, "", string(text))), "the format is recognized")
			golden.File(t, filepath.Join("testdata", name+".events"), got)
		})
	}
}

func read(t *testing.T, format agent.Format, log string) []event.Event {
	t.Helper()
	var events []event.Event
	for e, err := range agent.Read(strings.NewReader(log), format) {
		require.NoError(t, err)
		events = append(events, e)
	}
	return events
}

// written encodes one event per line.
func written(t *testing.T, events []event.Event) string {
	t.Helper()
	var b bytes.Buffer
	for _, e := range events {
		line, err := e.MarshalJSON()
		require.NoError(t, err)
		b.Write(append(line, '\n'))
	}
	return b.String()
}

// chunks returns one chunk per Read, then io.ErrUnexpectedEOF.
type chunks []string

func (c *chunks) Read(p []byte) (int, error) {
	if len(*c) == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n := copy(p, (*c)[0])
	*c = (*c)[1:]
	return n, nil
}

func TestEventsAreStreamedWhileReading(t *testing.T) {
	log := chunks{message("user", "One"), message("user", "Two")}
	next, stop := iter.Pull2(agent.Read(&log, agent.Droid))
	defer stop()
	for i, text := range []string{"One", "Two"} {
		e, err, ok := next()
		require.True(t, ok)
		require.NoError(t, err)
		require.Equal(t, event.UserMessage{Content: text, TriggersTurn: new(false)}, e.Body)
		require.Len(t, log, 1-i, "the next line is read before its event is requested")
	}
	_, err, ok := next()
	require.True(t, ok)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.EqualError(t, err, "line 3: read: unexpected EOF")
	_, _, ok = next()
	require.False(t, ok, "an event followed the error")
}

func TestAnUnknownFormatErrorListsTheFormats(t *testing.T) {
	for _, err := range agent.Read(strings.NewReader(""), "gpt") {
		require.EqualError(t, err, fmt.Sprintf("unknown format %q (want one of %q)", "gpt", agent.Formats()))
		for _, f := range agent.Formats() {
			require.NotEmpty(t, f.Usage())
		}
		return
	}
	t.Fatal("there was no error")
}

func TestLinesBecomeEvents(t *testing.T) {
	hello := event.UserMessage{Content: "Hello", TriggersTurn: new(false)}
	for _, tc := range []struct {
		name, log string
		want      []event.Body
	}{
		{"CRLF line endings", "\ufeff" + `{"type":"message","role":"user","text":"Hello"}` + "\r\n\r\n", []event.Body{hello}},
		{"no final newline", strings.TrimSpace(message("user", "Hello")), []event.Body{hello}},
		{"NUL bytes between and within lines", "\x00\x00" + strings.Replace(message("user", "Hello"), "ll", "l\x00l", 1), []event.Body{hello}},
		{"colours around an object", "\x1b[2m" + strings.TrimSpace(message("user", "Hello")) + "\x1b[0m\n", []event.Body{hello}},
		{"not UTF-8", message("user", "Hell\xff"), []event.Body{event.UserMessage{Content: "Hell\ufffd", TriggersTurn: new(false)}}},
		{"JSON that is no object", `["a", 1]`, []event.Body{event.Note{Kind: event.NoteSystem, Content: `["a", 1]`}}},
		{"two objects on a line", strings.TrimSpace(message("user", "Hello")) + message("user", "Hello"), []event.Body{hello, hello}},
		{"text after an object", strings.TrimSpace(message("user", "Hello")) + " ok", []event.Body{hello, event.Note{Kind: event.NoteSystem, Content: "ok"}}},
		{"a broken line", message("user", "Hello") + "{\"type\":\n", []event.Body{hello, event.Note{Kind: event.NoteWarning, Content: "line 2: invalid JSON"}}},
		{"a last line that is cut", message("user", "Hello") + message("user", "Bye")[:20],
			[]event.Body{hello, event.Note{Kind: event.NoteSystem, Content: "not recorded: incomplete last line (1)"}}},
		{"fields of other types", `{"type":"message","id":7,"role":"user","text":"Hello","timestamp":{},"session_id":[]}`, []event.Body{hello}},
		{"new types of lines", message("user", "Hello") + "{}\n{\"type\":\"pulse\"}\n{\"type\":\"pulse\"}\n{\"type\":\"<b>\"}\n",
			[]event.Body{hello, event.Note{Kind: event.NoteSystem, Content: "not recorded: other (1), pulse (2), without a type (1)"}}},
		{"a key in a text", "OPENAI_API_KEY=abcdefgh", []event.Body{event.Note{Kind: event.NoteSystem, Content: "OPENAI_API_KEY=[removed]"}}},
		{"a private key on several lines", "-----BEGIN PRIVATE KEY-----\nMIIEvQ+/\nabc=\n-----END PRIVATE KEY-----\ndone\n",
			[]event.Body{event.Note{Kind: event.NoteSystem, Content: "[removed]"}, event.Note{Kind: event.NoteSystem, Content: "done"}}},
		{"a private key with headers", "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIEvQ\n" + message("user", "Hello"),
			[]event.Body{event.Note{Kind: event.NoteSystem, Content: "[removed]"}, hello}},
		{"an empty message", message("user", " ") + message("assistant", ""), nil},
		{"an unknown role", message("critic", "Hello"), []event.Body{event.Note{Kind: event.NoteWarning, Content: `line 1: unknown role "critic"`}}},
		{"a system message", message("system", "Hello"), []event.Body{event.Note{Kind: event.NoteSystem, Content: "Hello"}}},
		{"an invalid tool name", `{"type":"tool_call","id":"a","toolName":"\n"}`,
			[]event.Body{event.Note{Kind: event.NoteWarning, Content: "line 1: ToolCallEvent.toolName: empty"}}},
		{"an id that is too long", `{"type":"tool_call","toolName":"a","id":"` + strings.Repeat("a", 257) + `"}`,
			[]event.Body{event.Note{Kind: event.NoteWarning, Content: "line 1: tool call id has 257 bytes (at most 256)"}}},
		{"a warning of the logger", `{"level":"warn","message":"slow"}`, []event.Body{event.Note{Kind: event.NoteWarning, Content: "slow"}}},
		{"an info line of the logger", `{"level":"info","message":"ready"}`, []event.Body{event.Note{Kind: event.NoteSystem, Content: "ready"}}},
		{"an error that is a text", `{"level":50,"error":"lost"}`, []event.Body{event.Note{Kind: event.NoteError, Content: "lost"}}},
		{"a final answer that differs from the last one", message("assistant", "One") + `{"type":"completion","finalText":"Two"}` + "\n" + message("assistant", "Two"),
			[]event.Body{event.AssistantMessage{Content: "One"}, event.AssistantMessage{Content: "Two"}, event.Note{Kind: event.NoteUsage}}},
		{"the same answer to another question", message("assistant", "Yes") + `{"type":"completion","finalText":"Yes"}` + "\n" + message("user", "Hello") + message("assistant", "Yes"),
			[]event.Body{event.AssistantMessage{Content: "Yes"}, event.Note{Kind: event.NoteUsage}, hello, event.AssistantMessage{Content: "Yes"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.Equal(t, tc.want, bodies(read(t, agent.Droid, tc.log)))
		})
	}
}

func TestAnUnparsedLineIsKept(t *testing.T) {
	events := read(t, agent.Droid, `{"type":"message","role":"critic","text":"No.","apiKey":"abc"}`)
	require.Len(t, events, 1)
	require.JSONEq(t, `"{\"type\":\"message\",\"role\":\"critic\",\"text\":\"No.\",\"apiKey\":[removed]}"`, string(events[0].Extra["line"]))
}

func TestIDsAreTheSameWhenALogIsReadAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.SampledFrom(manyLines), 0, 40).Draw(t, "lines")
		cut := rapid.IntRange(0, len(lines)).Draw(t, "cut")
		ids := map[string]event.Event{}
		for e, err := range agent.Read(strings.NewReader(start+strings.Join(lines, "")), agent.Droid) {
			require.NoError(t, err)
			require.NotContains(t, ids, e.ClientEventID)
			ids[e.ClientEventID] = e
		}
		for e, err := range agent.Read(strings.NewReader(start+strings.Join(lines[:cut], "")), agent.Droid) {
			require.NoError(t, err)
			if isOfTheEnd := strings.HasSuffix(e.ClientEventID, "-unknown") || strings.HasSuffix(e.ClientEventID, "-dropped") ||
				strings.HasSuffix(e.ClientEventID, "-skipped"); isOfTheEnd {
				continue // the longer log may have the actual result, or other counts
			}
			require.Equal(t, ids[e.ClientEventID], e)
		}
	})
}

func TestLineIDsStayUniqueAfterTheCountsAreCleared(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOf(rapid.SampledFrom([]string{"a", "b", "c", "d"})).Draw(t, "lines")
		most := rapid.IntRange(1, 5).Draw(t, "most")
		names := agent.LineIDs(most, lines...)
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(names))), len(lines))
		require.Equal(t, names, agent.LineIDs(most, append(lines, "e")...)[:len(lines)])
	})
}

func TestAContextAcceptsResultsInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.SampledFrom(manyLines), 0, 40).Draw(t, "lines")
		var events []event.Event
		for e, err := range agent.Read(strings.NewReader(start+strings.Join(lines, "")), agent.Droid) {
			require.NoError(t, err)
			events = append(events, e)
		}
		requireAccepted(t, events)
	})
}

// start begins a log of Droid.
const start = `{"type":"session_start","id":"s1"}` + "\n"

// manyLines are related lines, combined in any order.
var manyLines = []string{
	"working\n", "\n", "{\n",
	message("user", "Hello"), message("assistant", "Hi"), `{"type":"completion","finalText":"Hi"}` + "\n",
	call("a", "Read"), call("b", "Read"), call("c", "Edit"), call("", "Edit"),
	result("a", "Read"), result("b", "Read"), result("c", "Edit"), result("", "Read"), result("", "Edit"), result("d", "LS"),
	`{"type":"tool_call","id":"a"}` + "\n",
	`{"type":"tool_call","id":"a","toolId":"Read","session_id":"s1"}` + "\n", `{"type":"tool_result","id":"a","value":1,"session_id":"s1"}` + "\n",
	`{"type":"tool_call","id":"a","toolId":"Read","session_id":"s2"}` + "\n", `{"type":"tool_result","id":"a","value":2,"session_id":"s2"}` + "\n",
}

func message(role, text string) string {
	return fmt.Sprintf(`{"type":"message","role":"%s","text":"%s"}`+"\n", role, text)
}

func call(id, tool string) string {
	return fmt.Sprintf(`{"type":"tool_call","id":"%s","toolId":"%s"}`+"\n", id, tool)
}

func result(id, tool string) string {
	return fmt.Sprintf(`{"type":"tool_result","id":"%s","toolId":"%s","value":"%s"}`+"\n", id, tool, tool)
}

func bodies(events []event.Event) []event.Body {
	var out []event.Body
	for _, e := range events {
		out = append(out, e.Body)
	}
	return out
}
