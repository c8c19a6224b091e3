package chat_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/internal/formats/chat"
)

func conversation(messages ...string) string {
	return `{"messages":[` + strings.Join(messages, ",") + "]}\n"
}

func TestMessagesBecomeEvents(t *testing.T) {
	hello := []event.Body{event.UserMessage{Content: "Hello"}}
	blob := func(mediaType, name string) event.Body {
		return event.FileAttachment{
			Source: event.Source{Type: event.SourceBlob, Data: []byte("PNG")}, MediaType: mediaType, FileName: name, Size: 3,
		}
	}
	link := func(mediaType, url string) event.Body {
		return event.FileAttachment{Source: event.Source{Type: event.SourceURL, URL: url}, MediaType: mediaType}
	}
	for _, tc := range []struct {
		name, text string
		want       []event.Body
	}{
		{"in a document", `{"messages":[{"role":"user","content":"Hello"}]}`, hello},
		{"in an array", `[{"role":"user","content":"Hello"}]`, hello},
		{"on several lines", "\n[\n\n{\"role\":\"user\",\n\"content\":\"Hello\"}\r\n]\n", hello},
		{"in a whole request", `{"model":"m","tools":[{"messages":[]}],"messages":[{"role":"user","content":"Hello"}],"temperature":0}`, hello},
		{"with unknown fields", `[{"role":"user","content":"Hello","name":"me","id":"x","weight":1}]`, hello},
		{"in text parts", `[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":""},{"type":"text","text":"b"}]}]`,
			[]event.Body{event.UserMessage{Content: "a\n\nb"}}},
		{"without text", `[{"role":"user","content":""}]`, []event.Body{event.UserMessage{}}},
		{"with images", `[{"role":"user","content":[
			{"type":"image_url","image_url":{"url":"data:image/png;base64,UE5H","detail":"low"}},
			{"type":"image_url","image_url":{"url":"https://example.com/a.webp?b=c.png"}},
			{"type":"image_url","image_url":{"url":"https://example.com/"}},
			{"type":"text","text":"Look"}]}]`,
			[]event.Body{
				blob("image/png", ""), link("image/webp", "https://example.com/a.webp?b=c.png"), link("image/jpeg", "https://example.com/"),
				event.UserMessage{Content: "Look"},
			}},
		{"with audio", `[{"role":"user","content":[
			{"type":"input_audio","input_audio":{"data":"UE5H","format":"wav"}},{"type":"input_audio","input_audio":{"data":"UE5H","format":"mp3"}}]}]`,
			[]event.Body{blob("audio/wav", ""), blob("audio/mpeg", ""), event.UserMessage{}}},
		{"with files", `[{"role":"user","content":[
			{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,UE5H"}},
			{"type":"file","file":{"filename":"b.pdf","file_data":"UE5H"}},
			{"type":"file","file":{"file_data":"data:text/plain,PNG"}}]}]`,
			[]event.Body{blob("application/pdf", "a.pdf"), blob("application/pdf", "b.pdf"), blob("text/plain", ""), event.UserMessage{}}},
		{"of the system and the developer", `[
			{"role":"system","content":"a"},{"role":"developer","content":[{"type":"text","text":"b"}]},{"role":"system","content":""},
			{"role":"user","content":"Hello"},{"role":"system","content":"c"}]`,
			[]event.Body{
				event.SystemPrompt{Content: "a"}, event.SystemPrompt{Content: "a\n\nb"}, event.UserMessage{Content: "Hello"},
				event.SystemPrompt{Content: "a\n\nb\n\nc"},
			}},
		{"of a model that refuses", `[{"role":"assistant","content":null,"refusal":"No."},{"role":"assistant","content":[{"type":"refusal","refusal":"No."}]}]`,
			[]event.Body{event.AssistantMessage{Content: "No."}, event.AssistantMessage{Content: "No."}}},
		{"of tools", `[
			{"role":"assistant","content":"x","refusal":null,"function_call":null,"tool_calls":[
				{"id":"c1","type":"function","function":{"name":"a","arguments":"{\"z\": 1.50, \"a\":[ ]}"}},
				{"id":"c2","function":{"name":"b","arguments":" "}},
				{"id":"c3","type":"function","function":{"name":"c","arguments":"{oops"}}]},
			{"role":"tool","tool_call_id":"c2","content":"done <b>"},
			{"role":"assistant","tool_calls":[{"id":"c2","type":"function","function":{"name":"b","arguments":"null"}}]},
			{"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":""}]}]`,
			[]event.Body{
				event.AssistantMessage{Content: "x"},
				event.ToolCall{ToolCallID: "c1", MessageID: "demo:0001", ToolName: "a", Parameters: json.RawMessage(`{"a":[],"z":1.50}`)},
				event.ToolCall{ToolCallID: "c2", MessageID: "demo:0001", ToolName: "b"},
				event.ToolCall{ToolCallID: "c3", MessageID: "demo:0001", ToolName: "c", Parameters: json.RawMessage(`"{oops"`)},
				event.ToolResult{ToolCallID: "c2", Value: json.RawMessage(`"done <b>"`)},
				event.AssistantMessage{},
				event.ToolCall{ToolCallID: "c2", MessageID: "demo:0006", ToolName: "b"},
				event.ToolResult{ToolCallID: "c2", Value: json.RawMessage(`""`)},
			}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.Equal(t, tc.want, bodiesOf(t, tc.text))
		})
	}
}

func TestInvalidMessagesAreRejected(t *testing.T) {
	user := func(part string) string { return `[{"role":"user","content":[` + part + `]}]` }
	calls := func(calls string) string { return `[{"role":"assistant","content":"","tool_calls":[` + calls + `]}]` }
	const call = `{"id":"c1","type":"function","function":{"name":"n","arguments":"{}"}}`
	for _, tc := range []struct{ name, text, want string }{
		{"none", `[]`, "line 1: the conversation has no messages"},
		{"none in a document", "\n" + `{"messages":[]}`, "line 2: the conversation has no messages"},
		{"another object on several lines", "{\n\"a\":1\n}", `the object has neither _tag nor messages`},
		{"an object instead of an array", "{\"messages\":\n{}}", "line 2: messages: want an array"},
		{"null instead of an array", `{"messages":null}`, "line 1: messages: want an array"},
		{"two conversations", `[{"role":"user","content":"a"}]` + "\n\n[]", "line 3: found data after the conversation (a file holds one conversation)"},
		{"two conversations on a line", `[{"role":"user","content":"a"}] []`, "line 1: is not JSON: invalid character '[' after top-level value"},
		{"a string", "[\n{\"role\":\"user\",\"content\":\"a\"},\n\n\"s3cr3t\"]", `line 4, message 2: want a message like {"role":"user","content":"Hello"}`},
		{"null", "[null]", `line 1, message 1: want a message like {"role":"user","content":"Hello"}`},
		{"no role", `[{"content":"a"}]`, `line 1, message 1: role: want system, developer, user, assistant or tool, got ""`},
		{"a secret role", `[{"role":"sk-s3cr3t-0123456789","content":"a"}]`, `line 1, message 1: role: want system, developer, user, assistant or tool, got "[removed]"`},
		{"a role that is a number", `[{"role":7,"content":"a"}]`, "line 1, message 1: role: want a string, got number"},
		{"no content", `[{"role":"user"}]`, "line 1, message 1: content: missing"},
		{"no content of an answer", `[{"role":"assistant","content":null}]`, "line 1, message 1: content: missing"},
		{"no parts", `[{"role":"user","content":[]}]`, "line 1, message 1: content: missing"},
		{"a refusal of a user", `[{"role":"user","refusal":"No."}]`, "line 1, message 1: content: missing"},
		{"calls of a user", `[{"role":"user","tool_calls":[` + call + `]}]`, "line 1, message 1: content: missing"},
		{"content that is an object", `[{"role":"user","content":{"text":"s3cr3t"}}]`, "line 1, message 1: content: want a string or an array of parts"},
		{"a part that is a string", user(`"s3cr3t"`), "line 1, message 1: content: want an object, got string"},
		{"a part of an unknown type", user(`{"type":"video"}`), `line 1, message 1: content.0.type: want text, image_url, input_audio or file, got "video"`},
		{"a part without the field of its type", user(`{"type":"text","text":"a"},{"type":"image_url"}`), "line 1, message 1: content.1.image_url: missing"},
		{"an image without a URL", user(`{"type":"image_url","image_url":{"url":7}}`), "line 1, message 1: content.image_url.url: want a string, got number"},
		{"an image that is a string", user(`{"type":"image_url","image_url":"https://example.com/a.png"}`), "line 1, message 1: content.image_url: want an object, got string"},
		{"an image with an FTP URL", user(`{"type":"image_url","image_url":{"url":"ftp://example.com/s3cr3t"}}`), "line 1, message 1: FileAttachmentEvent.source.url: want an http, https or data URL"},
		{"an image with invalid base64", user(`{"type":"image_url","image_url":{"url":"data:image/png;base64,s3cr3t!"}}`), "line 1, message 1: content.0.image_url.url: want a data URL like data:image/png;base64,… (RFC 2397)"},
		{"an empty image", user(`{"type":"image_url","image_url":{"url":"data:image/png;base64,"}}`), "line 1, message 1: FileAttachmentEvent.source.data: missing"},
		{"audio with invalid base64", user(`{"type":"input_audio","input_audio":{"data":"s3cr3t!","format":"wav"}}`), "line 1, message 1: content.0.input_audio.data: want bytes in base64 (RFC 4648)"},
		{"audio in another format", user(`{"type":"input_audio","input_audio":{"data":"UE5H","format":"flac"}}`), "line 1, message 1: content.0.input_audio.format: want wav or mp3"},
		{"a file by id", user(`{"type":"file","file":{"file_id":"file-s3cr3t"}}`), "line 1, message 1: content.0.file.file_data: missing (a file_id cannot be resolved; embed the file)"},
		{"an image of the system", `[{"role":"system","content":[{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]}]`, "line 1, message 1: content.0.type: want text (only user messages may have attachments)"},
		{"a function's result", `[{"role":"function","name":"n","content":"a"}]`, `line 1, message 1: role: want system, developer, user, assistant or tool, got "function"`},
		{"a function's call", `[{"role":"assistant","content":"a","function_call":{"name":"n"}}]`, "line 1, message 1: function_call: unsupported (use tool_calls)"},
		{"a call of another type", calls(`{"id":"c1","type":"custom"}`), "line 1, message 1: tool_calls.0.type: want function"},
		{"arguments that are an object", calls(`{"id":"c1","function":{"name":"n","arguments":{}}}`), "line 1, message 1: tool_calls.function.arguments: want a string, got object"},
		{"a call twice", calls(call + "," + call), "line 1, message 1: tool_calls.1.id: duplicate call id in this message"},
		{"a call without an id", calls(`{"function":{"name":"n","arguments":""}}`), "line 1, message 1: ToolCallEvent.toolCallId: empty"},
		{"a call without a name", calls(`{"id":"c1","function":{"arguments":""}}`), "line 1, message 1: ToolCallEvent.toolName: empty"},
		{"a result of no call", `[{"role":"tool","tool_call_id":"c1","content":"a"}]`, "line 1, message 1: tool_call_id: matches no earlier call without a result"},
		{"a result twice", `[{"role":"assistant","tool_calls":[` + call + `]},{"role":"tool","tool_call_id":"c1","content":"a"},{"role":"tool","tool_call_id":"c1","content":"a"}]`,
			"line 1, message 3: tool_call_id: matches no earlier call without a result"},
		{"a raw key", `[{"role":"user","content":"a","meta":{"apiKey":"s3cr3t"}}]`, "line 1, message 1: meta.apiKey: a raw key is not allowed (use apiKeyRef, such as env:OPENAI_API_KEY)"},
		{"a raw key in arguments", calls(`{"id":"c1","function":{"name":"n","arguments":"{\"apiKey\":\"s3cr3t\"}"}}`),
			"line 1, message 1: ToolCallEvent.parameters.apiKey: a raw key is not allowed (use apiKeyRef, such as env:OPENAI_API_KEY)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			events, err := chat.ReadAll(strings.NewReader(tc.text), "demo", importedAt)
			require.Nil(t, events)
			require.ErrorContains(t, err, tc.want)
			require.NotContains(t, err.Error(), "s3cr3t")
		})
	}
}

func TestAConversationIsImportedOnlyIfAllOfItIsValid(t *testing.T) {
	for e, err := range chat.Read(strings.NewReader(`[{"role":"user","content":"Hello"},{"role":"robot","content":"x"}]`), "demo", importedAt) {
		require.Error(t, err, "%v", e)
	}
}

func TestALogIsWrittenAsMessages(t *testing.T) {
	file := func(s event.Source, mediaType, name string) event.Body {
		return event.FileAttachment{Source: s, MediaType: mediaType, FileName: name}
	}
	blob := event.Source{Type: event.SourceBlob, Data: []byte("PNG")}
	dataURL := event.Source{Type: event.SourceURL, URL: "data:image/png;x=y;base64,UE5H"}
	link := event.Source{Type: event.SourceURL, URL: "https://example.com/a"}
	look := event.UserMessage{Content: "Look"}
	call := event.ToolCall{ToolCallID: "c1", ToolName: "n", Parameters: json.RawMessage(`{"a":"<"}`)}
	const called = `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"n","arguments":"{\"a\":\"<\"}"}}]}`
	const (
		png  = `{"type":"image_url","image_url":{"url":"data:image/png;base64,UE5H"}}`
		text = `{"type":"text","text":"Look"}`
	)
	for _, tc := range []struct {
		name   string
		events []event.Body
		want   []string
	}{
		{"nothing", nil, nil},
		{"the roles", []event.Body{event.SessionStarted{}, event.UserMessage{Content: "<a>"}, event.SystemPrompt{Content: "s"}, event.AssistantMessage{Content: "b", Partial: true}},
			[]string{`{"role":"system","content":"s"}`, `{"role":"user","content":"<a>"}`, `{"role":"assistant","content":"b"}`}},
		{"a late answer after the messages of its request", []event.Body{event.UserMessage{Content: "a"}, event.UserMessage{Content: "b"}, event.AssistantMessage{Content: "x", ThroughEventID: "demo:0001"}},
			[]string{`{"role":"user","content":"a"}`, `{"role":"assistant","content":"x"}`, `{"role":"user","content":"b"}`}},
		{"images", []event.Body{file(blob, "image/png", "a.png"), file(dataURL, "Image/PNG; x=y", ""), file(link, "image/png", "a"), look},
			[]string{`{"role":"user","content":[` + text + "," + png + "," + png + `,{"type":"image_url","image_url":{"url":"https://example.com/a"}}]}`}},
		{"an image alone", []event.Body{file(blob, "image/png", ""), event.UserMessage{Content: " "}}, []string{`{"role":"user","content":[` + png + `]}`}},
		{"audio", []event.Body{file(blob, "audio/x-wav", ""), file(blob, "audio/mpeg", ""), look},
			[]string{`{"role":"user","content":[` + text + `,{"type":"input_audio","input_audio":{"data":"UE5H","format":"wav"}},{"type":"input_audio","input_audio":{"data":"UE5H","format":"mp3"}}]}`}},
		{"a PDF", []event.Body{file(blob, "application/pdf", "a.pdf"), file(blob, "application/pdf", ""), look},
			[]string{`{"role":"user","content":[` + text + `,{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,UE5H"}},` +
				`{"type":"file","file":{"filename":"document.pdf","file_data":"data:application/pdf;base64,UE5H"}}]}`}},
		{"text files before other attachments", []event.Body{file(blob, "image/png", ""), file(blob, "text/plain", "a.txt"), look},
			[]string{`{"role":"user","content":[{"type":"text","text":"Look\n\n[Attached: a.txt (blob)]\nPNG"},` + png + `]}`}},
		{"notes for files on a worker, files by URL and unsupported types", []event.Body{
			file(event.Source{Type: event.SourceFile, Path: "notes/a.txt"}, "text/plain", "a.txt"), file(link, "text/html", "b.html"), file(blob, "video/mp4", ""), look,
		}, []string{`{"role":"user","content":"Look\n\n[Attached: notes/a.txt]\n[Attached: b.html (https://example.com/a)]\n[Attached: blob]"}`}},
		{"a note for a blob reference", []event.Body{
			file(event.Source{Type: event.SourceBlob, Ref: "sha256/" + strings.Repeat("0", 64)}, "image/png", "a.png"), look,
		}, []string{`{"role":"user","content":"Look\n\n[Attached: a.png (blob:sha256/` + strings.Repeat("0", 64) + `)]"}`}},
		{"a call and its result", []event.Body{call, event.ToolResult{ToolCallID: "c1", Value: json.RawMessage(`{"ok":true}`)}},
			[]string{called, `{"role":"tool","content":"{\"ok\":true}","tool_call_id":"c1"}`}},
		{"a call of an answer, without arguments", []event.Body{event.AssistantMessage{Content: "x"}, event.ToolCall{ToolCallID: "c1", ToolName: "n"}},
			[]string{`{"role":"assistant","content":"x","tool_calls":[{"id":"c1","type":"function","function":{"name":"n","arguments":"{}"}}]}`,
				`{"role":"tool","content":"interrupted, outcome unknown","tool_call_id":"c1"}`}},
		{"a call without a result, and a result without a call", []event.Body{call, event.ToolResult{ToolCallID: "c9", Value: json.RawMessage(`9`)}, event.UserMessage{Content: "a"}},
			[]string{called, `{"role":"tool","content":"interrupted, outcome unknown","tool_call_id":"c1"}`,
				`{"role":"user","content":"[Result of a tool call that is not part of this conversation: 9]"}`, `{"role":"user","content":"a"}`}},
		{"reasoning", []event.Body{event.AssistantMessage{Content: "a", Reasoning: "<b>"}}, []string{`{"role":"assistant","content":"a","reasoning_content":"<b>"}`}},
		{"a state of another provider", []event.Body{event.AssistantMessage{Content: "a", ProviderState: &event.ProviderState{
			ProviderID: "gemini", Model: "m", BaseURL: "https://openrouter.ai/api/v1", Data: json.RawMessage(`{"reasoning_details":[]}`),
		}}}, []string{`{"role":"assistant","content":"a"}`}},
		{"an empty answer", []event.Body{event.AssistantMessage{}}, []string{`{"role":"assistant","content":""}`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var events []event.Event
			for _, body := range tc.events {
				events = append(events, event.New(body))
			}
			require.Equal(t, conversation(tc.want...), write(t, chat.OpenAI, dense(events...)...))
		})
	}
}

// messages generates conversations in the canonical form that Write produces.
func messages() *rapid.Generator[[]string] {
	quoted := func(t *rapid.T, text string) string {
		var out strings.Builder
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(false)
		require.NoError(t, encoder.Encode(text))
		return strings.TrimSpace(out.String())
	}
	parts := rapid.Custom(func(t *rapid.T) string {
		data := base64.StdEncoding.EncodeToString(rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(t, "data"))
		return rapid.SampledFrom([]string{
			`{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}`,
			`{"type":"image_url","image_url":{"url":"data:image/webp;base64,` + data + `"}}`,
			`{"type":"input_audio","input_audio":{"data":"` + data + `","format":"mp3"}}`,
			`{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,` + data + `"}}`,
		}).Draw(t, "part")
	})
	return rapid.Custom(func(t *rapid.T) []string {
		var out []string
		if system := rapid.String().Draw(t, "system"); system != "" {
			out = append(out, fmt.Sprintf(`{"role":"system","content":%s}`, quoted(t, system)))
		}
		for range rapid.IntRange(1, 8).Draw(t, "messages") {
			text := quoted(t, rapid.String().Draw(t, "text"))
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				out = append(out, fmt.Sprintf(`{"role":"user","content":%s}`, text))
			case 1:
				all := append([]string{fmt.Sprintf(`{"type":"text","text":%s}`, quoted(t, "a"+rapid.String().Draw(t, "more")))},
					rapid.SliceOfN(parts, 1, 3).Draw(t, "parts")...)
				out = append(out, fmt.Sprintf(`{"role":"user","content":[%s]}`, strings.Join(all, ",")))
			case 2:
				reasoning := ""
				if r := rapid.String().Draw(t, "reasoning"); r != "" {
					reasoning = `,"reasoning_content":` + quoted(t, r)
				}
				out = append(out, fmt.Sprintf(`{"role":"assistant","content":%s%s}`, text, reasoning))
			default:
				var calls, results []string
				for i := range rapid.IntRange(1, 3).Draw(t, "calls") {
					// The ids come again in other messages, as with some servers.
					arguments := quoted(t, string(eventtest.Value().Draw(t, "arguments")))
					calls = append(calls, fmt.Sprintf(`{"id":"call_%d","type":"function","function":{"name":"weather","arguments":%s}}`, i, arguments))
					results = append(results, fmt.Sprintf(`{"role":"tool","content":%s,"tool_call_id":"call_%d"}`, quoted(t, rapid.String().Draw(t, "result")), i))
				}
				if text == `""` {
					text = "null"
				}
				out = append(out, fmt.Sprintf(`{"role":"assistant","content":%s,"tool_calls":[%s]}`, text, strings.Join(calls, ",")))
				out = append(out, rapid.Permutation(results).Draw(t, "results")...)
			}
		}
		return out
	})
}

func TestReasoningDetailsSurviveARoundTrip(t *testing.T) {
	const text = `{"model":"openai/gpt-5","messages":[{"role":"user","content":"Hi"},` +
		`{"role":"assistant","content":"Hello","reasoning_content":"Hm","reasoning_details":[{"type":"reasoning.encrypted","data":"c2ln+/=="}]}]}` + "\n"
	events := read(t, text, "demo")
	require.Equal(t, event.AssistantMessage{Content: "Hello", Reasoning: "Hm", ProviderState: &event.ProviderState{
		ProviderID: "openrouter", Model: "openai/gpt-5", BaseURL: "https://openrouter.ai/api/v1",
		Data: json.RawMessage(`{"reasoning_details":[{"type":"reasoning.encrypted","data":"c2ln+/=="}]}`),
	}}, events[1].Body)
	require.Equal(t, text, write(t, chat.OpenAI, events...))
}

func TestReasoningIsImportedUnderEitherName(t *testing.T) {
	for _, name := range []string{"reasoning", "reasoning_content"} {
		events := read(t, `[{"role":"assistant","content":null,"`+name+`":"Hm","reasoning_details":[{}]}]`, "demo")
		require.Equal(t, event.AssistantMessage{Reasoning: "Hm"}, events[0].Body, "details of an unknown model are of no use")
	}
}

func TestMessagesSurviveARoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := conversation(messages().Draw(t, "messages")...)
		require.Equal(t, text, write(t, chat.OpenAI, read(t, text, "demo")...))
	})
}

// TestEveryLogIsWrittenAsValidMessages reads the output back, which rejects what
// the API would, and checks that writing it again changes nothing.
func TestEveryLogIsWrittenAsValidMessages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := write(t, chat.OpenAI, anyLog().Draw(t, "log")...)
		if text == conversation() {
			return
		}
		requireAnswered(t, text)
		require.Equal(t, text, write(t, chat.OpenAI, read(t, text, "demo")...))
	})
}

// requireAnswered checks that each call is directly followed by its result.
func requireAnswered(t require.TestingT, text string) {
	var document struct {
		Messages []struct {
			Role      string
			Content   any
			ToolCalls []struct{ ID string } `json:"tool_calls"`
			CallID    string                `json:"tool_call_id"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(text), &document))
	open := map[string]bool{}
	for i, m := range document.Messages {
		if m.Role == "tool" {
			require.True(t, open[m.CallID], "message %d answers no call", i+1)
			delete(open, m.CallID)
			continue
		}
		require.Empty(t, open, "message %d stands between a call and its result", i+1)
		require.True(t, m.Content != nil || len(m.ToolCalls) > 0, "message %d is empty", i+1)
		for _, call := range m.ToolCalls {
			open[call.ID] = true
		}
	}
	require.Empty(t, open)
}
