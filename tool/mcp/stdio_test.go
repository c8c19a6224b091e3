package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/tool/mcp"
)

// serverVariable makes the test binary an MCP server.
const serverVariable = "TEST_MCP_SERVER"

func TestMain(m *testing.M) {
	if mode := os.Getenv(serverVariable); mode != "" {
		serve(mode)
	}
	// A key of the worker, which servers must not see.
	os.Setenv("OPENAI_API_KEY", "sk-worker-worker-worker")
	os.Exit(m.Run())
}

func serve(mode string) {
	if mode == "crash" {
		fmt.Fprint(os.Stderr, "cannot start with ", os.Getenv("CODE")) // without a line break
		os.Exit(1)
	}
	s := newServer()
	add := func(name string, do func(argument string) string) {
		addTool(s, &sdk.Tool{Name: name, Description: name}, func(r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			var in struct{ Text string }
			if err := json.Unmarshal(r.Params.Arguments, &in); err != nil {
				return nil, err
			}
			return textResult(do(in.Text))
		})
	}
	add("pid", func(string) string { return fmt.Sprint(os.Getpid()) })
	add("environment", func(string) string {
		environment := os.Environ()
		slices.Sort(environment)
		return strings.Join(environment, "\n")
	})
	add("log", func(text string) string { fmt.Fprint(os.Stderr, text); return "logged" })
	add("exit", func(string) string { os.Exit(3); return "" })
	add("freeze", func(string) string { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP); select {} })
	add("sleep", func(string) string { select {} })
	// A descendant that keeps a named pipe open, ignores SIGTERM and outlives its parent.
	add("spawn", func(pipe string) string {
		command := exec.Command("/bin/sh", "-c", `trap "" TERM; exec 3>"$1"; while :; do sleep 1000; done`, "sh", pipe)
		if err := command.Start(); err != nil {
			return err.Error()
		}
		return "spawned"
	})
	if err := s.Run(context.Background(), &sdk.StdioTransport{}); err != nil && mode != "quiet" {
		fmt.Fprintln(os.Stderr, "stopped:", err)
	}
	os.Exit(0)
}

// stdio returns a worker with the test binary as server "a".
func stdio(t *testing.T, mode string, env map[string]string) *worker {
	t.Helper()
	command, err := os.Executable()
	require.NoError(t, err)
	env = maps.Clone(env)
	if env == nil {
		env = map[string]string{}
	}
	env[serverVariable] = mode
	getenv := func(name string) string {
		return map[string]string{"PATH": "/usr/bin:/bin", "HOME": "/home/worker", "ISSUES": "hunter2-hunter2", "EMPTY": " "}[name]
	}
	return newWorker(t, getenv, mcp.Server{Name: "a", Command: command, Env: env})
}

func TestAServerSeesOnlyTheEnvironmentOfItsConfig(t *testing.T) {
	t.Parallel()
	w := stdio(t, "quiet", map[string]string{"LEVEL": "debug"})
	require.Equal(t, `"HOME=/home/worker\nLEVEL=debug\nPATH=/usr/bin:/bin\n`+serverVariable+`=quiet"`, w.value(t, "mcp__a__environment", `{}`))
}

func TestSecretsReachTheServerOnly(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(file, []byte("correct-horse\n"), 0o600))
	w := stdio(t, "quiet", map[string]string{"ISSUES_TOKEN": "env:ISSUES", "DOCS_TOKEN": "file:" + file})
	require.Equal(t, `"DOCS_TOKEN=[removed]\nHOME=/home/worker\nISSUES_TOKEN=[removed]\nPATH=/usr/bin:/bin\n`+serverVariable+`=quiet"`,
		w.value(t, "mcp__a__environment", `{}`))
	require.Equal(t, `"logged"`, w.value(t, "mcp__a__log", `{"text":"token hunter2-hunter2 of correct-horse\n"}`))
	w.log.await(deadline(t), t, `line="token [removed] of [removed]"`)
	require.NotContains(t, w.log.String(), "hunter2")
}

func TestASecretThatCannotBeReadIsAnErrorWithoutIt(t *testing.T) {
	t.Parallel()
	for ref, want := range map[string]string{
		"env:MISSING":        "env TOKEN: env:MISSING is empty or not set",
		"env:EMPTY":          "env TOKEN: env:EMPTY is empty or not set",
		"file:/no/such/file": "env TOKEN: cannot read /no/such/file: no such file or directory",
	} {
		w := stdio(t, "quiet", map[string]string{"TOKEN": ref})
		require.Equal(t, `"MCP server a is unavailable: `+want+` (the call was not made)"`, w.failure(t, "mcp__a__pid", `{}`))
	}
}

func TestACommandThatDoesNotExistIsAnError(t *testing.T) {
	t.Parallel()
	w := newWorker(t, nil, mcp.Server{Name: "a", Command: "/no/such/command"}, mcp.Server{Name: "b", Command: "no-such-command"})
	require.Equal(t, `"MCP server a is unavailable: command /no/such/command: no such file or directory (the call was not made)"`, w.failure(t, "mcp__a__t", `{}`))
	require.Equal(t, `"MCP server b is unavailable: command no-such-command: executable file not found in $PATH (the call was not made)"`, w.failure(t, "mcp__b__t", `{}`))
}

func TestAServerThatCrashesAtItsStartIsAnErrorWithItsOutputInTheLog(t *testing.T) {
	t.Parallel()
	w := stdio(t, "crash", map[string]string{"CODE": "env:ISSUES"})
	require.Equal(t, `"MCP server a is unavailable: the server exited: exit status 1 (the call was not made)"`, w.failure(t, "mcp__a__pid", `{}`))
	w.log.await(deadline(t), t, `msg="MCP server wrote to its standard error" server=a line="cannot start with [removed]"`)
	w.log.await(deadline(t), t, `msg="MCP server failed" server=a error="the server exited: exit status 1" restart_in=`)
}

func TestTheLogOfAServerIsCleanedAndBounded(t *testing.T) {
	t.Parallel()
	w := stdio(t, "quiet", nil)
	text, err := json.Marshal(map[string]string{"text": "\x1b[31mred\x1b[0m\x07 \u202eline\n\n" + strings.Repeat("x", 100_000) + "\n" + strings.Repeat("many\n", 1000)})
	require.NoError(t, err)
	w.value(t, "mcp__a__log", string(text))
	w.log.await(deadline(t), t, `line="red\\u0007 \\u202eline"`)
	w.log.await(deadline(t), t, "xxx… (65536 bytes in total)")
	w.log.await(deadline(t), t, "line=many")
	w.Close()
	require.Less(t, len(w.log.String()), 10_000)
	require.LessOrEqual(t, strings.Count(w.log.String(), "line=many"), 30)
}

func TestAServerThatExitsAffectsOnlyItsCall(t *testing.T) {
	t.Parallel()
	w := stdio(t, "quiet", nil)
	before := w.value(t, "mcp__a__pid", `{}`)
	require.Equal(t, `"MCP server a: the server exited: exit status 3 (the outcome of the call is unknown)"`, w.failure(t, "mcp__a__exit", `{}`))
	require.NotEqual(t, before, w.value(t, "mcp__a__pid", `{}`), "it was started again")
}

// requireTimeout calls a tool that does not return in time.
func requireTimeout(t *testing.T, w *worker, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(deadline(t), 100*time.Millisecond)
	defer cancel()
	_, isError := w.call(ctx, name, `{}`)
	require.True(t, isError)
	require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
}

func TestATimeoutAffectsOnlyItsCall(t *testing.T) {
	t.Parallel()
	w := stdio(t, "quiet", nil)
	before := w.value(t, "mcp__a__pid", `{}`)
	requireTimeout(t, w, "mcp__a__sleep")
	require.Equal(t, before, w.value(t, "mcp__a__pid", `{}`), "a server that answers is not stopped")
}

func TestAServerThatHangsIsStartedAgain(t *testing.T) {
	t.Parallel()
	w := stdio(t, "quiet", nil)
	w.GiveUpPings("a")
	before := w.value(t, "mcp__a__pid", `{}`)
	requireTimeout(t, w, "mcp__a__freeze")
	w.log.await(deadline(t), t, `msg="an MCP server does not respond" server=a`)
	w.log.await(deadline(t), t, `msg="MCP server failed" server=a`)
	require.NotEqual(t, before, w.value(t, "mcp__a__pid", `{}`))
}

func TestACancelledCallReturnsAtOnce(t *testing.T) {
	t.Parallel()
	w := stdio(t, "quiet", nil)
	w.value(t, "mcp__a__pid", `{}`)
	ctx, cancel := context.WithCancel(deadline(t))
	cancel()
	_, isError := w.call(ctx, "mcp__a__sleep", `{}`)
	require.True(t, isError)
}

func TestClosingKillsTheProcessGroupOfAServer(t *testing.T) {
	t.Parallel()
	w := stdio(t, "quiet", nil)
	pipe := filepath.Join(t.TempDir(), "alive")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	opened, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		file, err := os.Open(pipe) // returns when the descendant opens it
		close(opened)
		if err == nil {
			_, err = io.ReadAll(file) // returns when the descendant has died
		}
		ended <- err
	}()
	require.Equal(t, `"spawned"`, w.value(t, "mcp__a__spawn", fmt.Sprintf(`{"text":%q}`, pipe)))
	<-opened
	w.Close()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-deadline(t).Done():
		t.Fatal("the descendant still runs")
	}
	require.Equal(t, `"MCP server a is unavailable: the worker is stopping (the call was not made)"`, w.failure(t, "mcp__a__pid", `{}`))
}
