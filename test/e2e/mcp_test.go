package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/tool/mcp"
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
	var w *world
	var c *client.Context
	w = newWorld(t, llmtest.Func(func(r llmtest.Request) llmtest.Step {
		w.awaitArchive(c) // without which a run does not continue as new
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
	c = w.open("mcp")
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
