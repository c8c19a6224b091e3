package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/browsertest"
	"github.com/seed-9ed7edd4/chronicle/internal/child"
	"github.com/seed-9ed7edd4/chronicle/internal/npmtest"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	aisdkclient "github.com/seed-9ed7edd4/chronicle/test/clients/aisdk"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// All clients join one context: the page, useChat, npm openai, an agent of AG-UI, the chat in a terminal, the Go client, a plain
// signal and the temporal command. Each of them steers, stops or approves once. Two workers and the gateway are killed in the
// middle of answers. At the end, what each client saw is compared with the log.
func TestAllClientsShareOneAnswer_Alone(t *testing.T) {
	needsTimelyHeartbeats(t)
	tabs, programs := browsertest.Start(t), crowdPrograms(t) // they may skip the test
	w, steps := newCrowdWorld(t)
	worker := w.process(contexts.Both)
	c := w.open("together")
	w.requireApproval(c, time.Hour)
	v := w.crowd(c, tabs, programs)

	// npm openai begins. The first worker is killed, and npm openai approves the call of the second.
	v.openai.do(map[string]any{"create": map[string]any{"conversation": c.Name(), "input": "Look around"}})
	v.join()
	v.allSee("Let me")
	worker.kill()
	worker = w.process(contexts.Both)
	v.allSee("I shall")
	steps.open("I shall")
	v.allAreAsked("probe")
	v.openai.do(map[string]any{"create": map[string]any{"conversation": c.Name(), "input": []any{
		map[string]any{"type": "mcp_approval_response", "approval_request_id": v.approvalRequest(), "approve": true},
	}}})
	v.events.await("the result", has(isResult("call_a")))

	// The gateway restarts in the middle of the answer after the call. Then the terminal steers.
	v.allSee("I found")
	v.restartGateway()
	steps.open("I found")
	v.allSee("I found a door")
	v.terminal.press("Go in\r")
	v.openai.do(map[string]any{"id": v.response(isMessage("Go in"))})
	v.allSee("Inside")

	// A plain signal steers. The second worker is killed, and the temporal command stops the answer of the third.
	w.signal(c, map[string]any{"_tag": "UserMessageEvent", "content": "Light a lamp"})
	v.openai.do(map[string]any{"id": v.response(isMessage("Light a lamp"))})
	v.allSee("By its")
	worker.kill()
	w.process(contexts.Both)
	v.allSee("Its light")
	w.temporalCommand("workflow", "signal", "--workflow-id", wire.WorkflowID(c.Name()), "--name", "interrupt")
	w.await(c, func(e event.Event) bool {
		b, ok := e.Body.(event.LLMRequestInterrupted)
		return ok && b.Reason == event.ReasonCancelled
	})

	// The agent of AG-UI asks, the page approves, and useChat asks last.
	v.run("Look again")
	v.openai.do(map[string]any{"id": v.response(isMessage("Look again"))})
	v.allAreAsked("probe")
	v.page.Click(`[data-key="approve"]`)
	v.openai.do(map[string]any{"id": v.response(isDecision("call_b"))})
	v.events.await("the result", has(isResult("call_b")))
	v.allSee("Quite")
	steps.open("Quite")
	v.allSee("Quite empty.")
	v.chat.Do(`void chat.sendMessage({ text: "Sum it up" })`)
	v.openai.do(map[string]any{"id": v.response(isMessage("Sum it up"))})
	v.allSee("A door,")
	steps.open("A door,")
	v.allSee("A door, and an empty room.")
	v.compare()
}

// stages answers by the newest result or message. Each of its answers is held after the first token until it is opened.
type stages struct {
	t     *testing.T
	mu    sync.Mutex
	steps map[string][]llmtest.Step
	gates map[string]*llmtest.Gate // by first token
}

func (s *stages) hold(tokens ...string) llmtest.Step {
	gate := llmtest.NewGate()
	s.gates[tokens[0]] = gate
	return llmtest.Answer(tokens...).HoldAfter(1, gate)
}

func (s *stages) open(token string) { s.gates[token].Open() }

func (s *stages) answer(r llmtest.Request) llmtest.Step {
	of := r.LastUser()
	if results := r.Results(); len(results) > 0 {
		of = results[0]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.steps[of]) == 0 {
		s.t.Errorf("unexpected request to the model after %q", of)
		return llmtest.Error(400, "unexpected", "unexpected")
	}
	step := s.steps[of][0]
	s.steps[of] = s.steps[of][1:]
	return step
}

func newCrowdWorld(t *testing.T) (*world, *stages) {
	p := newProbe(t, echoed)
	s := &stages{t: t, gates: map[string]*llmtest.Gate{}}
	s.steps = map[string][]llmtest.Step{
		"Look around":  {s.hold("Let me", " see."), s.hold("I shall", " look.").Calls(p.call("probe", "a"))},
		"result of a":  {s.hold("I found", " a door", " and").HoldAfter(2, llmtest.NewGate())},
		"Go in":        {s.hold("Inside", " it is")},
		"Light a lamp": {s.hold("By its", " light"), s.hold("Its light", " shows")},
		"Look again":   {llmtest.Calls(p.call("probe", "b"))},
		"result of b":  {s.hold("Quite", " empty.")},
		"Sum it up":    {s.hold("A door,", " and an empty room.")},
	}
	w := newWorld(t, llmtest.Func(s.answer))
	t.Cleanup(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for of, left := range s.steps {
			if len(left) > 0 && !t.Failed() {
				t.Errorf("the model was asked too rarely after %q", of)
			}
		}
	})
	return w, s
}

// crowd are the clients of a context.
type crowd struct {
	w        *world
	c        *client.Context
	gateway  string // URL
	kill     func() // kills the gateway
	tabs     *browsertest.Browser
	page     *browsertest.Tab
	chat     *browsertest.Tab // useChat
	chatURL  string
	terminal *chat
	at       int // what the terminal has written before
	openai   *program
	agui     *program
	runs     int // of agui
	events   *watched[[]event.Event]
}

// programs are the folders of clients.
type programs struct{ chat, openai, agui string }

func crowdPrograms(t *testing.T) programs {
	t.Helper()
	return programs{
		chat:   aisdkclient.Build(t, "../..", "7"),
		openai: npmtest.Folder(t, "../..", "openai", "../clients/together"),
		agui:   npmtest.Folder(t, "../..", "agui", "../clients/together"),
	}
}

// crowd starts the gateway and the clients in Node. All clients join with [crowd.join].
func (w *world) crowd(c *client.Context, tabs *browsertest.Browser, in programs) *crowd {
	w.t.Helper()
	v := &crowd{w: w, c: c, tabs: tabs}
	v.gateway, v.kill = w.serveProcess("--index-dir", w.t.TempDir())
	v.openai = w.program(in.openai, "openai.mjs", v.gateway)
	v.agui = w.program(in.agui, "agui.mjs", v.gateway, c.Name())
	v.chatURL = w.serveChat(in.chat, v.gateway) + "/#" + c.Name()
	return v
}

// serveChat serves a page with useChat, and forwards its requests to a gateway.
func (w *world) serveChat(dist, gateway string) (url string) {
	w.t.Helper()
	forward := httputil.NewSingleHostReverseProxy(parsed(w.t, gateway))
	forward.ErrorLog = log.New(io.Discard, "", 0)
	routes := http.NewServeMux()
	routes.Handle("/api/chat/", forward)
	routes.Handle("/api/chat", forward)
	routes.Handle("/contexts/", forward)
	routes.Handle("/", http.FileServer(http.Dir(dist)))
	web := httptest.NewServer(routes)
	w.t.Cleanup(web.Close)
	w.t.Cleanup(web.CloseClientConnections)
	return web.URL
}

func parsed(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	require.NoError(t, err)
	return u
}

// join joins the answer that runs with all clients.
func (v *crowd) join() {
	v.w.t.Helper()
	v.events = v.w.follow(v.c)
	v.events.await("the first delta", func(seen []event.Event) bool { return deltaText(seen) != "" })
	v.page = openURL(v.tabs, v.gateway+"/#"+v.c.Name())
	// The transcript of the page, by its own module.
	v.page.Do(fmt.Sprintf(`
		const { follow } = await import(new URL("transcript.js", location));
		const keep = (entries) => { window.patched = entries };
		void follow(%q, { replaced: keep, changed: keep, statusChanged() {}, connected() {}, deleted() {} }, new AbortController().signal)`, v.c.Name()))
	v.chat = v.tabs.Open(v.chatURL)
	v.terminal = v.w.chat(v.c, "ann")
}

func (v *crowd) restartGateway() {
	v.w.t.Helper()
	v.kill()
	var restarted string
	restarted, v.kill = v.w.serveProcess("--listen", parsed(v.w.t, v.gateway).Host, "--index-dir", v.w.t.TempDir())
	require.Equal(v.w.t, v.gateway, restarted)
}

// allSee waits until all clients show a text as the newest one of the model.
func (v *crowd) allSee(text string) {
	t := v.w.t
	t.Helper()
	v.events.await(text, func(seen []event.Event) bool { return newestText(seen) == text })
	v.page.Await(fmt.Sprintf(`[...document.querySelectorAll(".assistant-message .prose")].at(-1).innerText.trim() === %q`, text))
	v.chatAwait(fmt.Sprintf(`chat.messages.at(-1).parts.findLast((p) => p.type === "text")?.text === %q`, text))
	words := strings.Fields(text)
	v.at = v.terminal.until(words[len(words)-1], v.at, "")
	v.openai.await(text, func(seen shown) bool {
		return slices.ContainsFunc(seen.Responses, func(r response) bool {
			return slices.Contains(slices.Collect(maps.Values(r.Texts)), text)
		})
	})
	v.aguiAwait(text, func(seen shown) bool {
		for _, m := range slices.Backward(seen.Messages) {
			if m.Role == "assistant" && m.Content != "" {
				return m.Content == text
			}
		}
		return false
	})
}

// chatAwait resumes the newest answer with useChat until a condition is true.
func (v *crowd) chatAwait(condition string) {
	v.w.t.Helper()
	v.chat.Await(condition + ` || ["ready", "error"].includes(chat.status) && !window.resuming &&
		void (window.resuming = chat.resumeStream().finally(() => { window.resuming = undefined }))`)
}

// aguiAwait runs the agent until a condition is true. A run ends at once if nothing runs.
func (v *crowd) aguiAwait(what string, found func(shown) bool) {
	v.w.t.Helper()
	for {
		v.agui.await(what, func(seen shown) bool { return found(seen) || seen.Runs == v.runs })
		if found(v.agui.newest()) {
			return
		}
		v.run("")
	}
}

// run runs the agent, with a message or, with "", to join.
func (v *crowd) run(message string) {
	v.w.t.Helper()
	v.agui.await("the end of its run", func(seen shown) bool { return seen.Runs == v.runs })
	v.runs++
	v.agui.do(map[string]any{"say": message})
}

// allAreAsked waits until all clients show that a call waits for an approval.
func (v *crowd) allAreAsked(tool string) {
	v.w.t.Helper()
	v.events.await("the request of an approval", func(seen []event.Event) bool { return seen[len(seen)-1].Tag() == event.TagApprovalRequested })
	v.page.Await(`document.querySelector('[data-key="approve"]')`)
	v.chatAwait(`chat.messages.at(-1).parts.at(-1).state === "approval-requested"`)
	v.at = v.terminal.until("approve "+tool+"?", v.at, "")
	v.openai.await("the request of an approval", func(seen shown) bool {
		last := seen.Responses[len(seen.Responses)-1].Last
		return last != nil && last.Output[len(last.Output)-1].Type == "mcp_approval_request"
	})
	v.aguiAwait("an interrupt", func(seen shown) bool { return seen.Waits })
}

// approvalRequest returns the id of the newest one that npm openai has.
func (v *crowd) approvalRequest() string {
	responses := v.openai.newest().Responses
	output := responses[len(responses)-1].Last.Output
	return output[len(output)-1].ID
}

// response returns the id of the response to an event of another client.
func (v *crowd) response(to func(event.Event) bool) string {
	v.w.t.Helper()
	return "resp_" + strings.Replace(v.w.await(v.c, to).ID, ":", "_", 1)
}

func isDecision(call string) func(event.Event) bool {
	return func(e event.Event) bool {
		d, ok := e.Body.(event.ApprovalDecided)
		return ok && d.ToolCallID == call
	}
}

func isResult(call string) func(event.Event) bool {
	return func(e event.Event) bool {
		r, ok := e.Body.(event.ToolResult)
		return ok && r.ToolCallID == call
	}
}

func has(found func(event.Event) bool) func([]event.Event) bool {
	return func(seen []event.Event) bool { return slices.ContainsFunc(seen, found) }
}

// newestText returns the text of the newest attempt, or of the newest answer.
func newestText(seen []event.Event) string {
	text := ""
	for _, e := range seen {
		switch b := e.Body.(type) {
		case event.LLMRequestStarted:
			text = ""
		case event.TextDelta:
			if b.Reset {
				text = ""
			}
			text += b.Delta
		case event.AssistantMessage:
			text = b.Content
		}
	}
	return text
}

// watched is what a client has seen so far.
type watched[T any] struct {
	w       *world
	name    string // of the client
	mu      sync.Mutex
	seen    T
	err     error         // the client has ended
	changed chan struct{} // closed and replaced after each change
}

func watch[T any](w *world, name string) *watched[T] {
	return &watched[T]{w: w, name: name, changed: make(chan struct{})}
}

func (s *watched[T]) set(seen T, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err = err; err == nil {
		s.seen = seen
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *watched[T]) newest() T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

func (s *watched[T]) await(what string, found func(T) bool) {
	s.w.t.Helper()
	for {
		s.mu.Lock()
		seen, err, changed := s.seen, s.err, s.changed
		s.mu.Unlock()
		if found(seen) {
			return
		}
		require.NoError(s.w.t, err, "%s has ended", s.name)
		select {
		case <-changed:
		case <-s.w.ctx.Done():
			text, _ := json.MarshalIndent(seen, "", " ")
			require.FailNow(s.w.t, s.name+" did not see "+what, "it has seen %s", text)
		}
	}
}

// follow follows a context with the Go client.
func (w *world) follow(c *client.Context) *watched[[]event.Event] {
	f := watch[[]event.Event](w, "the Go client")
	go func() {
		var seen []event.Event
		for e, err := range c.Follow(w.ctx, client.FollowOptions{Deltas: true}) {
			seen = append(seen, e)
			f.set(slices.Clip(seen), err)
		}
	}()
	return f
}

// program is a client in Node, which takes commands and writes all that it has seen after each change, see test/clients/together.
type program struct {
	*watched[shown]
	in *json.Encoder
}

// shown is what openai.mjs, and then agui.mjs, writes.
type shown struct {
	Responses []response
	Resumed   int
	Items     []item

	Messages []aguiMessage
	Waits    bool
	Runs     int

	Error string // the newest one
}

type response struct {
	Texts map[string]string // by item
	Last  *struct{ Output []item }
}

func (w *world) program(folder, name string, args ...string) *program {
	w.t.Helper()
	cmd := exec.Command("node", append([]string{name}, args...)...)
	cmd.Dir, cmd.Stderr = folder, w.t.Output()
	in, err := cmd.StdinPipe()
	require.NoError(w.t, err)
	out, output := io.Pipe()
	cmd.Stdout = output
	started, err := child.Start(cmd, child.Options{OwnGroup: true})
	require.NoError(w.t, err)
	w.t.Cleanup(func() {
		require.NoError(w.t, started.Stop(testTimeout))
		require.NoError(w.t, out.Close())
	})
	p := &program{watch[shown](w, name), json.NewEncoder(in)}
	go func() {
		<-started.Done()
		_ = output.Close()
	}()
	go func() {
		lines := json.NewDecoder(out)
		for {
			var seen shown
			err := lines.Decode(&seen)
			if p.set(seen, err); err != nil {
				return
			}
		}
	}()
	return p
}

func (p *program) do(command map[string]any) {
	p.w.t.Helper()
	require.NoError(p.w.t, p.in.Encode(command))
}
