package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/child"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/tool"
	"github.com/seed-9ed7edd4/chronicle/tool/mcp"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// reference returns a reference server, which make installs.
func reference(t *testing.T, name string, args ...string) mcp.Server {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("MCP reference server tests, no node on PATH")
	}
	script, err := filepath.Abs("../../bin/mcp/node_modules/@modelcontextprotocol/server-" + name + "/dist/index.js")
	require.NoError(t, err)
	if _, err := os.Stat(script); err != nil {
		t.Skip("MCP reference server tests, make bin/mcp installs the servers")
	}
	return mcp.Server{Name: name, Command: node, Args: append([]string{script}, args...)}
}

// pipe is a named pipe that a server reads.
type pipe struct {
	w    *world
	path string
}

func (w *world) pipe(dir string) *pipe {
	w.t.Helper()
	p := &pipe{w, filepath.Join(dir, "pipe")}
	p.renew()
	return p
}

// renew replaces the pipe: a reader of the old one reads nothing from the new one.
func (p *pipe) renew() {
	p.w.t.Helper()
	_ = os.Remove(p.path)
	require.NoError(p.w.t, syscall.Mkfifo(p.path, 0o600))
}

// awaitReader waits until a server reads the pipe.
func (p *pipe) awaitReader() *os.File {
	p.w.t.Helper()
	opened := make(chan *os.File, 1)
	go func() {
		if f, err := os.OpenFile(p.path, os.O_WRONLY, 0); err == nil {
			opened <- f
		}
	}()
	select {
	case f := <-opened:
		return f
	case <-p.w.ctx.Done():
		p.w.t.Fatal("the server does not read the pipe")
		return nil
	}
}

func fileCall(id, tool string, arguments map[string]any) llmtest.Call {
	data, _ := json.Marshal(arguments)
	return llmtest.Call{ID: id, Name: "mcp__filesystem__" + tool, Arguments: string(data)}
}

// The turn continues as new between its steps. A worker is killed while the server executes a call;
// the next worker has one more server, whose tools are offered from the next turn on.
func TestATurnWithAnMCPServerSurvivesAKilledWorkerAndContinueAsNew_Alone(t *testing.T) {
	needsTimelyHeartbeats(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	files := reference(t, "filesystem", dir)
	const steps, killed = 12, 7
	w := newWorldOn(t, environment{timeout: faultTimeout}, llmtest.Func(func(r llmtest.Request) llmtest.Step {
		if r.LastUser() != "Read" || len(r.Results()) == 1 && strings.Contains(r.Results()[0], fmt.Sprintf("text %d", steps)) {
			return llmtest.Answer("Done.")
		}
		made := 0
		for _, m := range r.Messages {
			made += len(m.ToolCalls)
		}
		return llmtest.Calls(fileCall(fmt.Sprintf("c%d", made+1), "read_text_file", map[string]any{"path": filepath.Join(dir, fmt.Sprint(made+1))}))
	}))
	for i := 1; i <= steps; i++ {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), fmt.Appendf(nil, "text %d", i), 0o600))
	}
	p := w.pipe(dir)
	name := filepath.Join(dir, fmt.Sprint(killed))
	require.NoError(t, os.Remove(name))
	require.NoError(t, os.Symlink(p.path, name))

	worker := w.processWith(workerSettings{ContinueAfter: shortRun, MCP: []mcp.Server{files}})
	c := w.open("mcp")
	w.send(c, event.New(event.SetTools{Tools: event.ToolList{{Pattern: "mcp:*"}}}))
	turn := w.ask(c, "Read")
	orphaned := p.awaitReader()
	worker.kill()
	p.renew()
	require.NoError(t, orphaned.Close())
	w.processWith(workerSettings{ContinueAfter: shortRun, MCP: []mcp.Server{files, reference(t, "everything")}})
	reader := p.awaitReader()
	_, err = fmt.Fprintf(reader, "text %d", killed)
	require.NoError(t, err)
	require.NoError(t, reader.Close())
	require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag())
	requests := w.model.Requests()
	require.Len(t, requests, steps+1)
	for i, r := range requests {
		require.Equal(t, requests[0].ToolNames(), r.ToolNames())
		if i > 0 {
			require.Equal(t, []string{fmt.Sprintf(`{"content":"text %d"}`, i)}, r.Results())
		}
	}
	require.Greater(t, len(w.runs(c)), 2)
	require.Equal(t, 1, countOf(w, c, event.TagToolsOffered))

	w.say(c, "Thanks")
	names := w.model.Requests()[steps+1].ToolNames()
	require.True(t, slices.Contains(names, "mcp__everything__echo"), names)
	require.True(t, slices.Contains(names, "mcp__filesystem__read_text_file"), names)
	require.Equal(t, 2, countOf(w, c, event.TagToolsOffered))
	stories := []string{"mcp-tools-changed", "mcp-continued"}
	for _, run := range w.runs(c) {
		w.replayRun(c, run, append(stories, "")[0])
		stories = stories[min(1, len(stories)):]
	}
}

func TestACallOfAnMCPServerThatIsNotIdempotentIsMadeOnce_Alone(t *testing.T) {
	needsTimelyHeartbeats(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	files := reference(t, "filesystem", dir)
	path := filepath.Join(dir, "pipe")
	w := newWorldOn(t, environment{timeout: faultTimeout},
		llmtest.Calls(fileCall("c1", "edit_file", map[string]any{"path": path, "edits": []any{map[string]string{"oldText": "a", "newText": "b"}}})),
		llmtest.Calls(fileCall("c2", "list_directory", map[string]any{"path": dir})),
		llmtest.Answer("I do not know."),
	)
	p := w.pipe(dir)
	worker := w.processWith(workerSettings{MCP: []mcp.Server{files}})
	c := w.open("mcp-once")
	w.setTools(c, "mcp:filesystem/*")
	turn := w.ask(c, "Edit")
	orphaned := p.awaitReader()
	worker.kill()
	require.NoError(t, os.Remove(path)) // a second call would fail
	require.NoError(t, orphaned.Close())
	w.processWith(workerSettings{MCP: []mcp.Server{files}})
	require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag())
	require.Equal(t, []string{event.OutcomeUnknown}, w.model.Requests()[1].Results())
	require.Equal(t, []string{`{"content":""}`}, w.model.Requests()[2].Results(), "the restarted server works")
	w.replay(c, "mcp-killed")
}

func TestAContextCallsAnMCPServerOverHTTP(t *testing.T) {
	t.Parallel()
	everything := reference(t, "everything")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := free.Addr().(*net.TCPAddr).Port
	require.NoError(t, free.Close())
	server := exec.Command(everything.Command, append(everything.Args, "streamableHttp")...)
	server.Env = append(os.Environ(), fmt.Sprintf("PORT=%d", port))
	output, err := server.StderrPipe()
	require.NoError(t, err)
	started, err := child.Start(server, child.Options{OwnGroup: true})
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Process.Kill(); <-started.Done() })
	lines := bufio.NewScanner(output)
	for lines.Scan() && !strings.Contains(lines.Text(), "listening on port") {
	}
	require.NoError(t, lines.Err())
	require.Contains(t, lines.Text(), "listening on port")
	w := newWorld(t,
		llmtest.Calls(llmtest.Call{ID: "echo", Name: "mcp__everything__echo", Arguments: `{"message":"hello"}`}).Offered("mcp__everything__echo", "read_result"),
		llmtest.Answer("Done.").Offered("mcp__everything__echo", "read_result"),
	)
	servers, err := mcp.New(mcp.Options{Servers: []mcp.Server{{Name: "everything", URL: fmt.Sprintf("http://127.0.0.1:%d/mcp", port)}}})
	require.NoError(t, err)
	t.Cleanup(servers.Close)
	tools, err := tool.NewSet(tool.Options{Sources: map[string]tool.Source{mcp.Prefix: servers}})
	require.NoError(t, err)
	w.worker(func(o *contexts.Options) { o.Tools = tools })
	c := w.open("mcp-http")
	w.setTools(c, "mcp:everything/echo")
	w.say(c, "Say hello")
	require.Equal(t, []string{"Echo: hello"}, w.model.Requests()[1].Results())
	w.replay(c, "")
}
