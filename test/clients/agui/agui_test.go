// Package agui_test drives agents of @ag-ui/client in Node, against a worker, a gateway and a scripted model.
package agui_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/agui"
	"github.com/seed-9ed7edd4/chronicle/internal/npmtest"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/tool"
	"github.com/seed-9ed7edd4/chronicle/worker/chronicletest"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// stack is what agents talk to.
type stack struct {
	t      *testing.T
	source string // the folder of the scripts
	url    string
	client *client.Client
	script *npmtest.Script
}

// command is a run of an agent. See drive.mjs.
type command struct {
	Agent   string           `json:"agent"`
	Thread  string           `json:"thread"`
	Add     []message        `json:"add,omitempty"`
	Tools   []map[string]any `json:"tools,omitempty"`
	Context []map[string]any `json:"context,omitempty"`
	Resume  []map[string]any `json:"resume,omitempty"`
	AbortAt string           `json:"abortAt,omitempty"`
}

type message struct {
	ID         string          `json:"id"`
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content,omitempty"`
	ToolCallID string          `json:"toolCallId,omitempty"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"toolCalls,omitempty"`
}

func user(id, text string) message {
	content, _ := json.Marshal(text)
	return message{ID: id, Role: "user", Content: content}
}

type result struct {
	Agent    string   `json:"agent"`
	Events   []string `json:"events"`
	Error    string   `json:"error"`
	Finished struct {
		Outcome struct {
			Type    string   `json:"type"`
			Pending []string `json:"pendingToolCallIds"`
		} `json:"outcome"`
		Usage []map[string]any `json:"usage"`
	} `json:"finished"`
	Interrupts []struct {
		ID         string `json:"id"`
		ToolCallID string `json:"toolCallId"`
	} `json:"interrupts"`
	Messages []message `json:"messages"`
}

// texts renders the messages of an agent, "role: text".
func (r result) texts() []string {
	texts := []string{}
	for _, m := range r.Messages {
		text := m.Role + ":"
		var content string
		if json.Unmarshal(m.Content, &content); content != "" {
			text += " " + content
		}
		for _, c := range m.ToolCalls {
			text += " " + c.Function.Name + c.Function.Arguments
		}
		texts = append(texts, text)
	}
	return texts
}

func start(t *testing.T, tools *tool.Set, answer func(llmtest.Request) llmtest.Step) *stack {
	t.Helper()
	source := npmtest.Folder(t, "../../..", "agui", ".")
	server := chronicletest.Start(t, llmtest.Func(answer))
	conn, err := contexts.Connect(t.Context(), server.Config())
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	options := contexts.Options{Models: llm.New(llm.Options{Defaults: server.Defaults()})}
	if tools != nil {
		options.Tools = tools
	}
	worker, err := conn.NewWorker(options)
	require.NoError(t, err)
	require.NoError(t, worker.Start())
	t.Cleanup(worker.Stop)
	g := gateway.New(conn.Client(), gateway.Options{Protocols: []gateway.Protocol{agui.Protocol()}})
	web := httptest.NewServer(g)
	t.Cleanup(web.Close)
	t.Cleanup(g.Close)

	return &stack{t, source, web.URL, conn.Client(), npmtest.Start(t, source, "drive.mjs", web.URL)}
}

func (s *stack) begin(c command) { s.script.Send(c) }

func (s *stack) end() (r result) {
	s.t.Helper()
	s.script.Receive(&r)
	return r
}

func (s *stack) run(c command) result {
	s.t.Helper()
	s.begin(c)
	return s.end()
}

func (s *stack) post(path string, body any) (status int, text string) {
	s.t.Helper()
	data, err := json.Marshal(body)
	require.NoError(s.t, err)
	response, err := http.Post(s.url+path, "application/json", bytes.NewReader(data))
	require.NoError(s.t, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	require.NoError(s.t, err)
	return response.StatusCode, string(answer)
}

// awaitInGateway waits until the gateway has read an event.
func (s *stack) awaitInGateway(thread, text string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+"/contexts/"+thread+"/events", nil)
	require.NoError(s.t, err)
	request.Header.Set("Accept", "text/event-stream")
	response, err := http.DefaultClient.Do(request)
	require.NoError(s.t, err)
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if strings.Contains(lines.Text(), text) {
			return
		}
	}
	s.t.Fatal("the gateway has no ", text)
}

// requireSameForAll checks that an agent has the same messages as one that joins now.
func (s *stack) requireSameForAll(thread string, r result) {
	s.t.Helper()
	joined := s.run(command{Agent: "reader of " + thread + r.Agent, Thread: thread})
	require.Empty(s.t, joined.Error)
	texts := []string{}
	for _, text := range r.texts() {
		if !strings.HasPrefix(text, "activity:") {
			texts = append(texts, text)
		}
	}
	require.Equal(s.t, joined.texts(), texts)
}

func TestARunStreamsReasoningAndText(t *testing.T) {
	s := start(t, nil, func(r llmtest.Request) llmtest.Step {
		return llmtest.Answer("You said ", r.LastUser()).Thinking("Let me", " see.").Usage(10, 5)
	})
	r := s.run(command{Agent: "a", Thread: "demo", Add: []message{user("m1", "Hello")}})
	require.Empty(t, r.Error)
	require.Equal(t, []string{"user: Hello", "reasoning: Let me see.", "assistant: You said Hello"}, r.texts())
	require.Equal(t, "success", r.Finished.Outcome.Type)
	require.EqualValues(t, 15, r.Finished.Usage[0]["totalTokens"])
	require.Equal(t, "RUN_STARTED", r.Events[0])

	r = s.run(command{Agent: "a", Thread: "demo", Add: []message{user("m2", "Bye")}})
	require.Empty(t, r.Error)
	require.Equal(t, "assistant: You said Bye", r.texts()[5])
	require.NotContains(t, r.Events, "MESSAGES_SNAPSHOT", "the agent has all messages")
	s.requireSameForAll("demo", r)
	t.Run("a repeated run asks nothing again", func(t *testing.T) {
		again := s.run(command{Agent: "b", Thread: "demo", Add: []message{user("m1", "Hello")}})
		require.Empty(t, again.Error)
		require.Equal(t, r.texts(), again.texts())
	})
}

func TestTheDocumentedProgram(t *testing.T) {
	s := start(t, nil, func(r llmtest.Request) llmtest.Step { return llmtest.Answer("You said ", r.LastUser()) })
	docs, err := os.ReadFile("../../../docs/clients.md")
	require.NoError(t, err)
	program := regexp.MustCompile("(?s)```mjs\n(import \\{ HttpAgent.*?)```").FindSubmatch(docs)
	require.NotNil(t, program)
	file := filepath.Join(s.source, "documented.mjs")
	require.NoError(t, os.WriteFile(file, bytes.ReplaceAll(program[1], []byte("http://localhost:8080"), []byte(s.url)), 0o644))
	out, err := exec.CommandContext(t.Context(), "node", file).CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, "You said Hello", string(out))
}

func TestARunResumesAnAnswer(t *testing.T) {
	gate := llmtest.NewGate()
	s := start(t, nil, func(llmtest.Request) llmtest.Step { return llmtest.Answer("one", " two", " three").HoldAfter(1, gate) })
	cut := s.run(command{Agent: "a", Thread: "demo", Add: []message{user("m1", "Count")}, AbortAt: "TEXT_MESSAGE_CONTENT"})
	require.Equal(t, []string{"user: Count", "assistant: one"}, cut.texts())

	s.begin(command{Agent: "a", Thread: "demo"})
	s.begin(command{Agent: "b", Thread: "demo"})
	gate.Open()
	for range 2 {
		r := s.end()
		require.Empty(t, r.Error)
		require.Equal(t, []string{"user: Count", "assistant: one two three"}, r.texts(), r.Agent)
	}
}

func TestAFailedAttemptLeavesNoText(t *testing.T) {
	count := 0
	s := start(t, nil, func(llmtest.Request) llmtest.Step {
		if count++; count == 1 {
			whole := llmtest.Answer("the first", " attempt", " fails")
			return whole.CutAt(whole.Len() / 2)
		}
		return llmtest.Answer("the second", " one answers")
	})
	r := s.run(command{Agent: "a", Thread: "demo", Add: []message{user("m1", "Try")}})
	require.Empty(t, r.Error)
	require.Equal(t, []string{"user: Try", "assistant: the second one answers"}, r.texts())
	s.requireSameForAll("demo", r)
}

func TestAFailedRequestIsARunError(t *testing.T) {
	s := start(t, nil, func(r llmtest.Request) llmtest.Step {
		if r.LastUser() == "Again" {
			return llmtest.Answer("Fine")
		}
		return llmtest.Error(401, "invalid_api_key", "who are you")
	})
	r := s.run(command{Agent: "a", Thread: "demo", Add: []message{user("m1", "Hello")}})
	require.Contains(t, r.Events, "RUN_ERROR")
	r = s.run(command{Agent: "a", Thread: "demo", Add: []message{user("m2", "Again")}})
	require.Empty(t, r.Error)
	require.Equal(t, []string{"user: Hello", "user: Again", "assistant: Fine"}, r.texts())
}

func TestToolsOfWorkersAndClients(t *testing.T) {
	type word struct {
		Word string `json:"word"`
	}
	lookUp := func(ctx context.Context, w word) (string, error) {
		tool.Progress(ctx, "page 1 of 2")
		return "a small " + w.Word, nil
	}
	tools, err := tool.NewSet(tool.Options{}, tool.Must(tool.New("look_up", "Look a word up", lookUp)))
	require.NoError(t, err)
	s := start(t, tools, func(r llmtest.Request) llmtest.Step {
		if results := r.Results(); len(results) > 0 {
			return llmtest.Answer("Result: ", strings.Join(results, ", "))
		}
		call := map[string]llmtest.Call{
			"look": {ID: "call_1", Name: "look_up", Arguments: `{"word":"cat"}`},
			"ask":  {ID: "call_2", Name: "ask_user", Arguments: `{"question":"Blue?"}`},
		}[r.LastUser()]
		return llmtest.Calls(call)
	})
	set := func(thread string, body event.SetTools) {
		c, err := s.client.Open(thread)
		require.NoError(t, err)
		_, err = c.Send(t.Context(), event.New(body))
		require.NoError(t, err)
	}

	t.Run("of a worker", func(t *testing.T) {
		set("worker", event.SetTools{Tools: event.ToolList{{Pattern: "look_up"}}})
		r := s.run(command{Agent: "w", Thread: "worker", Add: []message{user("m1", "look")}})
		require.Empty(t, r.Error)
		require.Contains(t, r.texts(), `assistant: look_up{"word":"cat"}`)
		require.Contains(t, r.texts(), "tool: a small cat")
		require.Contains(t, r.texts(), "assistant: Result: a small cat")
		s.requireSameForAll("worker", r)
	})

	ask := map[string]any{"name": "ask_user", "description": "Ask", "parameters": map[string]any{"type": "object"}}
	t.Run("of a client", func(t *testing.T) {
		r := s.run(command{Agent: "c", Thread: "client", Add: []message{user("m1", "ask")}, Tools: []map[string]any{ask}})
		require.Empty(t, r.Error)
		require.Equal(t, []string{"call_2"}, r.Finished.Outcome.Pending)
		answer := message{ID: "r1", Role: "tool", ToolCallID: "call_2", Content: json.RawMessage(`"Yes"`)}
		r = s.run(command{Agent: "c", Thread: "client", Add: []message{answer}, Tools: []map[string]any{ask}})
		require.Empty(t, r.Error)
		require.Equal(t, []string{"user: ask", `assistant: ask_user{"question":"Blue?"}`, "tool: Yes", "assistant: Result: Yes"}, r.texts())
		s.requireSameForAll("client", r)
	})

	t.Run("of a client, which needs an approval", func(t *testing.T) {
		set("careful", event.SetTools{Tools: event.ToolList{{Name: "ask_user", Parameters: event.Object(`{}`)}}, Approve: event.ApprovalRules{{Tool: "ask_user"}}})
		r := s.run(command{Agent: "d", Thread: "careful", Add: []message{user("m1", "ask")}, Tools: []map[string]any{ask}})
		require.Empty(t, r.Error)
		require.Equal(t, "interrupt", r.Finished.Outcome.Type)
		require.Empty(t, r.Finished.Outcome.Pending)
		approved := map[string]any{"interruptId": r.Interrupts[0].ID, "status": "resolved", "payload": map[string]any{"approved": true}}
		r = s.run(command{Agent: "d", Thread: "careful", Resume: []map[string]any{approved}, Tools: []map[string]any{ask}})
		require.Empty(t, r.Error)
		require.Equal(t, []string{"call_2"}, r.Finished.Outcome.Pending)
		answer := message{ID: "r1", Role: "tool", ToolCallID: "call_2", Content: json.RawMessage(`"Yes"`)}
		r = s.run(command{Agent: "d", Thread: "careful", Add: []message{answer}, Tools: []map[string]any{ask}})
		require.Empty(t, r.Error)
		require.Contains(t, r.texts(), "assistant: Result: Yes")
		s.requireSameForAll("careful", r)
	})

	for _, test := range []struct {
		name    string
		payload map[string]any
		status  string
		result  string
	}{
		{"approved", map[string]any{"approved": true}, "resolved", "tool: a small cat"},
		{"edited", map[string]any{"approved": true, "arguments": map[string]any{"word": "dog"}}, "resolved", "tool: a small dog"},
		{"denied", map[string]any{"approved": false, "reason": "not now"}, "resolved", "not now"},
		{"cancelled", nil, "cancelled", "cancelled"},
	} {
		t.Run(test.name, func(t *testing.T) {
			set(test.name, event.SetTools{Tools: event.ToolList{{Pattern: "look_up"}}, Approve: event.ApprovalRules{{Tool: "look_up"}}})
			r := s.run(command{Agent: test.name, Thread: test.name, Add: []message{user("m1", "look")}})
			require.Empty(t, r.Error)
			require.Equal(t, "interrupt", r.Finished.Outcome.Type)
			require.Len(t, r.Interrupts, 1)
			require.Equal(t, "call_1", r.Interrupts[0].ToolCallID)
			entry := map[string]any{"interruptId": r.Interrupts[0].ID, "status": test.status}
			if test.payload != nil {
				entry["payload"] = test.payload
			}
			r = s.run(command{Agent: test.name, Thread: test.name, Resume: []map[string]any{entry}})
			require.Empty(t, r.Error)
			require.Contains(t, strings.Join(r.texts(), "\n"), test.result)
			require.Empty(t, r.Interrupts)
			s.requireSameForAll(test.name, r)
		})
	}
}

// The agent runs only with an answer to its interrupt.
func TestAnotherClientDecidesFirst(t *testing.T) {
	gate := llmtest.NewGate()
	lookUp := func(context.Context, struct{}) (string, error) { return "found", nil }
	tools, err := tool.NewSet(tool.Options{}, tool.Must(tool.New("look_up", "Look a word up", lookUp)))
	require.NoError(t, err)
	s := start(t, tools, func(r llmtest.Request) llmtest.Step {
		if results := r.Results(); len(results) > 0 {
			return llmtest.Answer("Result: ", strings.Join(results, ", ")).HoldAfter(0, gate)
		}
		return llmtest.Answer("I look.").Calls(llmtest.Call{ID: "call_1", Name: "look_up"})
	})
	c, err := s.client.Open("demo")
	require.NoError(t, err)
	_, err = c.Send(t.Context(), event.New(event.SetTools{Tools: event.ToolList{{Pattern: "look_up"}}, Approve: event.ApprovalRules{{Tool: "look_up"}}}))
	require.NoError(t, err)
	r := s.run(command{Agent: "a", Thread: "demo", Add: []message{user("m1", "look")}})
	require.Len(t, r.Interrupts, 1)
	_, err = c.Send(t.Context(), event.New(event.ApprovalDecided{Decision: event.Deny, Reason: "not now"}))
	require.NoError(t, err)
	s.awaitInGateway("demo", `"ToolResult`)
	s.begin(command{Agent: "a", Thread: "demo", Resume: []map[string]any{
		{"interruptId": r.Interrupts[0].ID, "status": "resolved", "payload": map[string]any{"approved": true}},
	}})
	gate.Open()
	r = s.end()
	require.Empty(t, r.Error)
	require.Empty(t, r.Interrupts)
	require.Equal(t, []string{"user: look", "assistant: I look. look_up{}", "tool: denied: not now", "assistant: Result: denied: not now"}, r.texts())
	s.requireSameForAll("demo", r)
}

func TestAnotherClientSteersAndStopsARun(t *testing.T) {
	gate := llmtest.NewGate()
	defer gate.Open()
	s := start(t, nil, func(r llmtest.Request) llmtest.Step {
		if r.LastUser() == "Stop it" {
			return llmtest.Answer("Stopped.")
		}
		return llmtest.Answer("one", " two").HoldAfter(1, gate)
	})
	c, err := s.client.Open("demo")
	require.NoError(t, err)
	running := func() {
		t.Helper()
		for e, err := range c.Follow(t.Context(), client.FollowOptions{Deltas: true}) {
			require.NoError(t, err)
			if d, ok := e.Body.(event.TextDelta); ok && d.Delta != "" {
				return
			}
		}
	}
	s.begin(command{Agent: "a", Thread: "demo", Add: []message{user("m1", "Count")}})
	running()
	_, err = c.Send(t.Context(), event.New(event.UserMessage{Content: "Stop it"}))
	require.NoError(t, err)
	r := s.end()
	require.Empty(t, r.Error)
	require.Equal(t, []string{"user: Count", "assistant: one", "user: Stop it", "assistant: Stopped."}, r.texts())
	s.requireSameForAll("demo", r)

	s.begin(command{Agent: "a", Thread: "demo", Add: []message{user("m2", "Count")}})
	running()
	status, text := s.post("/ag-ui/threads/demo/stop", nil)
	require.Equal(t, http.StatusNoContent, status, text)
	r = s.end()
	require.Empty(t, r.Error)
	require.Equal(t, "cancelled", r.Finished.Outcome.Type)
	s.requireSameForAll("demo", r)
}

func TestBadInputHasTheShapeOfTheProtocol(t *testing.T) {
	s := start(t, nil, func(llmtest.Request) llmtest.Step { return llmtest.Answer("Hi") })
	require.Empty(t, s.run(command{Agent: "a", Thread: "demo", Add: []message{user("m1", "Hello")}}).Error)
	input := func(change func(map[string]any)) map[string]any {
		body := map[string]any{
			"threadId": "demo", "runId": "r", "messages": []any{}, "tools": []any{}, "context": []any{}, "state": map[string]any{}, "forwardedProps": map[string]any{},
		}
		change(body)
		return body
	}
	for _, test := range []struct {
		name   string
		body   any
		status int
		text   string
	}{
		{"no object", 7, 400, "wrong type"},
		{"no thread", input(func(b map[string]any) { delete(b, "threadId") }), 400, "threadId is missing"},
		{"no run", input(func(b map[string]any) { delete(b, "runId") }), 400, "runId is missing"},
		{"an invalid name", input(func(b map[string]any) { b["threadId"] = "a b" }), 400, "a name has"},
		{"a parent", input(func(b map[string]any) { b["parentRunId"] = "r0" }), 400, "no parents"},
		{"a state", input(func(b map[string]any) { b["state"] = map[string]any{"a": 1} }), 400, "no state"},
		{"another text", input(func(b map[string]any) { b["messages"] = []message{user("m1", "Bye")} }), 409, "message m1 differs"},
		{"an insertion", input(func(b map[string]any) { b["messages"] = []message{user("m0", "Bye"), user("m1", "Hello")} }), 409, "message m0 precedes message m1"},
		{"a foreign call", input(func(b map[string]any) { b["messages"] = []message{{ID: "r", Role: "tool", ToolCallID: "x"}} }), 409, "does not wait"},
		{"a foreign interrupt", input(func(b map[string]any) {
			b["resume"] = []any{map[string]any{"interruptId": "x", "status": "resolved", "payload": map[string]any{"approved": true}}}
		}), 409, "waits for no approval"},
		{"an unknown role", input(func(b map[string]any) { b["messages"] = []any{map[string]any{"id": "x", "role": "judge"}} }), 400, "message 0 has the role"},
		{"a missing context", input(func(b map[string]any) { b["threadId"] = "missing" }), 400, "does not exist"},
		{"a file of a provider", input(func(b map[string]any) {
			b["messages"] = []any{map[string]any{"id": "x", "role": "user", "content": []any{map[string]any{"type": "image", "source": map[string]any{"type": "file", "value": "f"}}}}}
		}), 400, "not supported"},
	} {
		t.Run(test.name, func(t *testing.T) {
			status, text := s.post("/ag-ui/run", test.body)
			require.Equal(t, test.status, status, text)
			require.Contains(t, text, test.text)
			require.Contains(t, text, `"type":"RUN_ERROR"`)
		})
	}
	r := s.run(command{Agent: "a", Thread: "demo", Add: []message{user("m2", "Hello again")}})
	require.Empty(t, r.Error, "the context goes on")
}
