// Package aisdk_test drives pages with the AI SDK in Chromium, against a worker, a gateway and a scripted model.
package aisdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/aisdk"
	"github.com/seed-9ed7edd4/chronicle/internal/browsertest"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	aisdkclient "github.com/seed-9ed7edd4/chronicle/test/clients/aisdk"
	"github.com/seed-9ed7edd4/chronicle/tool"
	"github.com/seed-9ed7edd4/chronicle/worker/chronicletest"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

func TestMain(m *testing.M) {
	defer browsertest.Stop()
	m.Run()
}

const testTimeout = time.Minute // only detects hangs

// stack is what a page talks to.
type stack struct {
	sdk     string // major version of the SDK
	url     string
	client  *client.Client
	model   *model
	restart func() // of the worker
}

// model answers by the newest message of the user.
type model struct {
	mu      sync.Mutex
	gates   map[string]*llmtest.Gate // by message; an answer to it waits after its first token
	count   map[string]int           // of answers, by message
	lookUps chan struct{}            // each completes one
}

func (m *model) gate(message string) *llmtest.Gate {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gates[message] == nil {
		m.gates[message] = llmtest.NewGate()
	}
	return m.gates[message]
}

func (m *model) answer(r llmtest.Request) llmtest.Step {
	text := r.LastUser()
	if results := r.Results(); len(results) > 0 {
		return llmtest.Answer("Result: ", strings.Join(results, ", "))
	}
	call := func(id, name, arguments string) llmtest.Step {
		return llmtest.Calls(llmtest.Call{ID: id, Name: name, Arguments: arguments})
	}
	switch word, _, _ := strings.Cut(text, " "); word {
	case "look":
		return call("call_look", "look_up", `{"word":"cat"}`)
	case "ask":
		return call("call_ask", "ask_user", `{"question":"Blue?"}`)
	case "write":
		return call("call_write", "write_down", `{"word":"cat"}`)
	case "slow":
		return llmtest.Answer("one", " two").HoldAfter(1, m.gate(text))
	case "think":
		return llmtest.Answer("Done.").Thinking("Let me", " see.").Usage(10, 5)
	case "fail":
		return llmtest.Error(401, "invalid_api_key", "who are you")
	case "cut":
		if m.counted(text) == 1 {
			whole := llmtest.Answer("the first", " attempt", " breaks", " off", " before", " its", " end")
			return whole.HoldAfter(2, m.gate(text)).CutAt(whole.Len() - llmtest.Answer().Len())
		}
		return llmtest.Answer("the second", " one answers")
	}
	return llmtest.Answer(fmt.Sprintf("%d: ", m.counted(text)), text)
}

func (m *model) counted(text string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count[text]++
	return m.count[text]
}

func start(t *testing.T, sdk string) *stack {
	t.Helper()
	browsertest.Start(t) // skips without Chromium
	s := &stack{sdk: sdk, model: &model{
		gates: map[string]*llmtest.Gate{}, count: map[string]int{}, lookUps: make(chan struct{}),
	}}
	dist := aisdkclient.Build(t, "../../..", sdk)
	server := chronicletest.Start(t, llmtest.Func(s.model.answer))
	conn, err := contexts.Connect(t.Context(), server.Config())
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	type word struct {
		Word string `json:"word"`
	}
	lookUp := func(ctx context.Context, w word) (string, error) {
		for n := 1; ; n++ {
			tool.Progress(ctx, fmt.Sprintf("page %d", n)) // a report before the page knows the call is lost
			select {
			case <-s.model.lookUps:
				return "a small " + w.Word, nil
			case <-ctx.Done():
				return "", ctx.Err()
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	writeDown := func(_ context.Context, w word) (string, error) { return "wrote " + w.Word, nil }
	tools, err := tool.NewSet(tool.Options{}, tool.Must(tool.New("look_up", "Look a word up", lookUp)), tool.Must(tool.New("write_down", "Write", writeDown)))
	require.NoError(t, err)
	stop := func() {}
	s.restart = func() {
		stop()
		worker, err := conn.NewWorker(contexts.Options{Models: llm.New(llm.Options{Defaults: server.Defaults()}), Tools: tools})
		require.NoError(t, err)
		require.NoError(t, worker.Start())
		stop = worker.Stop
	}
	s.restart()
	t.Cleanup(func() { stop() })
	s.client = conn.Client()
	g := gateway.New(s.client, gateway.Options{Page: http.FileServer(http.Dir(dist)), Protocols: []gateway.Protocol{aisdk.Protocol()}})
	web := httptest.NewServer(g)
	t.Cleanup(web.Close)
	t.Cleanup(g.Close)
	s.url = web.URL
	return s
}

// page is a tab with a chat.
type page struct {
	*browsertest.Tab
	t *testing.T
}

// api is the URL of the protocol.
func (s *stack) api() string {
	if s.sdk == "6" {
		return "/api/v6/chat"
	}
	return "/api/chat"
}

// post returns the status and the whole body of the response.
func (s *stack) post(t *testing.T, body string) (status int, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+s.api(), strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err, body)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	require.NoError(t, err, "%s: %s", body, data)
	return response.StatusCode, string(data)
}

func (s *stack) open(t *testing.T, chat string) *page {
	t.Helper()
	p := &page{browsertest.Start(t).Open(s.url + "/#" + chat), t}
	p.Await("window.chat")
	return p
}

// do starts a method of useChat.
func (p *page) do(call string, arguments ...any) {
	p.t.Helper()
	p.Do("void chat." + fmt.Sprintf(call, arguments...))
}

func (p *page) say(text string) { p.do("sendMessage({ text: %q })", text) }

// awaitText waits for the text of the newest message.
func (p *page) awaitText(text, status string) {
	p.t.Helper()
	p.Await(fmt.Sprintf(`chat.status === %q && %s === %q`, status, textOfLast, text))
}

const textOfLast = `chat.messages.at(-1).parts.filter((p) => p.type === "text").map((p) => p.text).join("|")`

func toJSON(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	require.NoError(t, err)
	return string(data)
}

// part returns the newest part of a type.
func (p *page) part(kind string) (part map[string]any) {
	p.t.Helper()
	p.Eval(fmt.Sprintf(`chat.messages.at(-1).parts.findLast((p) => p.type === %q)`, kind), &part)
	return part
}

func (p *page) awaitPart(kind, state string) {
	p.t.Helper()
	p.Await(fmt.Sprintf(`chat.messages.at(-1).parts.some((p) => p.type === %q && p.state === %q)`, kind, state))
}

// messages returns the messages as a page shows them. Parts of version 7 have more fields.
func (p *page) messages() (messages []map[string]any) {
	p.t.Helper()
	p.Eval(`chat.messages`, &messages)
	for _, m := range messages {
		for _, part := range m["parts"].([]any) {
			part := part.(map[string]any)
			delete(part, "id")
			if m["role"] == "user" {
				delete(part, "state")
			}
		}
		if m["metadata"] == nil {
			delete(m, "metadata")
		}
	}
	return messages
}

func (s *stack) context(t *testing.T, name string, events ...event.Body) *client.Context {
	t.Helper()
	c, err := s.client.Open(name)
	require.NoError(t, err)
	for _, body := range events {
		_, err := c.Send(t.Context(), event.New(body))
		require.NoError(t, err)
	}
	return c
}

func TestUseChat(t *testing.T) {
	for _, sdk := range []string{"7", "6"} {
		t.Run("version "+sdk, func(t *testing.T) {
			s := start(t, sdk)
			for _, story := range stories {
				t.Run(story.name, func(t *testing.T) { story.tell(t, s) })
			}
		})
	}
}

var stories = []struct {
	name string
	tell func(t *testing.T, s *stack)
}{
	{"an answer is streamed and survives a reload", func(t *testing.T, s *stack) {
		p := s.open(t, "text")
		p.say("Hello")
		p.awaitText("1: Hello", "ready")
		var usage map[string]any
		p.Eval(`chat.messages.at(-1).metadata.usage`, &usage)
		require.Equal(t, []any{7.0, 2.0}, []any{usage["inputTokens"], usage["outputTokens"]})
		before := p.messages()
		require.Equal(t, "text:r0001", before[1]["id"])
		p.Reload()
		p.Await("window.chat")
		require.Equal(t, before, p.messages())
		p.say("More")
		p.awaitText("1: More", "ready")
		require.Len(t, p.messages(), 4)
	}},
	{"reasoning is a part of its own", func(t *testing.T, s *stack) {
		p := s.open(t, "reasoning")
		p.say("think")
		p.awaitText("Done.", "ready")
		require.Equal(t, "Let me see.", p.part("reasoning")["text"])
	}},
	{"a tool of a worker reports its progress and its result", func(t *testing.T, s *stack) {
		s.context(t, "tool", event.SetTools{Tools: event.ToolList{{Pattern: "look_up"}}})
		p := s.open(t, "tool")
		p.say("look")
		p.Await(`chat.messages.at(-1).parts.some((p) => p.type === "tool-look_up" && p.preliminary && p.output.startsWith("page "))`)
		s.model.lookUps <- struct{}{}
		p.awaitText("Result: a small cat", "ready")
		require.Equal(t, map[string]any{"word": "cat"}, p.part("tool-look_up")["input"])
		require.Equal(t, "a small cat", p.part("tool-look_up")["output"])
	}},
	{"the page executes its tools", func(t *testing.T, s *stack) {
		s.context(t, "client", event.SetTools{Tools: event.ToolList{{Name: "ask_user"}}})
		p := s.open(t, "client")
		p.say("ask")
		p.awaitPart("tool-ask_user", "input-available")
		p.Await(`chat.status === "ready"`)
		var calls []map[string]any
		p.Eval("window.calls", &calls)
		require.Len(t, calls, 1)
		require.Equal(t, map[string]any{"question": "Blue?"}, calls[0]["input"])
		p.do(`addToolResult({ tool: "ask_user", toolCallId: %q, output: { answer: "yes" } })`, calls[0]["toolCallId"])
		p.awaitText(`Result: {"answer":"yes"}`, "ready")
		require.Len(t, p.messages(), 2)
	}},
	{"a call that waits for the page is offered again after a reload", func(t *testing.T, s *stack) {
		s.context(t, "client-reload", event.SetTools{Tools: event.ToolList{{Name: "ask_user"}}})
		p := s.open(t, "client-reload")
		p.say("ask")
		p.awaitPart("tool-ask_user", "input-available")
		p.Reload()
		p.Await(`window.chat?.status === "ready" && window.calls.length === 1`)
		p.do(`addToolOutput({ tool: "ask_user", toolCallId: window.calls[0].toolCallId, state: "output-error", errorText: "gone" })`)
		p.awaitText(`Result: gone`, "ready")
		require.Len(t, p.messages(), 2)
	}},
	{"the page approves and denies", func(t *testing.T, s *stack) {
		for chat, decision := range map[string]struct{ response, state, text string }{
			"approve": {`approved: true`, "output-available", "Result: wrote cat"},
			"deny":    {`approved: false, reason: "not today"`, "output-denied", `Result: denied: not today`},
		} {
			s.context(t, chat, event.SetTools{Tools: event.ToolList{{Pattern: "write_down"}}, Approve: event.ApprovalRules{{Tool: "write_down"}}})
			p := s.open(t, chat)
			p.say("write")
			p.awaitPart("tool-write_down", "approval-requested")
			p.Await(`chat.status === "ready"`)
			p.do(`addToolApprovalResponse({ id: chat.messages.at(-1).parts.find((p) => p.approval).approval.id, %s })`, decision.response)
			p.awaitText(decision.text, "ready")
			require.Equal(t, decision.state, p.part("tool-write_down")["state"])
		}
	}},
	{"a decision of another client reaches the page when it resumes", func(t *testing.T, s *stack) {
		c := s.context(t, "other", event.SetTools{Tools: event.ToolList{{Pattern: "write_down"}}, Approve: event.ApprovalRules{{Tool: "write_down"}}})
		p := s.open(t, "other")
		p.say("write")
		p.awaitPart("tool-write_down", "approval-requested")
		p.Await(`chat.status === "ready"`)
		_, err := c.Send(t.Context(), event.New(event.ApprovalDecided{Decision: event.Approve}))
		require.NoError(t, err)
		// The gateway may read the decision later than the sender knows that it is recorded.
		p.Await(`chat.status === "ready" && (` + textOfLast + ` === "Result: wrote cat" || void chat.resumeStream())`)
		require.Equal(t, "output-available", p.part("tool-write_down")["state"])
	}},
	{"a stop interrupts the answer, and the chat goes on", func(t *testing.T, s *stack) {
		p := s.open(t, "stop")
		p.say("slow stop")
		p.awaitText("one", "streaming")
		p.Do(`await fetch(new URL("api/chat/stop/stop", location.href), { method: "POST" })`)
		p.awaitText("one", "ready")
		var reason string
		p.Eval("chat.messages.at(-1).metadata.finishReason", &reason)
		require.Equal(t, "interrupted", reason)
		p.Do(`await fetch(new URL("api/chat/stop/stop", location.href), { method: "POST" })`)
		p.say("Hello again")
		p.awaitText("1: Hello again", "ready")
	}},
	{"a message interrupts the answer", func(t *testing.T, s *stack) {
		p := s.open(t, "interrupt")
		p.say("slow interrupt")
		p.awaitText("one", "streaming")
		p.say("At once")
		p.awaitText("1: At once", "ready")
		p.Await(`chat.messages.every((m) => m.role === "user" || m.metadata.finishReason)`) // either response may end last
		before := p.messages()
		require.Len(t, before, 4)
		p.Reload()
		p.Await("window.chat")
		require.Equal(t, before, p.messages())
	}},
	{"a message that waits for the answer is answered next", func(t *testing.T, s *stack) {
		s.context(t, "queue", event.SetDeliveryPolicy{Policy: event.PolicyQueue})
		p := s.open(t, "queue")
		p.say("slow queue")
		p.awaitText("one", "streaming")
		p.say("Then this")
		p.Await(`chat.messages.length === 3`)
		s.model.gate("slow queue").Open()
		p.awaitText("1: Then this", "ready")
		p.Await(`chat.messages.every((m) => m.role === "user" || m.metadata.finishReason)`) // either response may end last
		before := p.messages()
		require.Len(t, before, 4)
		p.Reload()
		p.Await("window.chat")
		require.Equal(t, before, p.messages())
	}},
	{"a reload also resumes the answers that wait", func(t *testing.T, s *stack) {
		c := s.context(t, "waits", event.SetDeliveryPolicy{Policy: event.PolicyQueue})
		p := s.open(t, "waits")
		p.say("slow waits")
		p.awaitText("one", "streaming")
		_, err := c.Send(t.Context(), event.New(event.UserMessage{Content: "And this"}))
		require.NoError(t, err)
		p.Reload()
		p.Await(`window.chat?.status === "streaming" && chat.messages.length === 3`)
		s.model.gate("slow waits").Open()
		p.awaitText("1: And this", "ready")
		before := p.messages()
		require.Len(t, before, 4)
		p.Reload()
		p.Await("window.chat")
		require.Equal(t, before, p.messages())
	}},
	{"a disconnect is no stop", func(t *testing.T, s *stack) {
		p := s.open(t, "disconnect")
		p.say("slow disconnect")
		p.awaitText("one", "streaming")
		p.do("stop()")
		p.awaitText("one", "ready")
		s.model.gate("slow disconnect").Open()
		p.do("resumeStream()")
		p.awaitText("one two", "ready")
	}},
	{"a reload resumes the answer", func(t *testing.T, s *stack) {
		p := s.open(t, "reload")
		p.say("slow reload")
		p.awaitText("one", "streaming")
		p.Reload()
		p.Await("window.chat")
		p.awaitText("one", "streaming")
		s.model.gate("slow reload").Open()
		p.awaitText("one two", "ready")
		require.Len(t, p.messages(), 2)
	}},
	{"a page that loads while the answer ends resumes it, too", func(t *testing.T, s *stack) {
		p := s.open(t, "ending")
		p.say("slow ending")
		p.awaitText("one", "streaming")
		var loaded []any
		p.Eval(fmt.Sprintf(`fetch("%s/ending/messages").then((response) => response.json())`, s.api()), &loaded)
		s.model.gate("slow ending").Open()
		p.awaitText("one two", "ready")
		p.Do(fmt.Sprintf("chat.setMessages(%s)", toJSON(t, loaded))) // as if it had resumed later
		p.do("resumeStream()")
		p.awaitText("one two", "ready")
		require.Len(t, p.messages(), 2)
	}},
	{"two tabs stream one answer", func(t *testing.T, s *stack) {
		first := s.open(t, "tabs")
		first.say("slow tabs")
		first.awaitText("one", "streaming")
		second := s.open(t, "tabs")
		second.awaitText("one", "streaming")
		s.model.gate("slow tabs").Open()
		first.awaitText("one two", "ready")
		second.awaitText("one two", "ready")
		require.Equal(t, first.messages(), second.messages())
	}},
	{"an error is an error of the SDK, and the chat goes on", func(t *testing.T, s *stack) {
		p := s.open(t, "error")
		p.say("fail")
		p.Await(`chat.status === "error" && chat.error.message.includes("who are you")`)
		p.say("After the error")
		p.awaitText("1: After the error", "ready")
	}},
	{"an attempt that breaks off is replaced", func(t *testing.T, s *stack) {
		p := s.open(t, "cut")
		p.say("cut")
		p.Await(textOfLast + `.startsWith("the first")`)
		s.model.gate("cut").Open()
		p.Await(`chat.status === "ready"`)
		p.Await(`chat.messages.at(-1).parts.filter((p) => p.type === "text" && !p.providerMetadata?.chronicle?.discarded).map((p) => p.text).join() === "the second one answers"`)
	}},
	{"another worker gives the answer of one that stops", func(t *testing.T, s *stack) {
		p := s.open(t, "restart")
		p.say("slow restart")
		p.awaitText("one", "streaming")
		s.restart()
		s.model.gate("slow restart").Open()
		p.Await(`chat.status === "ready"`)
		p.Await(`chat.messages.at(-1).parts.filter((p) => p.type === "text" && !p.providerMetadata?.chronicle?.discarded).map((p) => p.text).join() === "one two"`)
	}},
	{"another answer replaces the old one", func(t *testing.T, s *stack) {
		p := s.open(t, "again")
		p.say("Again")
		p.awaitText("1: Again", "ready")
		p.say("Later")
		p.awaitText("1: Later", "ready")
		p.do("regenerate({ messageId: chat.messages[1].id })")
		p.awaitText("2: Again", "ready")
		require.Len(t, p.messages(), 2)
		p.do("regenerate()")
		p.awaitText("3: Again", "ready")
		before := p.messages()
		p.Reload()
		p.Await("window.chat")
		require.Equal(t, before, p.messages())
	}},
	{"an edited message replaces the old one", func(t *testing.T, s *stack) {
		p := s.open(t, "edit")
		p.say("Edit")
		p.awaitText("1: Edit", "ready")
		p.say("Then")
		p.awaitText("1: Then", "ready")
		p.do(`sendMessage({ messageId: chat.messages[0].id, text: "Edited" })`)
		p.awaitText("1: Edited", "ready")
		before := p.messages()
		require.Len(t, before, 2)
		p.Reload()
		p.Await("window.chat")
		require.Equal(t, before, p.messages())
	}},
	{"files reach the model and the page", func(t *testing.T, s *stack) {
		p := s.open(t, "files")
		p.do(`sendMessage({ text: "See", files: [{ type: "file", mediaType: "text/plain", filename: "a.txt", url: "data:text/plain;base64," + btoa("the text of the file") }] })`)
		p.awaitText("1: See\n\n[Attached: a.txt]\nthe text of the file", "ready")
		p.Reload()
		p.Await("window.chat")
		p.Do(`window.loaded = await (await fetch(chat.messages[0].parts[0].url)).text()`)
		var loaded string
		p.Eval("window.loaded", &loaded)
		require.Equal(t, "the text of the file", loaded)
		p.do(`sendMessage({ messageId: chat.messages[0].id, text: "See it", files: [chat.messages[0].parts[0]] })`)
		p.awaitText("1: See it\n\n[Attached: a.txt]\nthe text of the file", "ready")
	}},
	{"bad input is an error of the SDK, and the chat goes on", func(t *testing.T, s *stack) {
		p := s.open(t, "bad")
		p.say("Before")
		p.awaitText("1: Before", "ready")
		const user = `{"id":"m","role":"user","parts":[{"type":"text","text":"Hi"}]}`
		for name, test := range map[string]struct {
			body   string
			status int
			want   string
		}{
			"no JSON":           {`{`, 400, "the body is invalid: unexpected EOF"},
			"an unknown field":  {`{"id":"bad","messages":[` + user + `],"tools":[]}`, 400, `unknown field "tools" (want id, messages or message, trigger and messageId`},
			"a wrong type":      {`{"id":7}`, 400, "the body is invalid: id has the wrong type, number"},
			"an invalid name":   {`{"id":"a b","messages":[` + user + `]}`, 400, "a name has 1-128 of A-Z"},
			"a foreign trigger": {`{"id":"bad","messages":[` + user + `],"trigger":"resume"}`, 400, `trigger: "resume" is not supported`},
			"no message":        {`{"id":"bad","messages":[]}`, 400, "messages: empty"},
			"no UI message":     {`{"id":"bad","messages":["Hi"]}`, 400, "the input is no UI message"},
			"a system message":  {`{"id":"bad","messages":[{"id":"m","role":"system","parts":[]}]}`, 400, "the system prompt is a SystemPromptEvent"},
			"no id":             {`{"id":"bad","messages":[{"role":"user","parts":[]}]}`, 400, "want an id of 1 to 119 bytes"},
			"a data part":       {`{"id":"bad","messages":[{"id":"m","role":"user","parts":[{"type":"data-x","data":1}]}]}`, 400, `part 1 of the input has the type "data-x" (want text or file)`},
			"a bad data URL":    {`{"id":"bad","messages":[{"id":"m","role":"user","parts":[{"type":"file","mediaType":"text/plain","filename":"a","url":"data:;base64,?"}]}]}`, 400, "malformed"},
			"a foreign file":    {`{"id":"bad","messages":[{"id":"m","role":"user","parts":[{"type":"file","mediaType":"text/plain","url":"/contexts/other/x"}]}]}`, 400, "is not one of the chat"},
			"a foreign edit":    {`{"id":"bad","messages":[` + user + `],"messageId":"foreign"}`, 400, `the chat has no message "foreign"`},
			"a foreign answer":  {`{"id":"bad","messages":[` + user + `],"messageId":"foreign","trigger":"regenerate-message"}`, 400, `the chat has no message "foreign"`},
			"an unknown chat":   {`{"id":"nobody","messages":[{"id":"m","role":"assistant","parts":[]}]}`, 404, "Context not found"},
			"a foreign message": {`{"id":"bad","messages":[{"id":"m","role":"assistant","parts":[]}]}`, 200, `"the chat has no answer m (load its messages again)","type":"error"}` + "\n\ndata: [DONE]\n\n"},
			"another history": {
				`{"id":"bad","messages":[{"id":"bad:r0001","role":"assistant","parts":[{"type":"step-start"},{"type":"text","text":"x"},{"type":"step-start"}]}]}`, 200,
				`"message bad:r0001: part 2 differs from the log`,
			},
			"a reused id": {`{"id":"bad","messages":[{"id":"` + p.messages()[0]["id"].(string) + `","role":"user","parts":[{"type":"text","text":"Other"}]}]}`, 422, "was used for other events"},
		} {
			status, body := s.post(t, test.body)
			require.Equal(t, test.status, status, name+": "+body)
			require.Contains(t, body, test.want, name)
		}
		for path, status := range map[string]int{"/nobody/stream": 204, "/nobody/messages": 200, "/bad/nowhere": 404, "/a%20b/stream": 400} {
			response, err := http.Get(s.url + s.api() + path)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			require.Equal(t, status, response.StatusCode, path)
		}
		p.say("After")
		p.awaitText("1: After", "ready")
		require.Len(t, p.messages(), 4)
	}},
	{"the newest message suffices", func(t *testing.T, s *stack) {
		const message = `{"id":"m1","role":"user","parts":[{"type":"text","text":"Alone"}]}`
		_, answer := s.post(t, `{"id":"alone","message":`+message+`}`)
		require.Contains(t, answer, `"delta":"1: Alone"`)
		status, problem := s.post(t, `{"id":"alone","message":`+message+`,"messages":[`+message+`]}`)
		require.Equal(t, 400, status, problem)
		require.Contains(t, problem, "message and messages exclude each other")
	}},
	{"a repeated request is recorded once", func(t *testing.T, s *stack) {
		const body = `{"id":"repeated","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"Repeat"}]}]}`
		s.post(t, body)
		_, again := s.post(t, body)
		require.Contains(t, again, `"delta":"1: Repeat"`)
		p := s.open(t, "repeated")
		require.Len(t, p.messages(), 2)
	}},
	{"the documented program works", func(t *testing.T, s *stack) {
		if s.sdk != "7" {
			t.Skip("its URL is that of version 7")
		}
		tab := browsertest.Start(t).Open(s.url + "/?documented#documented")
		tab.Type("input", "Hi there\r")
		tab.Await(`document.body.innerText.includes("assistant: 1: Hi there")`)
		tab.Type("input", "slow documented\r")
		tab.Click("button")
		tab.Await(`document.body.innerText.includes("assistant: one") && !document.querySelector("button")`)
	}},
}
