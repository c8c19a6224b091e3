package mcp_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/internal/child"
	"github.com/seed-9ed7edd4/chronicle/tool/mcp"
)

// reference returns the command of a reference server, which make installs.
func reference(t *testing.T, name string) (command string, args []string) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("MCP reference server tests, no node on PATH")
	}
	script, err := filepath.Abs(filepath.Join("../../bin/mcp/node_modules/@modelcontextprotocol", name, "dist/index.js"))
	require.NoError(t, err)
	if _, err := os.Stat(script); err != nil {
		t.Skip("MCP reference server tests, make bin/mcp installs the servers")
	}
	return node, []string{script}
}

func osEnvironment(name string) string { return os.Getenv(name) }

func TestTheToolsOfTheReferenceServerWork(t *testing.T) {
	t.Parallel()
	command, args := reference(t, "server-everything")
	w := newWorker(t, osEnvironment, mcp.Server{Name: "everything", Command: command, Args: args})
	offered, err := w.offer(deadline(t), "mcp:everything/*")
	require.NoError(t, err)
	require.Contains(t, namesOf(offered), "mcp:everything/echo")
	require.Equal(t, `"Echo: hello"`, w.value(t, "mcp__everything__echo", `{"message":"hello"}`))
	require.Contains(t, w.failure(t, "mcp__everything__echo", `{"message":1}`), "invalid arguments")
	require.Contains(t, w.value(t, "mcp__everything__get-tiny-image", `{}`), `[image image/png, `)
	require.JSONEq(t, `{"temperature":36,"conditions":"Light rain / drizzle","humidity":82}`, w.value(t, "mcp__everything__get-structured-content", `{"location":"Chicago"}`))
	require.Contains(t, w.value(t, "mcp__everything__get-resource-links", `{"count":1}`), `[resource demo://`)
	environment := w.value(t, "mcp__everything__get-env", `{}`)
	require.Contains(t, environment, "PATH")
	require.NotContains(t, environment, "OPENAI_API_KEY")

	reported := make(chan string, 10)
	result := w.set.Call(deadline(t), activities.ToolCallRequest{
		Name: "mcp__everything__trigger-long-running-operation", Arguments: json.RawMessage(`{"duration":0.1,"steps":2}`),
		Progress: func(text string) { reported <- text },
	})
	require.False(t, result.IsError, string(result.Error))
	require.Equal(t, "1/2", <-reported)
}

func TestTheReferenceServerWorksOverHTTP(t *testing.T) {
	t.Parallel()
	command, args := reference(t, "server-everything")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := free.Addr().(*net.TCPAddr).Port
	require.NoError(t, free.Close())
	server := exec.Command(command, append(args, "streamableHttp")...)
	server.Env = append(os.Environ(), fmt.Sprintf("PORT=%d", port))
	started, err := child.Start(server, child.Options{OwnGroup: true})
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Process.Kill(); <-started.Done() })
	w := newWorker(t, osEnvironment, mcp.Server{Name: "everything", URL: fmt.Sprintf("http://127.0.0.1:%d/mcp", port)})
	// Connections fail until the server listens.
	ctx := deadline(t)
	for w.AwaitConnected(ctx, "everything") != nil {
		require.NoError(t, ctx.Err())
	}
	require.Equal(t, `"Echo: hello"`, w.value(t, "mcp__everything__echo", `{"message":"hello"}`))
}

func TestTheFilesystemServerReadsItsFolderOnly(t *testing.T) {
	t.Parallel()
	command, args := reference(t, "server-filesystem")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("content of a"), 0o600))
	w := newWorker(t, osEnvironment, mcp.Server{Name: "files", Command: command, Args: append(args, dir)})
	offered, err := w.offer(deadline(t), "mcp:files/read_text_file", "mcp:files/write_*")
	require.NoError(t, err)
	require.Equal(t, []string{"mcp:files/read_text_file", "mcp:files/write_file"}, namesOf(offered))
	require.True(t, offered[0].Idempotent)
	require.JSONEq(t, `{"content":"content of a"}`, w.value(t, "mcp__files__read_text_file", fmt.Sprintf(`{"path":%q}`, filepath.Join(dir, "a.txt"))))
	w.value(t, "mcp__files__write_file", fmt.Sprintf(`{"path":%q,"content":"new"}`, filepath.Join(dir, "b.txt")))
	written, err := os.ReadFile(filepath.Join(dir, "b.txt"))
	require.NoError(t, err)
	require.Equal(t, "new", string(written))
	require.Contains(t, w.failure(t, "mcp__files__read_text_file", `{"path":"/etc/passwd"}`), "outside allowed directories")
	// A killed process is started again.
	before := w.PID("files")
	process, err := os.FindProcess(before)
	require.NoError(t, err)
	require.NoError(t, process.Kill())
	w.log.await(deadline(t), t, "signal: killed")
	require.NoError(t, w.AwaitConnected(deadline(t), "files"))
	require.JSONEq(t, `{"content":"content of a"}`, w.value(t, "mcp__files__read_text_file", fmt.Sprintf(`{"path":%q}`, filepath.Join(dir, "a.txt"))))
	require.NotEqual(t, before, w.PID("files"))
}
