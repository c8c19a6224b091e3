package chat_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/formats/chat"
)

func exported(t *testing.T) (conversations []chat.Conversation) {
	t.Helper()
	file, err := os.Open("testdata/conversations.json")
	require.NoError(t, err)
	defer file.Close()
	for c, err := range chat.Conversations(file) {
		require.NoError(t, err)
		conversations = append(conversations, c)
	}
	return conversations
}

func TestTheCurrentBranchOfAnExportIsImported(t *testing.T) {
	c := exported(t)[0]
	require.Equal(t, "Trip to Köln: trains & hotels", c.Title)
	require.Equal(t, "trip-to-k-ln-trains-hotels-695746e5", c.ContextName())
	var bodies []event.Body
	var times []string
	for e, err := range c.Log("trip", importedAt) {
		require.NoError(t, err)
		require.Equal(t, event.FormatID("trip", len(bodies)+1), e.ID)
		bodies = append(bodies, e.Body)
		times = append(times, e.Timestamp.Format("05.000"))
	}
	require.Equal(t, []event.Body{
		event.SystemPrompt{Content: "I live in Bremen.\nBe brief."},
		event.UserMessage{Content: "[image_asset_pointer file-service://file-1a2b]\nWhen does this train leave?"},
		event.AssistantMessage{Reasoning: "Reading the ticket\nIt names a train."},
		event.ToolCall{ToolCallID: "call_3", MessageID: "trip:0003", ToolName: "web_run", Parameters: json.RawMessage(`{"input":"search(\"ICE 123\")"}`)},
		event.ToolResult{ToolCallID: "call_3", Value: json.RawMessage(`"Timetable\nhttps://trains.example\nICE 123 leaves at 9:12.\n\n[hologram]"`)},
		event.AssistantMessage{Content: "At 9:12."},
		event.UserMessage{Content: "Thank you.\n[real_time_user_audio_video_asset_pointer]"},
		event.SetDetails{Title: new("Trip to Köln: trains & hotels")},
	}, bodies)
	require.Equal(t, []string{"05.500", "06.125", "21.000", "21.000", "23.000", "24.750", "30.000", "30.000"}, times)
}

func TestTheTitleOfAnExportIsALine(t *testing.T) {
	for title, want := range map[string]string{
		"two\nlines\u202e \u2028": "two lines",
		strings.Repeat("é", 101):  strings.Repeat("é", 98) + "…",
		strings.Repeat("x", 200):  strings.Repeat("x", 200),
		"\n":                      "",
	} {
		data, err := json.Marshal([]any{map[string]any{"title": title, "mapping": map[string]any{
			"a": map[string]any{"message": map[string]any{"author": map[string]string{"role": "user"}, "content": map[string]any{"parts": []string{"Hi"}}}},
		}}})
		require.NoError(t, err)
		got := ""
		for c, err := range chat.Conversations(strings.NewReader(string(data))) {
			require.NoError(t, err)
			for e, err := range c.Log("demo", importedAt) {
				require.NoError(t, err)
				require.NoError(t, e.Validate())
				if details, ok := e.Body.(event.SetDetails); ok {
					got = *details.Title
				}
			}
		}
		require.Equal(t, want, got)
	}
}

func TestAnExportIsReadLeniently(t *testing.T) {
	c := exported(t)[1]
	require.Equal(t, "chatgpt-11111111", c.ContextName())
	var bodies []event.Body
	for e, err := range c.Log("demo", importedAt) {
		require.NoError(t, err)
		bodies = append(bodies, e.Body)
	}
	require.Equal(t, []event.Body{event.UserMessage{Content: "Hello"}, event.AssistantMessage{Content: "Hi"}}, bodies)
}

func TestAConversationWithoutMessagesIsAnError(t *testing.T) {
	for _, err := range exported(t)[2].Log("demo", importedAt) {
		require.EqualError(t, err, `conversation "Empty": has no messages`)
	}
}

func TestInvalidExportsAreExplained(t *testing.T) {
	for text, want := range map[string]string{
		"":                   "the input has no conversations: EOF",
		"x":                  "element 1, after byte 0: is not JSON: invalid character 'x' looking for beginning of value",
		" \n[{]":             "element 1, after byte 3: is not JSON: invalid character ']' looking for beginning of object key string",
		"[]x":                "",
		`[{"mapping":{}}`:    "element 2, after byte 15: is not JSON: unexpected EOF",
		`[{"mapping":{}},{`:  "element 2, after byte 15: is not JSON: unexpected EOF",
		`[{"mapping":{}} 7]`: "element 2, after byte 15: is not JSON: expected comma after array element",
		`[7,{"mapping":{}}]`: "conversation 1: mapping: missing (want conversations.json of an export of ChatGPT)",
		` {"messages":[]}`:   "conversation 1: mapping: missing (want conversations.json of an export of ChatGPT)",
	} {
		var last error
		for _, err := range chat.Conversations(strings.NewReader(text)) {
			last = err
		}
		if want == "" {
			require.NoError(t, last)
			continue
		}
		require.EqualError(t, last, want, text)
	}
}

func TestAnInvalidConversationDoesNotEndAnExport(t *testing.T) {
	const valid = `{"title":"Valid","mapping":{"a":{"message":{"author":{"role":"user"},"content":{"parts":["Hi"]}}}}}`
	text := `[` + valid + `,{"title":"Broken","id":"b"},7,null,{"title":"List","mapping":[]},` + valid + `]`
	var got []string
	for c, err := range chat.Conversations(strings.NewReader(text)) {
		require.NoError(t, err)
		require.NoError(t, event.ValidateContextName(c.ContextName()))
		for e, err := range c.Log("demo", importedAt) {
			if err != nil {
				got = append(got, err.Error())
				continue
			}
			got = append(got, e.ID)
		}
	}
	require.Equal(t, []string{
		"demo:0001", "demo:0002",
		`conversation "Broken": element 2 of the export: mapping: missing`,
		`conversation "": element 3 of the export: mapping: missing`,
		`conversation "": element 4 of the export: mapping: missing`,
		`conversation "List": element 5 of the export: mapping: missing`,
		"demo:0001", "demo:0002",
	}, got)
}

func TestReadRecognizesAnExport(t *testing.T) {
	data, err := os.ReadFile("testdata/conversations.json")
	require.NoError(t, err)
	var all []json.RawMessage
	require.NoError(t, json.Unmarshal(data, &all))
	for _, text := range []string{string(data), string(all[0])} {
		_, err = chat.ReadAll(strings.NewReader(text), "demo", time.Time{})
		require.ErrorContains(t, err, "the input is an export of ChatGPT (set --conversation or --all)")
	}
}
