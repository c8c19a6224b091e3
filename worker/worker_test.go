package main_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	sdkclient "go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/devserver"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	main "github.com/seed-9ed7edd4/chronicle/worker"
)

func TestTheWorkerPrintsItsVersion(t *testing.T) {
	t.Parallel()
	require.Regexp(t, `^worker version \d+\.\d+\.\d+(-dev)?( \([0-9a-f]+(, modified)?\))?$`, run(t, "--version").line())
}

func TestDevKeepsContextsAcrossRestarts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()

	first := dev(t, dir)
	facts := first.ready()
	require.Equal(t, "offline-echo", facts["model"])
	require.Equal(t, dir, facts["data"])
	require.Contains(t, ask(t, facts, "the first thing"), "the first thing")
	first.signal(syscall.SIGTERM)
	require.Zero(t, first.exit(), first.stderr.String())
	requireSilence(t, facts)

	second := dev(t, dir)
	facts = second.ready()
	require.Contains(t, ask(t, facts, "the second thing"), "the first thing", "the context remembers")
	second.signal(syscall.SIGINT)
	require.Zero(t, second.exit(), second.stderr.String())
	requireSilence(t, facts)
}

func TestReadinessCheckLeavesNoWorkflow(t *testing.T) {
	t.Parallel()
	worker := dev(t, t.TempDir())
	requireNoWorkflows(t, worker.ready())
	worker.signal(syscall.SIGTERM)
	require.Zero(t, worker.exit(), worker.stderr.String())
}

// requireNoWorkflows waits until the list of workflows is empty. It lags.
func requireNoWorkflows(t *testing.T, facts map[string]string) {
	t.Helper()
	c, err := sdkclient.Dial(sdkclient.Options{HostPort: facts["temporal"]})
	require.NoError(t, err)
	defer c.Close()
	var left []string
	require.Eventually(t, func() bool {
		listed, err := c.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{})
		left = nil
		for _, x := range listed.GetExecutions() {
			left = append(left, x.GetExecution().GetWorkflowId()+" "+x.GetStatus().String())
		}
		return err == nil && len(left) == 0
	}, time.Minute, 10*time.Millisecond, "%v", &left)
}

func TestNothingOutlivesAKilledWorker(t *testing.T) {
	t.Parallel()
	worker := dev(t, t.TempDir())
	facts := worker.ready()
	worker.signal(syscall.SIGKILL)
	require.Equal(t, -1, worker.exit())
	requireSilence(t, facts)
}

func TestWorkerStopsWithItsServer(t *testing.T) {
	t.Parallel()
	temporal, err := devserver.Find(t.Context(), nil)
	require.NoError(t, err)
	// Outside the checkout, the worker uses the temporal command on PATH; this one reports its
	// pid.
	bin := t.TempDir()
	pidFile := filepath.Join(bin, "pid")
	script := fmt.Sprintf("#!/bin/sh\necho $$ >%q\nexec %q \"$@\"\n", pidFile, temporal)
	require.NoError(t, os.WriteFile(filepath.Join(bin, "temporal"), []byte(script), 0o755))
	worker := prepare(t, devArgs(t.TempDir())...)
	worker.cmd.Dir = bin
	worker.cmd.Env = append(worker.cmd.Env, "PATH="+bin+":"+os.Getenv("PATH"))
	worker.start()
	worker.ready()

	content, err := os.ReadFile(pidFile)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	require.Equal(t, 1, worker.exit())
	require.Contains(t, worker.stderr.String(), "temporal server exited: signal: killed")
	require.Contains(t, worker.stderr.String(), "temporal.log")
	require.NotContains(t, worker.stderr.String(), "Metrics:")
	require.NotContains(t, worker.stderr.String(), "lost the connection to NATS", "the worker itself stops NATS")
	for line := range strings.Lines(worker.stderr.String()) {
		require.True(t, json.Valid([]byte(line)), line)
		if strings.Contains(line, "stopping after a failure") {
			require.Contains(t, line, `"error":"temporal server exited: signal: killed`)
		}
	}
	require.Contains(t, worker.stderr.String(), `"msg":"stopping after a failure"`)
}

func TestAFailedStartIsALineOfTheLog(t *testing.T) {
	t.Parallel()
	worker := run(t, "--address", "127.0.0.1:1", "--json")
	require.Equal(t, exit.Unreachable, worker.exit())
	lines := strings.Split(strings.TrimSpace(worker.stderr.String()), "\n")
	for _, line := range lines {
		require.True(t, json.Valid([]byte(line)), line)
	}
	require.Contains(t, lines[len(lines)-1], `"error":"cannot reach Temporal at 127.0.0.1:1`)
}

func TestWorkersShareTheWork(t *testing.T) {
	t.Parallel()
	server := dev(t, t.TempDir(), "--only", "activities")
	facts := server.ready()
	workflows := run(t, "--address", facts["temporal"], "--blob-url", facts["blobs"], "--nats-url", facts["nats"],
		"--nats-token-file", natsAuth(facts).TokenFile, "--only", "workflows", "--json")
	require.Equal(t, facts["temporal"], workflows.ready()["temporal"])
	require.Contains(t, ask(t, facts, "both of you"), "both of you")
	workflows.signal(syscall.SIGTERM)
	require.Zero(t, workflows.exit(), workflows.stderr.String())
	server.signal(syscall.SIGTERM)
	require.Zero(t, server.exit(), server.stderr.String())
}

func TestCheckReportsWhetherAWorkerPolls(t *testing.T) {
	t.Parallel()
	worker := dev(t, t.TempDir())
	temporal := worker.ready()["temporal"]
	tests := []struct {
		name string
		args []string
		code int
		want string
	}{
		{name: "of its task queue", code: 0},
		{name: "of another task queue", args: []string{"--task-queue", "other"}, code: 1, want: `for workflow tasks of task queue "other" within 2m0s`},
		{name: "of activities of another task queue", args: []string{"--task-queue", "other", "--only", "activities"}, code: 1, want: "for activity tasks"},
		{name: "in an unknown namespace", args: []string{"--namespace", "elsewhere"}, code: 1, want: "elsewhere"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checked := run(t, append([]string{"--check", "--address", temporal}, tt.args...)...)
			require.Equal(t, tt.code, checked.exit(), checked.stderr.String())
			require.Contains(t, checked.stderr.String(), tt.want)
		})
	}
	worker.signal(syscall.SIGTERM)
	require.Zero(t, worker.exit(), worker.stderr.String())
}

func TestTwoWorkersCannotShareADataDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lock, err := devserver.Lock(dir)
	require.NoError(t, err)
	defer lock.Close()
	second := dev(t, dir)
	require.Equal(t, 1, second.exit())
	require.Contains(t, second.stderr.String(), "in use by another process")
	require.Contains(t, second.stderr.String(), "set --data-dir")
}

func TestPortInUseIsReportedWithItsFlag(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	for _, flag := range []string{"--temporal-port", "--ui-port", "--nats-port"} {
		t.Run(flag, func(t *testing.T) {
			worker := dev(t, t.TempDir(), flag, port)
			require.Equal(t, 1, worker.exit())
			require.Contains(t, worker.stderr.String(), listener.Addr().String()+" is already in use")
			require.Contains(t, worker.stderr.String(), "set "+flag)
		})
	}
}

func TestWorkerStopsWithItsCommand(t *testing.T) {
	t.Parallel()
	t.Run("the worker passes addresses to it and returns its exit code", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		worker := dev(t, dir, "--", "/bin/sh", "-c", `echo "$TEMPORAL_ADDRESS $NATS_URL"; echo "$NATS_TOKEN_FILE"; exit 7`)
		temporal, nats, _ := strings.Cut(worker.line(), " ")
		require.FileExists(t, worker.line())
		require.Equal(t, 7, worker.exit(), worker.stderr.String())
		requireSilence(t, map[string]string{"temporal": temporal, "nats": nats, "ui": temporal})
		require.FileExists(t, filepath.Join(dir, "worker.log"))
	})
	t.Run("stopping the worker stops it", func(t *testing.T) {
		t.Parallel()
		worker := dev(t, t.TempDir(), "--", "/bin/sh", "-c", `trap 'echo stopped; exit 0' TERM; echo up; while :; do sleep 0.05; done`)
		require.Equal(t, "up", worker.line())
		worker.signal(syscall.SIGINT) // handled by the command
		worker.signal(syscall.SIGTERM)
		require.Equal(t, "stopped", worker.line())
		require.Zero(t, worker.exit(), worker.stderr.String())
	})
}

func TestWorkerWithoutAModelWarns(t *testing.T) {
	t.Parallel()
	server := dev(t, t.TempDir())
	facts := server.ready()
	temporal, blobs := facts["temporal"], facts["blobs"]
	tests := []struct {
		name, variable, model string
		warned                bool
	}{
		{name: "without a key and a URL", model: "none", warned: true},
		{name: "with a key", variable: "OPENAI_API_KEY=sk-test", model: "gpt-4o-mini"},
		{name: "with a URL", variable: "OPENAI_BASE_URL=http://127.0.0.1:1/v1", model: "gpt-4o-mini"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			worker := prepare(t, "--address", temporal, "--blob-url", blobs, "--nats-url", "none", "--json")
			worker.cmd.Env = append(worker.cmd.Env, tt.variable)
			worker.start()
			require.Equal(t, tt.model, worker.ready()["model"])
			worker.signal(syscall.SIGTERM)
			require.Zero(t, worker.exit(), worker.stderr.String())
			const warning = "cannot be answered until OPENAI_API_KEY or OPENAI_BASE_URL is set"
			require.Equal(t, tt.warned, strings.Contains(worker.stderr.String(), warning))
		})
	}
	server.signal(syscall.SIGTERM)
	require.Zero(t, server.exit(), server.stderr.String())
}

func TestWorkerWithAnotherStoreDoesNotStart(t *testing.T) {
	t.Parallel()
	server := dev(t, t.TempDir())
	temporal := server.ready()["temporal"]
	other := t.TempDir()
	worker := run(t, "--address", temporal, "--blob-url", "file://"+filepath.ToSlash(other), "--nats-url", "none")
	require.Equal(t, 1, worker.exit())
	require.Regexp(t, "namespace default: it belongs to blob store [A-Z0-9]{26}, but this process uses one without contexts: wrong blob store", worker.stderr.String())
	left, err := filepath.Glob(filepath.Join(other, "*", "*"))
	require.NoError(t, err)
	require.Empty(t, left, "nothing is written")

	_, err = client.Dial(t.Context(), client.Config{Address: temporal, NATSURL: "none", BlobURL: "file://" + filepath.ToSlash(other)})
	require.ErrorIs(t, err, client.ErrOtherStore)
	left, err = filepath.Glob(filepath.Join(other, "*", "*"))
	require.NoError(t, err)
	require.Empty(t, left, "nothing is written")
	server.signal(syscall.SIGTERM)
	require.Zero(t, server.exit(), server.stderr.String())
}

func TestOneOfTwoFirstWorkersWithDifferentStoresStarts(t *testing.T) {
	t.Parallel()
	command, err := devserver.Find(t.Context(), nil)
	require.NoError(t, err)
	server, err := devserver.Start(t.Context(), devserver.Options{Command: command, DataDir: t.TempDir(), Unsynced: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, server.Stop()) }()
	workers := make([]*running, 2)
	for i := range workers {
		workers[i] = run(t, "--address", server.Address(), "--blob-url", "file://"+filepath.ToSlash(t.TempDir()), "--nats-url", "none")
	}
	started := make(chan *running, len(workers))
	refused := make(chan *running, len(workers))
	for _, worker := range workers {
		go func() {
			if worker.stdout.Scan() {
				started <- worker
			} else {
				refused <- worker
			}
		}()
	}
	second := <-refused
	require.Equal(t, 1, second.exit())
	require.Regexp(t, "namespace default: it belongs to blob store [A-Z0-9]{26}, but this process uses ([A-Z0-9]{26}|one without contexts): wrong blob store", second.stderr.String())
	first := <-started
	first.signal(syscall.SIGTERM)
	require.Zero(t, first.exit(), first.stderr.String())
}

func TestReadyLine(t *testing.T) {
	t.Parallel()
	line := main.ReadyLine(map[string]string{"temporal": "127.0.0.1:7233", "data": "/my data"}, "temporal", "data")
	require.Equal(t, `ready temporal=127.0.0.1:7233 data="/my data"`, line)
}

func TestAttachmentsAreReadFromTheirDirectoryOnly(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	dir := filepath.Join(parent, "shared")
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(parent, "secret"), []byte("no"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("yes"), 0o600))
	require.NoError(t, os.Symlink(filepath.Join(parent, "secret"), filepath.Join(dir, "link")))
	read, err := main.AttachmentReader(dir)
	require.NoError(t, err)

	for _, path := range []string{"a.txt", filepath.Join(dir, "a.txt"), "./a.txt"} {
		content, err := read(path)
		require.NoError(t, err, path)
		require.Equal(t, "yes", string(content))
	}
	for _, path := range []string{"../other", filepath.Join(parent, "secret"), "link", "", ".", dir} {
		_, err := read(path)
		require.Error(t, err, path)
	}

	for size, want := range map[int64]string{
		event.MaxAttachmentBytes:     "",
		event.MaxAttachmentBytes + 1: "out of range (at most 20971520)",
	} {
		require.NoError(t, os.Truncate(filepath.Join(dir, "a.txt"), size))
		content, err := read("a.txt")
		if want == "" {
			require.NoError(t, err)
			require.Len(t, content, int(size))
			continue
		}
		require.ErrorContains(t, err, want)
	}

	none, err := main.AttachmentReader("")
	require.NoError(t, err)
	require.Nil(t, none)
}

func TestToolsAreUsedByContextsThatNameThem(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "notes.txt"), []byte("buy apples"), 0o600))
	for i := range 500 {
		require.NoError(t, os.WriteFile(filepath.Join(root, fmt.Sprintf("%04d-%s", i, strings.Repeat("n", 100))), nil, 0o600))
	}
	worker := dev(t, t.TempDir(), "--tool-files-root", root)
	facts := worker.ready()
	demo, err := dial(t, facts).Open("demo")
	require.NoError(t, err)
	use := func(names ...string) event.Event {
		var tools event.ToolList
		for _, name := range names {
			tools = append(tools, event.Tool{Pattern: name})
		}
		return event.New(event.SetTools{Tools: tools})
	}
	// say sends events and returns the result of the tool call and the end of the request.
	say := func(events ...event.Event) (result event.ToolResult, end event.Body) {
		t.Helper()
		for e, err := range demo.Ask(t.Context(), events...) {
			require.NoError(t, err)
			switch body := e.Body.(type) {
			case event.ToolResult:
				result = body
			case event.LLMRequestCompleted, event.LLMRequestFailed:
				end = body
			}
		}
		return result, end
	}
	message := func(content string) event.Event { return event.New(event.UserMessage{Content: content}) }

	result, end := say(use("read_file", "list_files", "search_log"), message(`/call read_file {"path":"notes.txt"}`))
	require.JSONEq(t, `"buy apples"`, string(result.Value))
	require.IsType(t, event.LLMRequestCompleted{}, end)
	result, _ = say(message(`/call read_file {"path":"../other"}`))
	require.JSONEq(t, `"path \"../other\": outside of the root"`, string(result.Error))
	result, _ = say(message(`/call search_log {"query":"notes.txt"}`))
	require.Contains(t, string(result.Value), "tool call: read_file")
	require.Contains(t, string(result.Value), "demo:0003 ")

	result, _ = say(message("/call list_files")) // exceeds 32 KiB
	ref := regexp.MustCompile(`ref \\"([0-9a-f]{64})\\"`).FindSubmatch(result.Value)
	require.Len(t, ref, 2, string(result.Value))
	require.NotContains(t, string(result.Value), "0300-n")
	result, _ = say(message(fmt.Sprintf(`/call read_result {"ref":%q,"offset":24000}`, ref[1])))
	require.Contains(t, string(result.Value), "0300-n")

	_, end = say(use("fetch"), message("/call fetch"))
	failed, isFailed := end.(event.LLMRequestFailed)
	require.True(t, isFailed)
	require.Equal(t, event.FailureBadRequest, failed.Kind)
	require.Contains(t, failed.Error, "tools of context demo: fetch is not enabled on this worker (start it with --tool-fetch)")
	require.Zero(t, failed.RetriesAttempted)
	worker.signal(syscall.SIGTERM)
	require.Zero(t, worker.exit(), worker.stderr.String())
}
