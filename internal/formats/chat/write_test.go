package chat_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/formats/chat"
)

func TestALogErrorIsReturnedInEveryFormat(t *testing.T) {
	gone := errors.New("gone")
	for _, format := range chat.Formats() {
		t.Run(string(format), func(t *testing.T) {
			_, err := chat.Write(io.Discard, format, func(yield func(event.Event, error) bool) {
				_ = yield(event.New(event.UserMessage{Content: "Hello"}), nil) && yield(event.Event{}, gone)
			}, nil)
			require.Equal(t, gone, err)
		})
	}
}

func TestAWriteErrorIsReturnedInEveryFormat(t *testing.T) {
	full := errors.New("full")
	for _, format := range chat.Formats() {
		t.Run(string(format), func(t *testing.T) {
			in, out := io.Pipe()
			require.NoError(t, in.CloseWithError(full))
			_, err := chat.Write(out, format, logOf(event.New(event.UserMessage{Content: "Hello"})), nil)
			require.Equal(t, full, err)
			long := event.New(event.UserMessage{Content: strings.Repeat("x", 1<<16)})
			_, err = chat.Write(out, format, logOf(long, long), nil)
			require.Equal(t, full, err)
		})
	}
}

func TestAnUnknownFormatIsRejected(t *testing.T) {
	_, err := chat.Write(io.Discard, "yaml", logOf(), nil)
	require.EqualError(t, err, `unknown format "yaml" (want one of ["jsonl" "openai" "markdown"])`)
}

func TestEventsAreStreamedWhileWriting(t *testing.T) {
	var out bytes.Buffer
	long := event.New(event.UserMessage{Content: strings.Repeat("x", 1<<16)})
	_, err := chat.Write(&out, chat.JSONL, func(yield func(event.Event, error) bool) {
		require.True(t, yield(long, nil))
		require.Greater(t, out.Len(), 1<<15)
	}, nil)
	require.NoError(t, err)
}

func TestAnExportContainsWhatACompactionRemoved(t *testing.T) {
	said := event.New(event.UserMessage{Content: "Hello"})
	said.ID = "demo:0001"
	compacted := event.New(event.Compacted{Strategy: event.StrategySummarise, ThroughEventID: said.ID, Summary: "They greet."})
	compacted.ID = "demo:0002"
	for _, format := range chat.Formats() {
		var out bytes.Buffer
		_, err := chat.Write(&out, format, logOf(said, compacted), nil)
		require.NoError(t, err)
		require.Contains(t, out.String(), "Hello", format)
		if format != chat.JSONL {
			require.NotContains(t, out.String(), "They greet.", format)
		}
	}
}

// confusing generates text that resembles transcript structure.
var confusing = rapid.Map(rapid.SliceOf(rapid.SampledFrom([]string{
	"a", " ", "\n", "\r\n", "\r", "# a", "## User", "> a", "```", "````", "`", "~~~", "- a", "<!-- ", "    a", "\t", "---", "\x1b[31m", "\x00", "é",
})), func(pieces []string) string { return strings.Join(pieces, "") })

// TestContentCannotBreakTheTranscriptStructure parses transcripts line by line with a
// simple reference parser.
func TestContentCannotBreakTheTranscriptStructure(t *testing.T) {
	plain := strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x1b", "", "\x00", "")
	rapid.Check(t, func(t *rapid.T) {
		var events []event.Event
		var want []string
		say := func(heading, text string, body event.Body) {
			events = append(events, event.New(body))
			want = append(want, "## "+heading)
			if strings.TrimSpace(text) != "" {
				want = append(want, "quote: "+plain.Replace(text))
			}
		}
		for range rapid.IntRange(1, 5).Draw(t, "messages") {
			text := confusing.Draw(t, "text")
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				name := confusing.Draw(t, "name")
				events = append(events, event.New(event.FileAttachment{Source: event.Source{Type: event.SourceFile, Path: "a"}, MediaType: "a/b", FileName: name}))
				say("User", text, event.UserMessage{Content: text})
				want = append(want, "attached")
			case 1:
				say("Assistant", text, event.AssistantMessage{Content: text})
			case 2:
				say("Assistant (partial)", text, event.AssistantMessage{Content: text, Partial: true})
			default:
				id := "c`1`" + string(rune('a'+len(want)))
				say("Assistant", "", event.AssistantMessage{})
				quoted, err := json.Marshal(text)
				require.NoError(t, err)
				events = append(events, event.New(event.ToolCall{ToolCallID: id, ToolName: "``", Parameters: quoted}),
					event.New(event.ToolResult{ToolCallID: id, Value: quoted}))
				want = append(want, "code: "+string(quoted), "## Tool", "code: "+strings.TrimSuffix(plain.Replace(text), "\n"))
			}
		}
		require.Equal(t, want, outline(t, write(t, chat.Markdown, dense(events...)...)))
	})
}

// outline returns the structure of a transcript.
func outline(t require.TestingT, text string) []string {
	var out []string
	fence, before := "", ""
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		ticks := line[:len(line)-len(strings.TrimLeft(line, "`"))]
		last := len(out) - 1
		switch {
		case fence != "" && line == fence:
			fence = ""
		case fence != "" && strings.HasPrefix(before, fence):
			out = append(out, "code: "+line)
		case fence != "":
			out[last] += "\n" + line
		case len(ticks) >= 3:
			fence = ticks
		case strings.HasPrefix(line, "## "):
			out = append(out, line)
		case strings.HasPrefix(line, ">") && strings.HasPrefix(before, ">"):
			out[last] += "\n" + strings.TrimPrefix(line[1:], " ")
		case strings.HasPrefix(line, ">"):
			out = append(out, "quote: "+strings.TrimPrefix(line[1:], " "))
		case strings.HasPrefix(line, "- Attached: "):
			out = append(out, "attached")
		default:
			require.Regexp(t, "^(|# demo|Calls .*:|Result of .*:)$", line)
		}
		before = line
	}
	require.Empty(t, fence, "a code block does not end")
	return out
}
