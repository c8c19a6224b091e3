// Package a2a_test drives clients of @a2a-js/sdk in Node, against a worker, two gateways and a scripted model.
package a2a_test

import (
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
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/a2a"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
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
	urls   []string
	client *client.Client
	script *npmtest.Script
	early  map[string]result // of calls that ended before they were awaited
}

// command is a call of a client. See drive.mjs.
type command struct {
	Call    string         `json:"call"`
	Gateway int            `json:"gateway"`
	Method  string         `json:"method"`
	Params  map[string]any `json:"params"`
	StopAt  string         `json:"stopAt,omitempty"`
}

type result struct {
	Call    string   `json:"call"`
	Task    task     `json:"task"`
	First   task     `json:"first"`
	Tasks   []task   `json:"tasks"`
	Updates []string `json:"updates"`
	Page    struct {
		NextPageToken string `json:"nextPageToken"`
		TotalSize     int    `json:"totalSize"`
	} `json:"page"`
	Card  map[string]any `json:"card"`
	Error struct {
		Name    string `json:"name"`
		Message string `json:"message"`
	} `json:"error"`
}

type task struct {
	ID        string `json:"id"`
	ContextID string `json:"contextId"`
	Status    struct {
		State   string   `json:"state"`
		Message *message `json:"message"`
	} `json:"status"`
	Artifacts []struct {
		Parts []part `json:"parts"`
	} `json:"artifacts"`
	History []message `json:"history"`
}

type message struct {
	MessageID string         `json:"messageId"`
	ContextID string         `json:"contextId,omitempty"`
	TaskID    string         `json:"taskId,omitempty"`
	Role      string         `json:"role"`
	Parts     []part         `json:"parts"`
	Metadata  map[string]any `json:"metadata,omitempty"`
}

type part struct {
	Text      string          `json:"text,omitempty"`
	Raw       []byte          `json:"raw,omitempty"`
	URL       string          `json:"url,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"`
	Filename  string          `json:"filename,omitempty"`
	MediaType string          `json:"mediaType,omitempty"`
}

func user(contextID, id, text string) message {
	return message{MessageID: id, ContextID: contextID, Role: "ROLE_USER", Parts: []part{{Text: text}}}
}

// texts are those of the artifacts.
func (t task) texts() (texts []string) {
	for _, a := range t.Artifacts {
		texts = append(texts, a.Parts[0].Text)
	}
	return texts
}

// said renders the history, "ROLE: text or data".
func (t task) said() (lines []string) {
	for _, m := range t.History {
		line := strings.TrimPrefix(m.Role, "ROLE_") + ":"
		for _, p := range m.Parts {
			line += " " + p.Text + p.URL + string(p.Data)
		}
		lines = append(lines, line)
	}
	return lines
}

func (t task) why() string {
	if t.Status.Message == nil {
		return ""
	}
	return t.Status.Message.Parts[0].Text
}

func start(t *testing.T, tools *tool.Set, answer func(llmtest.Request) llmtest.Step) *stack {
	t.Helper()
	source := npmtest.Folder(t, "../../..", "a2a", ".")
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
	s := &stack{t: t, client: conn.Client(), source: source, early: map[string]result{}}
	serve := func(o gateway.Options) string {
		g := gateway.New(conn.Client(), o)
		web := httptest.NewServer(g)
		t.Cleanup(web.Close)
		t.Cleanup(g.Close)
		return web.URL
	}
	for range 2 {
		s.urls = append(s.urls, serve(gateway.Options{Protocols: a2a.Protocols(a2a.Options{Version: "1.2.3"})}))
	}
	clients := slices.Clone(s.urls)
	closed := serve(gateway.Options{Auth: tokens{}, Protocols: a2a.Protocols(a2a.Options{IsBearer: true})})
	for _, token := range []string{"", "acme/write", "acme/read", "other/write"} {
		clients = append(clients, closed+"#"+token)
	}

	s.script = npmtest.Start(t, source, "drive.mjs", clients...)
	return s
}

// tokens are TENANT/ROLE.
type tokens struct{}

func (tokens) Authenticate(r *http.Request) (auth.Identity, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	tenant, role, _ := strings.Cut(token, "/")
	if !ok {
		return auth.Identity{}, auth.ErrUnauthenticated
	}
	return auth.Identity{Subject: "ann", Tenant: tenant, Roles: []auth.Role{auth.Role(role)}}, nil
}

func (s *stack) begin(c command) {
	s.t.Helper()
	s.script.Send(c)
}

func (s *stack) end(call string) (r result) {
	s.t.Helper()
	for {
		if r, ok := s.early[call]; ok {
			delete(s.early, call)
			return r
		}
		var r result
		s.script.Receive(&r)
		s.early[r.Call] = r
	}
}

func (s *stack) run(c command) result {
	s.t.Helper()
	s.begin(c)
	return s.end(c.Call)
}

// task runs a call that must succeed.
func (s *stack) task(method string, params map[string]any) task {
	s.t.Helper()
	r := s.run(command{Method: method, Params: params})
	require.Empty(s.t, r.Error)
	return r.Task
}

func (s *stack) send(m message) task {
	s.t.Helper()
	return s.task("sendMessage", map[string]any{"message": m})
}

func (s *stack) record(contextName string, body event.Body) {
	s.t.Helper()
	c, err := s.client.Open(contextName)
	require.NoError(s.t, err)
	_, err = c.Send(s.t.Context(), event.New(body))
	require.NoError(s.t, err)
}

// requireSameForAll checks that each gateway shows the same task.
func (s *stack) requireSameForAll(seen task) {
	s.t.Helper()
	for i := range s.urls {
		r := s.run(command{Gateway: i, Method: "getTask", Params: map[string]any{"id": seen.ID}})
		require.Empty(s.t, r.Error)
		require.Equal(s.t, r.Task, seen)
	}
}

func echo(r llmtest.Request) llmtest.Step { return llmtest.Answer("You said ", r.LastUser()) }

func TestAMessageBecomesATask(t *testing.T) {
	s := start(t, nil, echo)
	r := s.run(command{Method: "sendMessageStream", Params: map[string]any{"message": user("demo", "m1", "Hello")}})
	require.Empty(t, r.Error)
	require.Equal(t, "task", r.Updates[0])
	require.Equal(t, "TASK_STATE_COMPLETED", r.Task.Status.State)
	require.Equal(t, []string{"You said Hello"}, r.Task.texts())
	require.Equal(t, []string{"USER: Hello"}, r.Task.said())
	require.Equal(t, "demo", r.Task.ContextID)
	s.requireSameForAll(r.Task)
	require.Equal(t, r.Task, s.send(user("demo", "m1", "Hello")), "a repeated message is not sent again")

	next := s.send(user("demo", "m2", "Bye"))
	require.Equal(t, []string{"You said Bye"}, next.texts())
	own := s.send(user("", "m1", "Hello"))
	require.NotEqual(t, "demo", own.ContextID, "without a contextId, the task has a context of its own")
	require.Equal(t, own, s.send(user("", "m1", "Hello")))
}

func TestTheDocumentedProgram(t *testing.T) {
	s := start(t, nil, echo)
	docs, err := os.ReadFile("../../../docs/clients.md")
	require.NoError(t, err)
	program := regexp.MustCompile("(?s)```mjs\n(import \\{ ClientFactory.*?)```").FindSubmatch(docs)
	require.NotNil(t, program)
	file := filepath.Join(s.source, "documented.mjs")
	require.NoError(t, os.WriteFile(file, bytes.ReplaceAll(program[1], []byte("http://localhost:8080"), []byte(s.urls[0])), 0o644))
	out, err := exec.CommandContext(t.Context(), "node", file).CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, "You said Hello", string(out))
}

func TestTheCardSaysWhatIsSupported(t *testing.T) {
	s := start(t, nil, echo)
	card := s.run(command{Method: "getAgentCard"}).Card
	require.Equal(t, "1.2.3", card["version"])
	require.Equal(t, map[string]any{"streaming": true, "pushNotifications": false, "extendedAgentCard": false}, card["capabilities"])
	interfaces := card["supportedInterfaces"].([]any)
	require.Len(t, interfaces, 1)
	require.Equal(t, s.urls[0]+"/a2a/", interfaces[0].(map[string]any)["url"])
}

func TestTenantsAndRoles(t *testing.T) {
	s := start(t, nil, echo)
	const public, writer, reader, other = 2, 3, 4, 5
	card := s.run(command{Gateway: public, Method: "getAgentCard"}).Card
	require.Contains(t, card["securitySchemes"], "bearer")
	require.Len(t, card["securityRequirements"], 1)
	send := map[string]any{"message": user("demo", "m1", "Hello")}
	require.Contains(t, s.run(command{Gateway: public, Method: "sendMessage", Params: send}).Error.Message, "Authentication required")
	sent := s.run(command{Gateway: writer, Method: "sendMessage", Params: send})
	require.Equal(t, []string{"You said Hello"}, sent.Task.texts())
	get := map[string]any{"id": sent.Task.ID}
	require.Equal(t, sent.Task, s.run(command{Gateway: reader, Method: "getTask", Params: get}).Task)
	for method, params := range map[string]map[string]any{"sendMessage": send, "sendMessageStream": send, "cancelTask": get} {
		require.Contains(t, s.run(command{Gateway: reader, Method: method, Params: params}).Error.Message, "lacks the role", method)
	}
	for _, stranger := range []int{0, other} {
		require.Equal(t, "TaskNotFoundError", s.run(command{Gateway: stranger, Method: "getTask", Params: get}).Error.Name)
	}
	foreign := s.run(command{Gateway: other, Method: "sendMessage", Params: send})
	require.Equal(t, []string{"USER: Hello"}, foreign.Task.said(), "the context of another tenant is another one")
}

func TestAStreamResumesAtAnyGateway(t *testing.T) {
	gate := llmtest.NewGate()
	defer gate.Open()
	s := start(t, nil, func(llmtest.Request) llmtest.Step { return llmtest.Answer("one", " two", " three").HoldAfter(2, gate) })
	cut := s.run(command{Method: "sendMessageStream", Params: map[string]any{"message": user("demo", "m1", "Count")}, StopAt: " two"})
	require.Empty(t, cut.Error)
	require.Equal(t, "TASK_STATE_WORKING", cut.Task.Status.State)
	require.Equal(t, []string{"one two"}, cut.Task.texts())

	subscribe := func(call string, gateway int) {
		s.begin(command{Call: call, Gateway: gateway, Method: "resubscribeTask", Params: map[string]any{"id": cut.Task.ID}})
	}
	subscribe("same gateway", 0)
	subscribe("other gateway", 1)
	early := s.run(command{Gateway: 1, Method: "resubscribeTask", Params: map[string]any{"id": cut.Task.ID}, StopAt: " two"})
	require.Equal(t, []string{"one two"}, early.Task.texts(), "a resumed stream begins with what was said")
	begun := s.task("sendMessage", map[string]any{"message": user("demo", "m1", "Count"), "configuration": map[string]any{"returnImmediately": true}})
	require.Equal(t, cut.Task.ID, begun.ID)
	require.Equal(t, "TASK_STATE_WORKING", s.task("getTask", map[string]any{"id": cut.Task.ID}).Status.State)
	s.begin(command{Call: "blocked", Gateway: 1, Method: "sendMessage", Params: map[string]any{"message": user("demo", "m1", "Count")}})
	gate.Open()
	for _, call := range []string{"same gateway", "other gateway", "blocked"} {
		r := s.end(call)
		require.Empty(t, r.Error, call)
		require.Equal(t, "TASK_STATE_COMPLETED", r.Task.Status.State, call)
		require.Equal(t, []string{"one two three"}, r.Task.texts(), call)
		s.requireSameForAll(r.Task)
	}
	ended := s.run(command{Method: "resubscribeTask", Params: map[string]any{"id": cut.Task.ID}})
	require.Equal(t, "UnsupportedOperationError", ended.Error.Name)
}

func TestATaskIsCanceled(t *testing.T) {
	gate := llmtest.NewGate()
	defer gate.Open()
	s := start(t, nil, func(r llmtest.Request) llmtest.Step {
		if r.LastUser() == "Count" {
			return llmtest.Answer("one", " two").HoldAfter(1, gate)
		}
		return echo(r)
	})
	s.record("demo", event.SetDeliveryPolicy{Policy: event.PolicyQueue})
	begun := s.run(command{Method: "sendMessageStream", Params: map[string]any{"message": user("demo", "m1", "Count")}, StopAt: "one"})
	s.begin(command{Call: "stream", Gateway: 1, Method: "resubscribeTask", Params: map[string]any{"id": begun.Task.ID}})
	queued := s.task("sendMessage", map[string]any{"message": user("demo", "m2", "Bye"), "configuration": map[string]any{"returnImmediately": true}})
	require.Equal(t, "TASK_STATE_SUBMITTED", queued.Status.State)
	cancel := func(id string) result { return s.run(command{Method: "cancelTask", Params: map[string]any{"id": id}}) }
	require.Equal(t, "TaskNotCancelableError", cancel(queued.ID).Error.Name, "it would stop the answer to another task")

	canceled := cancel(begun.Task.ID)
	require.Empty(t, canceled.Error)
	require.Equal(t, "TASK_STATE_CANCELED", canceled.Task.Status.State)
	require.Equal(t, []string{"one"}, canceled.Task.texts())
	r := s.end("stream")
	require.Equal(t, canceled.Task, r.Task)
	s.requireSameForAll(r.Task)
	require.Equal(t, "TaskNotCancelableError", cancel(begun.Task.ID).Error.Name, "canceled twice")
	require.Equal(t, []string{"You said Bye"}, s.send(user("demo", "m2", "Bye")).texts(), "the queued task goes on")
}

func TestANewerMessageInterruptsATask(t *testing.T) {
	gate := llmtest.NewGate()
	defer gate.Open()
	s := start(t, nil, func(r llmtest.Request) llmtest.Step {
		if r.LastUser() == "Count" {
			return llmtest.Answer("one", " two").HoldAfter(1, gate)
		}
		return echo(r)
	})
	begun := s.run(command{Method: "sendMessageStream", Params: map[string]any{"message": user("demo", "m1", "Count")}, StopAt: "one"})
	s.begin(command{Call: "stream", Method: "resubscribeTask", Params: map[string]any{"id": begun.Task.ID}})
	require.Equal(t, []string{"You said Stop"}, s.send(user("demo", "m2", "Stop")).texts())
	r := s.end("stream")
	require.Equal(t, "TASK_STATE_CANCELED", r.Task.Status.State)
	require.Equal(t, "interrupted by a newer message", r.Task.why())
	require.Equal(t, []string{"one"}, r.Task.texts())
	s.requireSameForAll(r.Task)
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
	r := s.run(command{Method: "sendMessageStream", Params: map[string]any{"message": user("demo", "m1", "Try")}})
	require.Empty(t, r.Error)
	require.Equal(t, []string{"the second one answers"}, r.Task.texts())
	s.requireSameForAll(r.Task)
}

func TestAFailureAndARejectionAreTasks(t *testing.T) {
	gate := llmtest.NewGate()
	defer gate.Open()
	s := start(t, nil, func(r llmtest.Request) llmtest.Step {
		switch r.LastUser() {
		case "Fail":
			return llmtest.Error(401, "invalid_api_key", "who are you")
		case "Count":
			return llmtest.Answer("one", " two").HoldAfter(1, gate)
		}
		return echo(r)
	})
	failed := s.send(user("demo", "m1", "Fail"))
	require.Equal(t, "TASK_STATE_FAILED", failed.Status.State)
	require.Contains(t, failed.why(), "who are you")
	s.requireSameForAll(failed)

	s.record("demo", event.SetDeliveryPolicy{Policy: event.PolicyReject})
	begun := s.run(command{Method: "sendMessageStream", Params: map[string]any{"message": user("demo", "m2", "Count")}, StopAt: "one"})
	require.Empty(t, begun.Error)
	rejected := s.send(user("demo", "m3", "Me too"))
	require.Equal(t, "TASK_STATE_REJECTED", rejected.Status.State)
	require.Contains(t, rejected.why(), "busy")
	s.requireSameForAll(rejected)
	gate.Open()
	require.Equal(t, []string{"one two"}, s.send(user("demo", "m2", "Count")).texts())

	list := s.run(command{Method: "listTasks", Params: map[string]any{"contextId": "demo", "pageSize": 2, "includeArtifacts": true}})
	require.Empty(t, list.Error)
	require.Equal(t, 3, list.Page.TotalSize)
	require.Equal(t, []string{begun.Task.ID, rejected.ID}, []string{list.Tasks[0].ID, list.Tasks[1].ID}, "the newest first")
	require.Equal(t, []string{"one two"}, list.Tasks[0].texts())
	list = s.run(command{Method: "listTasks", Params: map[string]any{"contextId": "demo", "pageSize": 2, "pageToken": list.Page.NextPageToken}})
	require.Len(t, list.Tasks, 1)
	require.Equal(t, failed.ID, list.Tasks[0].ID)
	require.Empty(t, list.Page.NextPageToken)
	list = s.run(command{Method: "listTasks", Params: map[string]any{"contextId": "demo", "status": "TASK_STATE_FAILED"}})
	require.Len(t, list.Tasks, 1)
	require.Empty(t, s.run(command{Method: "listTasks", Params: map[string]any{"contextId": "missing"}}).Tasks)
}

func TestFilesAndMetadataArriveAndAreShown(t *testing.T) {
	s := start(t, nil, echo)
	s.record("demo", event.SystemPrompt{Content: "Be brief"})
	m := user("demo", "m1", "Look")
	m.Metadata = map[string]any{"trace": "7"}
	m.Parts = append(m.Parts, part{Raw: []byte("a,b"), Filename: "a.csv"}, part{URL: "https://example.com/cat.txt", MediaType: "text/plain"})
	sent := s.send(m)
	require.Equal(t, "TASK_STATE_COMPLETED", sent.Status.State, sent.why())
	require.Equal(t, sent, s.task("getTask", map[string]any{"id": sent.ID}))
	require.Len(t, sent.History, 1)
	shown := sent.History[0]
	require.Equal(t, map[string]any{"trace": "7"}, shown.Metadata)
	require.Equal(t, "m1", shown.MessageID)
	require.Equal(t, "a.csv", shown.Parts[0].Filename)
	require.Equal(t, "https://example.com/cat.txt", shown.Parts[1].URL)
	require.Equal(t, "Look", shown.Parts[2].Text)
	response, err := http.Get(shown.Parts[0].URL)
	require.NoError(t, err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, "a,b", string(data))
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
			"err":  {ID: "call_3", Name: "ask_user", Arguments: `{}`},
		}[r.LastUser()]
		return llmtest.Calls(call)
	})
	approving := event.SetTools{Tools: event.ToolList{{Pattern: "look_up"}}, Approve: event.ApprovalRules{{Tool: "look_up"}}}

	t.Run("of a worker", func(t *testing.T) {
		s.record("worker", event.SetTools{Tools: event.ToolList{{Pattern: "look_up"}}})
		r := s.run(command{Method: "sendMessageStream", Params: map[string]any{"message": user("worker", "m1", "look")}})
		require.Empty(t, r.Error)
		require.Equal(t, []string{
			"USER: look", `AGENT: {"toolCallId":"call_1","name":"look_up","arguments":{"word":"cat"}}`, `AGENT: {"toolCallId":"call_1","result":"a small cat"}`,
		}, r.Task.said())
		require.Equal(t, []string{"Result: a small cat"}, r.Task.texts())
		s.requireSameForAll(r.Task)
	})

	t.Run("of a client", func(t *testing.T) {
		s.record("client", event.SetTools{Tools: event.ToolList{{Name: "ask_user", Description: "Ask", Parameters: event.Object(`{"type":"object"}`)}}})
		r := s.run(command{Method: "sendMessageStream", Params: map[string]any{"message": user("client", "m1", "ask")}})
		require.Empty(t, r.Error)
		require.Equal(t, "TASK_STATE_INPUT_REQUIRED", r.Task.Status.State, "the stream ends there")
		require.Contains(t, r.Task.why(), `ask_user {"question":"Blue?"} waits for a result`)
		s.requireSameForAll(r.Task)
		s.begin(command{Call: "other", Gateway: 1, Method: "resubscribeTask", Params: map[string]any{"id": r.Task.ID}})
		reply := user("", "m2", "Yes")
		reply.TaskID = r.Task.ID
		answered := s.send(reply)
		require.Equal(t, "TASK_STATE_COMPLETED", answered.Status.State)
		require.Equal(t, []string{"Result: Yes"}, answered.texts())
		require.Equal(t, `USER: {"toolCallId":"call_2","result":"Yes"}`, answered.said()[len(answered.said())-1])
		require.Equal(t, []string{"Result: Yes"}, s.end("other").Task.texts(), "a subscriber sees what follows the input")
		require.Equal(t, answered, s.send(reply), "a repeated reply is not sent again")
		s.requireSameForAll(answered)
		late := reply
		late.MessageID = "m3"
		require.Equal(t, "UnsupportedOperationError", s.run(command{Method: "sendMessage", Params: map[string]any{"message": late}}).Error.Name)
	})

	t.Run("of a client, for which a worker answers", func(t *testing.T) {
		s.record("invalid", event.SetTools{Tools: event.ToolList{{Name: "ask_user", Parameters: event.Object(`{"type":"object","required":["question"]}`)}}})
		for call, method := range map[string]string{"m1": "sendMessageStream", "m2": "sendMessage"} {
			r := s.run(command{Method: method, Params: map[string]any{"message": user("invalid", call, "err")}})
			require.Equal(t, "TASK_STATE_COMPLETED", r.Task.Status.State, "the arguments are invalid")
		}
	})

	data := func(text string) []part { return []part{{Data: json.RawMessage(text)}} }
	for _, test := range []struct {
		name   string
		reply  []part
		result string
	}{
		{"approved", []part{{Text: "Approve"}}, "Result: a small cat"},
		{"edited", data(`{"toolCallId":"call_1","decision":"approve","arguments":{"word":"dog"}}`), "Result: a small dog"},
		{"denied", []part{{Text: "deny not now"}}, "not now"},
		{"denied-with-data", data(`{"decision":"deny","reason":"not today"}`), "not today"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s.record(test.name, approving)
			asked := s.send(user(test.name, "m1", "look"))
			require.Equal(t, "TASK_STATE_INPUT_REQUIRED", asked.Status.State)
			require.Contains(t, asked.why(), "waits for a decision")
			s.requireSameForAll(asked)
			reply := message{MessageID: "m2", ContextID: test.name, TaskID: asked.ID, Role: "ROLE_USER", Parts: test.reply}
			r := s.run(command{Method: "sendMessageStream", Params: map[string]any{"message": reply}})
			require.Empty(t, r.Error)
			require.Equal(t, "TASK_STATE_COMPLETED", r.Task.Status.State)
			require.Contains(t, strings.Join(r.Task.texts(), "\n"), test.result)
			s.requireSameForAll(r.Task)
		})
	}

	t.Run("canceled", func(t *testing.T) {
		s.record("canceled", approving)
		asked := s.send(user("canceled", "m1", "look"))
		canceled := s.task("cancelTask", map[string]any{"id": asked.ID})
		require.Equal(t, "TASK_STATE_CANCELED", canceled.Status.State)
		s.requireSameForAll(canceled)
	})

	t.Run("a bad reply leaves the task waiting", func(t *testing.T) {
		s.record("bad", approving)
		asked := s.send(user("bad", "m1", "look"))
		for name, reply := range map[string]message{
			"no decision":     {Parts: []part{{Text: "Perhaps"}}},
			"a foreign call":  {Parts: data(`{"toolCallId":"call_9","decision":"approve"}`)},
			"no object":       {Parts: data(`7`)},
			"other context":   {ContextID: "other", Parts: []part{{Text: "approve"}}},
			"a used id":       {MessageID: "m1", Parts: []part{{Text: "approve"}}},
			"a bad decision":  {Parts: data(`{"decision":"maybe"}`)},
			"a misspelling":   {Parts: data(`{"decision":"approve","argument":{"word":"dog"}}`)},
			"other arguments": {Parts: data(`{"decision":"approve","arguments":[1]}`)},
		} {
			reply.TaskID, reply.Role = asked.ID, "ROLE_USER"
			if reply.MessageID == "" {
				reply.MessageID = "reply"
			}
			r := s.run(command{Method: "sendMessage", Params: map[string]any{"message": reply}})
			require.Equal(t, "RequestMalformedError", r.Error.Name, "%s: %s", name, r.Error.Message)
		}
		file := message{MessageID: "m2", TaskID: asked.ID, Role: "ROLE_USER", Parts: []part{{URL: "https://example.com"}}}
		require.Equal(t, "ContentTypeNotSupportedError", s.run(command{Method: "sendMessage", Params: map[string]any{"message": file}}).Error.Name)
		s.requireSameForAll(asked)
	})
}

func TestBadInputHasTheShapeOfTheProtocol(t *testing.T) {
	s := start(t, nil, echo)
	sent := s.send(user("demo", "m1", "Hello"))
	message := func(change func(m map[string]any)) map[string]any {
		m := map[string]any{"messageId": "m2", "contextId": "demo", "role": "ROLE_USER", "parts": []any{map[string]any{"text": "Hi"}}}
		change(m)
		return map[string]any{"message": m}
	}
	configured := func(config map[string]any) map[string]any {
		in := message(func(map[string]any) {})
		in["configuration"] = config
		return in
	}
	part := func(p map[string]any) map[string]any {
		return message(func(m map[string]any) { m["parts"] = []any{p} })
	}
	for _, test := range []struct {
		name, method string
		params       any
		code         int
		text         string
	}{
		{"no method", "Nonsense", map[string]any{}, -32601, "Nonsense"},
		{"no object", "SendMessage", 7, -32602, "wrong type"},
		{"no message", "SendMessage", map[string]any{}, -32602, "message is missing"},
		{"no id", "SendMessage", message(func(m map[string]any) { delete(m, "messageId") }), -32602, "messageId has 0 bytes"},
		{"a long id", "SendMessage", message(func(m map[string]any) { m["messageId"] = strings.Repeat("x", 121) }), -32602, "121 bytes"},
		{"an agent", "SendMessage", message(func(m map[string]any) { m["role"] = "ROLE_AGENT" }), -32602, "want ROLE_USER"},
		{"a wrong type", "SendMessage", message(func(m map[string]any) { m["parts"] = "Hi" }), -32602, "message.parts has the wrong type"},
		{"no parts", "SendMessage", message(func(m map[string]any) { m["parts"] = []any{} }), -32602, "0 parts"},
		{"an invalid name", "SendMessage", message(func(m map[string]any) { m["contextId"] = "a b" }), -32602, "a name has"},
		{"an empty part", "SendMessage", part(map[string]any{}), -32602, "part 0 has neither"},
		{"data", "SendMessage", part(map[string]any{"data": map[string]any{"a": 1}}), -32005, "data part"},
		{"an invalid URL", "SendMessage", part(map[string]any{"url": "ftp://example.com"}), -32602, "http"},
		{"an invalid media type", "SendMessage", part(map[string]any{"url": "https://example.com", "mediaType": "text"}), -32602, "mediaType"},
		{"a used id", "SendMessage", message(func(m map[string]any) { m["messageId"] = "m1" }), -32602, "was used for other events"},
		{"a foreign reference", "SendMessage", message(func(m map[string]any) { m["referenceTaskIds"] = []string{"other:0001"} }), -32602, "not in the context"},
		{"a tenant", "SendMessage", func() any { in := message(func(map[string]any) {}); in["tenant"] = "acme"; return in }(), -32602, "tenant"},
		{"a tenant", "GetTask", map[string]any{"tenant": "acme", "id": sent.ID}, -32602, "tenant"},
		{"an unknown task", "SendMessage", message(func(m map[string]any) { m["taskId"] = "demo:0099" }), -32001, "demo:0099"},
		{"an ended task", "SendMessage", message(func(m map[string]any) { m["taskId"] = sent.ID }), -32004, "TASK_STATE_COMPLETED"},
		{"only images", "SendMessage", configured(map[string]any{"acceptedOutputModes": []string{"image/png"}}), -32005, "text/plain"},
		{"a webhook", "SendMessage", configured(map[string]any{"taskPushNotificationConfig": map[string]any{"url": "http://169.254.169.254"}}), -32003, "webhooks"},
		{"a negative history", "SendMessage", configured(map[string]any{"historyLength": -1}), -32602, "historyLength is -1"},
		{"no task", "GetTask", map[string]any{}, -32001, ""},
		{"a task of no context", "GetTask", map[string]any{"id": "missing:0001"}, -32001, "missing:0001"},
		{"an event that is no task", "GetTask", map[string]any{"id": "demo:0001"}, -32001, ""},
		{"a task of no name", "GetTask", map[string]any{"id": "a b:0001"}, -32001, ""},
		{"a negative history", "GetTask", map[string]any{"id": sent.ID, "historyLength": -1}, -32602, "historyLength"},
		{"a resumed task of the future", "SubscribeToTask", map[string]any{"id": "demo:0099"}, -32001, ""},
		{"a resumed task that ended", "SubscribeToTask", map[string]any{"id": sent.ID}, -32004, ""},
		{"a canceled task that ended", "CancelTask", map[string]any{"id": sent.ID}, -32002, ""},
		{"an unknown task", "CancelTask", map[string]any{"id": "x"}, -32001, ""},
		{"a list of all contexts", "ListTasks", map[string]any{}, -32602, "contextId is missing"},
		{"a large page", "ListTasks", map[string]any{"contextId": "demo", "pageSize": 101}, -32602, "pageSize"},
		{"an unknown page", "ListTasks", map[string]any{"contextId": "demo", "pageToken": "x"}, -32602, "pageToken"},
		{"an unknown state", "ListTasks", map[string]any{"contextId": "demo", "status": "TASK_STATE_RUNNING"}, -32602, "TASK_STATE_RUNNING"},
		{"no time", "ListTasks", map[string]any{"contextId": "demo", "statusTimestampAfter": "yesterday"}, -32602, "ISO 8601"},
		{"a webhook", "CreateTaskPushNotificationConfig", map[string]any{"taskId": sent.ID}, -32003, ""},
		{"webhooks", "ListTaskPushNotificationConfigs", map[string]any{"taskId": sent.ID}, -32003, ""},
		{"an extended card", "GetExtendedAgentCard", map[string]any{}, -32004, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			status, e := s.post(t, map[string]any{"jsonrpc": "2.0", "id": "call-7", "method": test.method, "params": test.params}, "1.0")
			require.Equal(t, http.StatusOK, status)
			require.Equal(t, `"call-7"`, string(e.ID))
			require.Equal(t, test.code, e.Error.Code, "%s %s", e.Error.Message, e.Result)
			require.Contains(t, e.Error.Message, test.text)
			require.Equal(t, "type.googleapis.com/google.rpc.ErrorInfo", e.Error.Data[0]["@type"])
		})
	}
	for _, test := range []struct {
		name    string
		body    any
		version string
		code    int
	}{
		{"no JSON", json.RawMessage(`{`), "1.0", -32700},
		{"a list", []any{}, "1.0", -32600},
		{"no id", map[string]any{"jsonrpc": "2.0", "method": "GetTask"}, "1.0", -32600},
		{"other JSON-RPC", map[string]any{"jsonrpc": "1.0", "id": 1, "method": "GetTask"}, "1.0", -32600},
		{"an old version", map[string]any{"jsonrpc": "2.0", "id": 1, "method": "message/send"}, "0.3", -32009},
		{"no version", map[string]any{"jsonrpc": "2.0", "id": 1, "method": "message/send"}, "", -32009},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, e := s.post(t, test.body, test.version)
			require.Equal(t, test.code, e.Error.Code, e.Error.Message)
		})
	}
	push := s.run(command{Method: "createTaskPushNotificationConfig", Params: map[string]any{"taskId": sent.ID, "url": "http://169.254.169.254"}})
	require.Equal(t, "PushNotificationNotSupportedError", push.Error.Name)
	require.Equal(t, []string{"You said Hi"}, s.send(user("demo", "m9", "Hi")).texts(), "the context goes on")
}

type rpcFailure struct {
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  struct {
		Code    int              `json:"code"`
		Message string           `json:"message"`
		Data    []map[string]any `json:"data"`
	} `json:"error"`
}

func (s *stack) post(t *testing.T, body any, version string) (status int, e rpcFailure) {
	t.Helper()
	data, ok := body.(json.RawMessage)
	if !ok {
		var err error
		data, err = json.Marshal(body)
		require.NoError(t, err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.urls[0]+"/a2a/", bytes.NewReader(data))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("A2A-Version", version)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	require.NoError(t, json.NewDecoder(response.Body).Decode(&e))
	return response.StatusCode, e
}
