package chat_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/formats/chat"
)

func FuzzReadReturnsAValidLogOrAnError(f *testing.F) {
	for _, seed := range []string{
		"", "\ufeff", "7", "[]", `{"messages":[]}`, visit,
		`{"_tag":"UserMessage","content":"Hello"}` + "\r\n\n" + `{"_tag":"ToolCall","toolCallId":"c","toolName":"n","messageId":"m"}`,
		`{"_tag":"AssistantMessage","id":"a:0002","contextName":"a","content":"x","throughEventId":"a:0001","requestId":"a:r0001","extra":{"b":1}}`,
		`{"_tag":"LLMRequestFailed","id":"a:0002","requestId":"a:0001","error":"x","retriesAttempted":0}`,
		`[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"UE5H","format":"wav"}},{"type":"image_url","image_url":{"url":"data:image/png;base64,UE5H"}},` +
			`{"type":"file","file":{"filename":"a","file_data":"UE5H"}}]},{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"n","arguments":"{"}}]},` +
			`{"role":"developer","content":"a"},{"role":"tool","tool_call_id":"c","content":""}]`,
		"[{\"role\":\"user\",\n\"content\":\"\xff\"}]", `{"messages":[{"role":"user","content":"a","apiKey":"b"}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		events, err := chat.ReadAll(bytes.NewReader(data), "demo", importedAt)
		if err != nil {
			require.Nil(t, events)
			require.NotContains(t, err.Error(), "\n")
			return
		}
		for i, e := range events {
			require.NoError(t, e.Validate())
			require.Equal(t, "demo", e.ContextName)
			require.Equal(t, i+1, event.Counter(e.ID))
			require.Equal(t, i, event.Counter(e.ParentID))
			require.False(t, e.Timestamp.IsZero())
		}
		require.Equal(t, events, read(t, write(t, chat.JSONL, events...), "demo"))
		require.NotEmpty(t, write(t, chat.Markdown, events...))
		if text := write(t, chat.OpenAI, events...); text != conversation() {
			require.Equal(t, text, write(t, chat.OpenAI, read(t, text, "demo")...))
		}
	})
}

func FuzzConversationsAreValidLogsOrErrors(f *testing.F) {
	data, err := os.ReadFile("testdata/conversations.json")
	require.NoError(f, err)
	f.Add(data)
	f.Add([]byte(`{"id":7,"title":[],"mapping":{"a":{"parent":"a","message":{"create_time":1e300,"recipient":"?","author":{"role":"assistant"},"content":{"content_type":"code","text":"x"}}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for c, err := range chat.Conversations(bytes.NewReader(data)) {
			if err != nil {
				return
			}
			require.NoError(t, event.ValidateContextName(c.ContextName()))
			for e, err := range c.Log("demo", importedAt) {
				if err != nil {
					break
				}
				require.NoError(t, e.Validate())
				_, err = e.MarshalJSON()
				require.NoError(t, err)
			}
		}
	})
}
