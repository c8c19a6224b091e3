package llm_test

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sashabaranov/go-openai"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/ordering"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func system(text string) reducer.Message {
	return reducer.Message{Role: reducer.RoleSystem, Content: text}
}
func user(text string, attachments ...reducer.Attachment) reducer.Message {
	return reducer.Message{Role: reducer.RoleUser, Content: text, Attachments: attachments}
}
func assistant(text string, calls ...reducer.ToolCall) reducer.Message {
	return reducer.Message{Role: reducer.RoleAssistant, Content: text, ToolCalls: calls}
}
func toolResult(id, text string) reducer.Message {
	return reducer.Message{Role: reducer.RoleTool, Content: text, ToolCallID: id}
}
func call(id, name string) reducer.ToolCall {
	return reducer.ToolCall{ID: id, Name: name, Arguments: `{"x":1}`}
}
func blob(mediaType, name string, data []byte) reducer.Attachment {
	return reducer.Attachment{Source: event.Source{Type: event.SourceBlob, Data: data}, MediaType: mediaType, FileName: name}
}
func link(mediaType, url string) reducer.Attachment {
	return reducer.Attachment{Source: event.Source{Type: event.SourceURL, URL: url}, MediaType: mediaType}
}
func ref(mediaType, name, hash string) reducer.Attachment {
	return reducer.Attachment{Source: event.Source{Type: event.SourceBlob, Ref: "sha256/" + hash}, MediaType: mediaType, FileName: name, Size: 4}
}
func file(mediaType, path string) reducer.Attachment {
	return reducer.Attachment{Source: event.Source{Type: event.SourceFile, Path: path}, MediaType: mediaType}
}

// lines formats a rendered conversation, one line per message.
func lines(messages []openai.ChatCompletionMessage) []string {
	var out []string
	for _, m := range messages {
		line := m.Role + ": " + m.Content
		for _, part := range m.MultiContent {
			if part.ImageURL != nil {
				line += "<" + part.ImageURL.URL + ">"
			} else {
				line += "<" + part.Text + ">"
			}
		}
		for _, c := range m.ToolCalls {
			line += fmt.Sprintf("{%s=%s(%s)}", c.ID, c.Function.Name, c.Function.Arguments)
		}
		if m.ToolCallID != "" {
			line += " for " + m.ToolCallID
		}
		out = append(out, line)
	}
	return out
}

func TestConversationIsRenderedForItsProvider(t *testing.T) {
	pixel := []byte{0x89, 'P', 'N', 'G'}
	pixelURL := "data:image/png;base64," + base64.StdEncoding.EncodeToString(pixel)
	files := func(path string) ([]byte, error) {
		switch path {
		case "notes.txt":
			return []byte("buy milk"), nil
		case "cat.png":
			return pixel, nil
		}
		return nil, errors.New("not below the folder for attachments")
	}
	blobs := func(_ context.Context, ref string) ([]byte, error) {
		switch ref {
		case "sha256/cat":
			return pixel, nil
		case "sha256/notes":
			return []byte("buy milk"), nil
		}
		return nil, errors.New("no such blob")
	}
	longID := strings.Repeat("x", 41)
	tests := map[string]struct {
		config   reducer.ProviderConfig
		noFiles  bool // and no blobs
		messages []reducer.Message
		want     []string
	}{
		"text is unchanged": {
			messages: []reducer.Message{system("Be brief."), user(" Hi \n"), assistant("Hello"), user("Bye")},
			want:     []string{"system: Be brief.", "user:  Hi \n", "assistant: Hello", "user: Bye"},
		},
		"a partial answer keeps its text": {
			messages: []reducer.Message{user("Tell"), {Role: reducer.RoleAssistant, Content: "Once upon ", Partial: true}, user("Stop")},
			want:     []string{"user: Tell", "assistant: Once upon ", "user: Stop"},
		},
		"blank messages are omitted": {
			messages: []reducer.Message{system(" "), user("Hi"), assistant(""), user(" \n"), assistant(" ")},
			want:     []string{"user: Hi"},
		},
		"system messages come first": {
			messages: []reducer.Message{user("Hi"), system("One."), assistant("Hello"), system("Two.")},
			want:     []string{"system: One.\n\nTwo.", "user: Hi", "assistant: Hello"},
		},
		"an image becomes a part, whatever its source": {
			messages: []reducer.Message{user("Look", blob("image/png", "a.png", pixel), link("image/jpeg", "https://x.example/b.jpg"), file("image/png", "cat.png"), link("image/png", pixelURL))},
			want:     []string{"user: <Look><" + pixelURL + "><https://x.example/b.jpg><" + pixelURL + "><" + pixelURL + ">"},
		},
		"an image without text is a message": {
			messages: []reducer.Message{user("", link("image/png", "https://x.example/b.png"))},
			want:     []string{"user: <https://x.example/b.png>"},
		},
		"an image in an unsupported format becomes a note": {
			messages: []reducer.Message{user("Look", link("image/heic", "https://x.example/b.heic"))},
			want:     []string{"user: Look\n\n[Attached: https://x.example/b.heic]"},
		},
		"text files are included": {
			messages: []reducer.Message{user("Read", file("text/plain; charset=utf-8", "notes.txt"), blob("application/json", "a.json", []byte(`{"a":1}`)), blob("image/svg+xml", "a.svg", []byte("<svg/>")), link("text/csv", "data:text/csv;base64,YSxi"), link("text/csv", "data:,c%2Cd"))},
			want:     []string{"user: Read\n\n[Attached: notes.txt]\nbuy milk\n\n[Attached: a.json]\n{\"a\":1}\n\n[Attached: a.svg]\n<svg/>\n\n[Attached: data:text/csv;base64,…]\na,b\n\n[Attached: data:,…]\nc,d"},
		},
		"text files next to an image become parts": {
			messages: []reducer.Message{user("Read", file("text/plain", "notes.txt"), blob("image/png", "", pixel))},
			want:     []string{"user: <Read><[Attached: notes.txt]\nbuy milk><" + pixelURL + ">"},
		},
		"notes next to an image are one part": {
			messages: []reducer.Message{user("Look", blob("image/png", "", pixel), file("audio/mpeg", "song.mp3"), blob("application/zip", "a.zip", pixel))},
			want:     []string{"user: <Look><" + pixelURL + "><[Attached: song.mp3]\n[Attached: a.zip]>"},
		},
		"a text file between notes is separated by blank lines": {
			messages: []reducer.Message{user("Read", file("audio/mpeg", "song.mp3"), file("text/plain", "notes.txt"), blob("application/zip", "a.zip", pixel))},
			want:     []string{"user: Read\n\n[Attached: song.mp3]\n\n[Attached: notes.txt]\nbuy milk\n\n[Attached: a.zip]"},
		},
		"other files become notes": {
			messages: []reducer.Message{user("Listen", file("audio/mpeg", "song.mp3"), blob("application/pdf", "a.pdf", pixel), link("text/html", "https://x.example/page"))},
			want:     []string{"user: Listen\n\n[Attached: song.mp3]\n[Attached: a.pdf]\n[Attached: https://x.example/page]"},
		},
		"unreadable files become notes": {
			messages: []reducer.Message{user("Read", file("text/plain", "/etc/passwd"), file("image/png", "/gone.png"), blob("text/plain", "b", []byte{0xff}), link("text/plain", "data:;base64,%"))},
			want: []string{"user: Read\n\n[Attached: /etc/passwd, which could not be read]\n[Attached: /gone.png, which could not be read]" +
				"\n[Attached: b, which could not be read]\n[Attached: data:;base64,…, which could not be read]"},
		},
		"an empty file becomes a note": {
			messages: []reducer.Message{user("", blob("text/plain", "b.txt", []byte(" ")))},
			want:     []string{"user: [Attached: b.txt, which is empty]"},
		},
		"files become notes without ReadAttachment": {
			noFiles:  true,
			messages: []reducer.Message{user("Read", file("text/plain", "notes.txt"), file("image/png", "cat.png"))},
			want:     []string{"user: Read\n\n[Attached: notes.txt]\n[Attached: cat.png]"},
		},
		"a referenced blob is read": {
			messages: []reducer.Message{user("Look", ref("image/png", "cat.png", "cat"), ref("text/plain", "notes.txt", "notes"))},
			want:     []string{"user: <Look><" + pixelURL + "><[Attached: notes.txt]\nbuy milk>"},
		},
		"a missing blob becomes a note": {
			messages: []reducer.Message{user("Look", ref("image/png", "cat.png", "gone"), ref("text/plain", "", "gone"))},
			want:     []string{"user: Look\n\n[Attached: cat.png, which could not be read]\n[Attached: blob:sha256/gone, which could not be read]"},
		},
		"referenced blobs that the provider does not accept become notes": {
			messages: []reducer.Message{user("Look", ref("application/pdf", "a.pdf", "notes"), ref("audio/mpeg", "", "cat"))},
			want:     []string{"user: Look\n\n[Attached: a.pdf]\n[Attached: blob:sha256/cat]"},
		},
		"blobs become notes without ReadBlob": {
			noFiles:  true,
			messages: []reducer.Message{user("Look", ref("image/png", "cat.png", "cat"), ref("text/plain", "notes.txt", "notes"), blob("text/plain", "b.txt", []byte("text")))},
			want:     []string{"user: Look\n\n[Attached: cat.png, which is not available]\n[Attached: notes.txt, which is not available]\n\n[Attached: b.txt]\ntext"},
		},
		"all attachments become notes for a text-only model": {
			config:   reducer.ProviderConfig{TextOnly: true},
			messages: []reducer.Message{user("Look", blob("image/png", "a.png", pixel), file("text/plain", "notes.txt"), ref("image/png", "cat.png", "cat"))},
			want:     []string{"user: Look\n\n[Attached: a.png]\n[Attached: notes.txt]\n[Attached: cat.png]"},
		},
		"ollama gets data URLs only": {
			config:   reducer.ProviderConfig{ProviderID: "ollama"},
			messages: []reducer.Message{user("Look", blob("image/png", "", pixel), link("image/png", "https://x.example/b.png"))},
			want:     []string{"user: <Look><" + pixelURL + "><[Attached: https://x.example/b.png]>"},
		},
		"a tool call is followed by its result": {
			messages: []reducer.Message{user("Go"), assistant("", call("c1", "run"), call("c2", "run")), toolResult("c2", "two"), user("And?"), toolResult("c1", "one")},
			want:     []string{"user: Go", `assistant: {c1=run({"x":1})}{c2=run({"x":1})}`, "tool: one for c1", "tool: two for c2", "user: And?"},
		},
		"a tool call without a result gets one": {
			messages: []reducer.Message{user("Go"), assistant("Right.", call("c1", "run")), user("Stop")},
			want:     []string{"user: Go", `assistant: Right.{c1=run({"x":1})}`, "tool: interrupted, outcome unknown for c1", "user: Stop"},
		},
		"an empty result gets a placeholder": {
			messages: []reducer.Message{user("Go"), assistant("", call("c1", "run")), toolResult("c1", "")},
			want:     []string{"user: Go", `assistant: {c1=run({"x":1})}`, "tool: (empty) for c1"},
		},
		"a result without a call becomes a note": {
			messages: []reducer.Message{user("Go"), toolResult("c1", "one"), assistant("", call("c1", "run"))},
			want: []string{"user: Go", "user: [Result of a tool call that is not part of this conversation: one]",
				`assistant: {c1=run({"x":1})}`, "tool: interrupted, outcome unknown for c1"},
		},
		"a result belongs to the previous call with its id": {
			messages: []reducer.Message{assistant("", call("c1", "run")), toolResult("c1", "one"), assistant("", call("c1", "run")), toolResult("c1", "two")},
			want: []string{`assistant: {c1=run({"x":1})}`, "tool: one for c1",
				`assistant: {faf5c41d8876fffd280866d9e463cb67=run({"x":1})}`, "tool: two for faf5c41d8876fffd280866d9e463cb67"},
		},
		"names, ids and arguments are converted to valid ones": {
			messages: []reducer.Message{assistant("", reducer.ToolCall{ID: longID, Name: "files.read!", Arguments: "[1]"}, reducer.ToolCall{ID: "c", Name: "", Arguments: ""}), toolResult(longID, "one"), toolResult("c", "two")},
			want: []string{`assistant: {3164596df4fdd018b2c567ec8c03e79b=files_read_({"input":[1]})}{c=tool({})}`,
				"tool: one for 3164596df4fdd018b2c567ec8c03e79b", "tool: two for c"},
		},
		"mistral gets tool calls as text and alternating roles": {
			config:   reducer.ProviderConfig{ProviderID: "mistral"},
			messages: []reducer.Message{system("Be brief."), assistant("Welcome"), user("Go"), assistant("Right.", call("c1", "run")), toolResult("c1", "one"), user("And?"), user("Well?")},
			want: []string{"system: Be brief.", "user: (The conversation begins with the assistant.)", "assistant: Welcome", "user: Go",
				"assistant: Right.\n\n[Called the tool run with {\"x\":1}]", "user: [The tool run returned: one]\n\nAnd?\n\nWell?"},
		},
		"adjacent messages with images are merged": {
			config:   reducer.ProviderConfig{ProviderID: "vllm"},
			messages: []reducer.Message{user("One"), user("Two", blob("image/png", "", pixel)), user("Three")},
			want:     []string{"user: <One><Two><" + pixelURL + "><Three>"},
		},
		"the system message becomes a user message without a system role": {
			config:   reducer.ProviderConfig{Model: "google/gemma-3-27b-it"},
			messages: []reducer.Message{system("Be brief."), user("Hi")},
			want:     []string{"user: Be brief.\n\nHi"},
		},
		"also if the assistant comes first": {
			config:   reducer.ProviderConfig{Model: "gemma3:4b"},
			messages: []reducer.Message{system("Be brief."), assistant("Welcome"), user("Hi")},
			want:     []string{"user: Be brief.", "assistant: Welcome", "user: Hi"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			model := llmtest.Start(t, llmtest.Answer("Hi"))
			options := llm.Options{ReadAttachment: files, ReadBlob: blobs}
			if test.noFiles {
				options = llm.Options{}
			}
			require.NoError(t, send(within(t), model, options, test.config, test.messages))
			require.Equal(t, test.want, lines(model.Requests()[0].Messages))
		})
	}
}

// send sends the messages to a provider and returns the error of the adapter.
func send(ctx context.Context, model *llmtest.Server, options llm.Options, config reducer.ProviderConfig, messages []reducer.Message) error {
	config.BaseURL, options.AllowLoopback = model.URL, true
	config.ProviderID = cmp.Or(config.ProviderID, "scripted")
	config.Model = cmp.Or(config.Model, "m")
	target, err := llm.New(options).Resolve(config)
	if err != nil {
		return err
	}
	_, err = target.Stream(ctx, messages, nil)
	return err
}

func TestEmptyConversationIsNotSent(t *testing.T) {
	model := llmtest.Start(t)
	_, err := target(t, model).Stream(within(t), []reducer.Message{user(""), assistant(" ")}, nil)
	failed := requireKind(t, llm.KindBadRequest, err)
	require.False(t, failed.Retryable())
	require.ErrorContains(t, err, "the conversation has no message")
}

// TestRenderedConversationsAreValid sends random conversations and checks the requests by the
// rules of the strictest providers.
func TestRenderedConversationsAreValid(t *testing.T) {
	configs := []reducer.ProviderConfig{
		{ProviderID: "openai"}, {ProviderID: "mistral"}, {ProviderID: "anthropic"}, {ProviderID: "vllm"},
		{ProviderID: "ollama"}, {ProviderID: "deepseek"}, {ProviderID: "vllm", Model: "gemma-3"}, {TextOnly: true},
	}
	model := llmtest.Start(t, llmtest.Func(func(llmtest.Request) llmtest.Step { return llmtest.Answer("ok") }))
	ctx := within(t)
	sent := 0
	rapid.Check(t, func(rt *rapid.T) {
		messages := rapid.SliceOfN(anyMessage(), 0, 12).Draw(rt, "messages")
		config := rapid.SampledFrom(configs).Draw(rt, "config")
		before, err := json.Marshal(messages)
		require.NoError(rt, err)

		err = send(ctx, model, llm.Options{}, config, messages)

		after, _ := json.Marshal(messages)
		require.Equal(rt, string(before), string(after), "rendering changed its input")
		if err != nil {
			require.ErrorContains(rt, err, "the conversation has no message")
			for _, m := range messages {
				require.True(rt, isSilent(m), "%+v was not sent", m)
			}
			return
		}
		sent++
		request := model.Requests()[sent-1]
		provider := config.ProviderID
		if config.Model != "" {
			provider = "vllm"
		}
		require.Empty(rt, ordering.Check(provider, request.Body))
		all := strings.Join(lines(request.Messages), "\n")
		for _, m := range messages {
			require.Contains(rt, all, m.Content, "a text is missing")
		}
		if config.TextOnly || config.ProviderID == "deepseek" {
			require.NotContains(rt, string(request.Body), "image_url")
		}
	})
}

func isSilent(m reducer.Message) bool {
	return strings.TrimSpace(m.Content) == "" && len(m.Attachments) == 0 && len(m.ToolCalls) == 0 && m.Role != reducer.RoleTool
}

func anyMessage() *rapid.Generator[reducer.Message] {
	text := rapid.SampledFrom([]string{"", " ", "alpha", "beta", "gamma"})
	id := rapid.SampledFrom([]string{"c1", "c2", "c.3", strings.Repeat("long", 20)})
	attachment := rapid.SampledFrom([]reducer.Attachment{
		blob("image/png", "a.png", []byte("png")), link("image/png", "https://x.example/a.png"),
		blob("text/plain", "a.txt", []byte("text")), file("audio/mpeg", "a.mp3"), blob("text/plain", "", []byte{0xff}), ref("image/png", "a.png", "cat"),
	})
	return rapid.Custom(func(t *rapid.T) reducer.Message {
		m := reducer.Message{
			Role:    rapid.SampledFrom([]reducer.Role{reducer.RoleSystem, reducer.RoleUser, reducer.RoleAssistant, reducer.RoleTool}).Draw(t, "role"),
			Content: text.Draw(t, "content"),
		}
		switch m.Role {
		case reducer.RoleUser:
			m.Attachments = rapid.SliceOfN(attachment, 0, 2).Draw(t, "attachments")
		case reducer.RoleTool:
			m.ToolCallID = id.Draw(t, "call")
		case reducer.RoleAssistant:
			for _, callID := range rapid.SliceOfN(id, 0, 3).Draw(t, "calls") {
				arguments := rapid.SampledFrom([]string{"", "{}", "null", `"x"`, "broken"}).Draw(t, "arguments")
				m.ToolCalls = append(m.ToolCalls, reducer.ToolCall{ID: callID, Name: "a tool", Arguments: arguments})
			}
		}
		return m
	})
}
