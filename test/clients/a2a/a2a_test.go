// Package a2a_test drives clients of @a2a-js/sdk in Node, against a worker, two gateways and a scripted model.
package a2a_test

import (
	"bytes"
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
