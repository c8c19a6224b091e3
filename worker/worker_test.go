package main_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	sdkclient "go.temporal.io/sdk/client"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/devserver"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	main "github.com/seed-9ed7edd4/chronicle/worker"
)

// asWorker makes a copy of the test binary run the worker.
const asWorker = "CHRONICLE_TEST_AS_WORKER"

func TestTheWorkerPrintsItsVersion(t *testing.T) {
	t.Parallel()
	require.Regexp(t, `^worker version \d+\.\d+\.\d+(-dev)?( \([0-9a-f]+(, modified)?\))?$`, run(t, "--version").line())
}

func TestMain(m *testing.M) {
	if os.Getenv(asWorker) != "" {
		main.Main()
		return
	}
	if os.Getenv(asMCPServer) != "" {
		serveMCP()
		return
	}
	// Build the server once, rather than in all workers at the same time.
	if _, err := devserver.Find(context.Background(), func(message string) { fmt.Fprintln(os.Stderr, message) }); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// running is a worker in a process of its own.
type running struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout *bufio.Scanner
	stderr bytes.Buffer
}

// run starts a worker.
func run(t *testing.T, args ...string) *running {
	t.Helper()
	r := prepare(t, args...)
	r.start()
	return r
}

// prepare returns a worker without keys in its environment.
func prepare(t *testing.T, args ...string) *running {
	t.Helper()
	executable, err := os.Executable()
	require.NoError(t, err)
	r := &running{t: t, cmd: exec.Command(executable, args...)}
	r.cmd.Env = []string{asWorker + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	if !slices.Contains(args, "--dev") {
		r.cmd.Dir = t.TempDir() // for the default store; --dev needs the current directory to find its server
	}
	r.cmd.Stderr = &r.stderr
	r.cmd.WaitDelay = 10 * time.Second
	stdout, err := r.cmd.StdoutPipe()
	require.NoError(t, err)
	r.stdout = bufio.NewScanner(stdout)
	return r
}

func (r *running) start() {
	r.t.Helper()
	require.NoError(r.t, r.cmd.Start())
	r.t.Cleanup(func() { _ = r.cmd.Process.Kill() })
}

// dev starts worker --dev on free ports.
func dev(t *testing.T, dataDir string, args ...string) *running {
	t.Helper()
	return run(t, devArgs(dataDir, args...)...)
}

func devArgs(dataDir string, args ...string) []string {
	return append([]string{
		"--dev", "--json", "--data-dir", dataDir,
		"--temporal-port", "0", "--ui-port", "0", "--nats-port", "0", "--offline-token-delay", "0",
	}, args...)
}

// line waits for a line on standard output.
func (r *running) line() string {
	r.t.Helper()
	if !r.stdout.Scan() {
		require.FailNow(r.t, "no line on stdout", "exit code %d, stderr:\n%s", r.exit(), r.stderr.String())
	}
	return r.stdout.Text()
}

// ready waits for the ready line.
func (r *running) ready() (facts map[string]string) {
	r.t.Helper()
	require.NoError(r.t, json.Unmarshal([]byte(r.line()), &facts))
	require.Equal(r.t, "ready", facts["msg"])
	return facts
}

func (r *running) signal(s syscall.Signal) {
	r.t.Helper()
	require.NoError(r.t, r.cmd.Process.Signal(s))
}

// exit waits for the process and returns its exit code, -1 if it was killed.
func (r *running) exit() int {
	r.t.Helper()
	err := r.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(r.t, err)
	}
	return r.cmd.ProcessState.ExitCode()
}

// requireSilence waits until no server of the worker listens any more.
func requireSilence(t *testing.T, facts map[string]string) {
	t.Helper()
	for _, key := range []string{"temporal", "ui", "nats"} {
		_, address, found := strings.Cut(facts[key], "://")
		if !found {
			address = facts[key]
		}
		require.Eventually(t, func() bool {
			conn, err := net.Dial("tcp", address)
			if err == nil {
				_ = conn.Close()
			}
			return errors.Is(err, syscall.ECONNREFUSED)
		}, 10*time.Second, 10*time.Millisecond, "%s still listens at %s", key, address)
	}
}

func dial(t *testing.T, facts map[string]string) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), client.Config{Address: facts["temporal"], NATSURL: facts["nats"]})
	require.NoError(t, err)
	t.Cleanup(c.Shutdown)
	return c
}

// ask returns the answer of the context "demo".
func ask(t *testing.T, facts map[string]string, content string) string {
	t.Helper()
	demo, err := dial(t, facts).Open("demo")
	require.NoError(t, err)
	var answer string
	for e, err := range demo.Ask(t.Context(), event.New(event.UserMessage{Content: content})) {
		require.NoError(t, err)
		if message, ok := e.Body.(event.AssistantMessage); ok {
			answer = message.Content
		}
	}
	return answer
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
	facts := worker.ready()
	c, err := sdkclient.Dial(sdkclient.Options{HostPort: facts["temporal"]})
	require.NoError(t, err)
	defer c.Close()
	require.Eventually(t, func() bool {
		listed, err := c.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{})
		return err == nil && len(listed.GetExecutions()) == 0
	}, 10*time.Second, 10*time.Millisecond)
	worker.signal(syscall.SIGTERM)
	require.Zero(t, worker.exit(), worker.stderr.String())
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
}

func TestWorkersShareTheWork(t *testing.T) {
	t.Parallel()
	server := dev(t, t.TempDir(), "--only", "activities")
	facts := server.ready()
	workflows := run(t, "--address", facts["temporal"], "--blob-url", facts["blobs"], "--nats-url", facts["nats"], "--only", "workflows", "--json")
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
	defer lock.Unlock()
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
		worker := dev(t, dir, "--", "/bin/sh", "-c", `echo "$TEMPORAL_ADDRESS $NATS_URL"; exit 7`)
		temporal, nats, _ := strings.Cut(worker.line(), " ")
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

func TestOfTwoFirstWorkersWithDifferentStoresOneStarts(t *testing.T) {
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

func TestInvalidBaseURLIsAUsageError(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--dev", "--data-dir", t.TempDir(), "--temporal-port", "0", "--ui-port", "0", "--nats-port", "0"}, {}} {
		worker := prepare(t, args...)
		worker.cmd.Env = append(worker.cmd.Env, "OPENAI_BASE_URL=https://me:secret@")
		worker.start()
		require.Equal(t, 2, worker.exit())
		require.Contains(t, worker.stderr.String(), "OPENAI_BASE_URL: contains an @")
		require.NotContains(t, worker.stderr.String(), "secret")
	}
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	invalidProviders, err := filepath.Abs("testdata/invalid.toml")
	require.NoError(t, err)
	tests := []struct {
		name string
		args []string
		code int
		want string
	}{
		{name: "an unknown flag", args: []string{"--prod"}, code: 2, want: "unknown flag: --prod"},
		{name: "an unexpected argument", args: []string{"now"}, code: 2, want: `unexpected argument "now"`},
		{name: "a check with dev", args: []string{"--dev", "--check"}, code: 2, want: "--check: cannot be used with --dev"},
		{name: "a check of an unreachable server", args: []string{"--check", "--address", "127.0.0.1:1"}, code: 4, want: "cannot reach Temporal at 127.0.0.1:1"},
		{name: "a command without dev", args: []string{"--", "ls"}, code: 2, want: "COMMAND: requires --dev"},
		{name: "a flag of dev without it", args: []string{"--ui-port", "1"}, code: 2, want: "--ui-port: requires --dev"},
		{name: "an address with dev", args: []string{"--dev", "--address", "a:1"}, code: 2, want: "--address: cannot be used with --dev"},
		{name: "an invalid port", args: []string{"--dev", "--ui-port", "65536"}, code: 2, want: "--ui-port 65536: want 0 to 65535"},
		{name: "an invalid part", args: []string{"--only", "queries"}, code: 2, want: `--only "queries": want workflows or activities`},
		{name: "no store", args: []string{"--blob-url", "none"}, code: 2, want: `--blob-url or BLOB_URL "none": a worker requires a blob store`},
		{name: "no store with dev", args: []string{"--dev", "--blob-url", "none"}, code: 2, want: `--blob-url or BLOB_URL "none": a worker requires a blob store`},
		{name: "a negative delay", args: []string{"--dev", "--offline-token-delay", "-1s"}, code: 2, want: "--offline-token-delay -1s: want 0s or more"},
		{name: "a removed flag", args: []string{"--key-refs", ""}, code: 2, want: "unknown flag: --key-refs"},
		{name: "an invalid base URL", args: []string{"--allow-base-url", "http://me:s3cr3t@host"}, code: 2, want: "--allow-base-url: contains an @"},
		{name: "a missing providers file", args: []string{"--providers", "no/such.toml"}, code: 2, want: "--providers: open no/such.toml"},
		{name: "an invalid providers file", args: []string{"--providers", invalidProviders}, code: 2, want: `invalid.toml: provider "house": base_url: missing`},
		{name: "a missing directory", args: []string{"--attachments-dir", "no/such"}, code: 1, want: "--attachments-dir: open "},
		{name: "a missing root of files", args: []string{"--tool-files-root", "no/such"}, code: 1, want: "--tool-files-root: open "},
		{name: "a missing file of MCP servers", args: []string{"--mcp", "no/such.json"}, code: 2, want: "--mcp: open no/such.json"},
		{name: "a missing profile", args: []string{"--profile", "nowhere"}, code: 1, want: "nowhere"},
		{name: "an unreachable server", args: []string{"--address", "127.0.0.1:1"}, code: 4, want: "cannot reach Temporal at 127.0.0.1:1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			worker := run(t, tt.args...)
			require.Equal(t, tt.code, worker.exit())
			require.Contains(t, worker.stderr.String(), tt.want)
			require.NotContains(t, worker.stderr.String(), "s3cr3t")
		})
	}
}

func TestEnvironmentMustAgreeWithTheProvidersFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "providers.toml")
	require.NoError(t, os.WriteFile(file, []byte("[providers.openai]\nbase_url = \"https://llm.example.com/v1\"\n"), 0o600))
	worker := prepare(t, "--providers", file)
	worker.cmd.Env = append(worker.cmd.Env, "OPENAI_BASE_URL=https://other.example.com/v1")
	worker.start()
	require.Equal(t, 2, worker.exit())
	require.Contains(t, worker.stderr.String(), `provider "openai": base_url: OPENAI_BASE_URL names another URL (unset one of them)`)
}

// TestProvidersFile starts a worker with a file that configures the default provider and one
// whose key is missing, and sends messages to both.
func TestProvidersFile(t *testing.T) {
	t.Parallel()
	model := llmtest.Start(t, llmtest.Answer("From the file."))
	file := filepath.Join(t.TempDir(), "providers.toml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil,
		"[providers.openai]\nbase_url = %q\nkey = \"env:HOUSE_KEY\"\n[providers.spare]\nbase_url = %q\nkey = \"env:SPARE_KEY\"\n", model.URL, model.URL), 0o600))
	worker := prepare(t, devArgs(t.TempDir(), "--providers", file)...)
	worker.cmd.Env = append(worker.cmd.Env, "HOUSE_KEY=key-of-house", "XAI_API_KEY=key-of-xai")
	worker.start()
	facts := worker.ready()
	require.Equal(t, "gpt-4o-mini", facts["model"])
	c, err := client.Dial(t.Context(), client.Config{Address: facts["temporal"], NATSURL: facts["nats"]})
	require.NoError(t, err)
	defer c.Shutdown()
	last := func(name string, events ...event.Event) event.Body {
		demo, err := c.Open(name)
		require.NoError(t, err)
		var body event.Body
		for e, err := range demo.Ask(t.Context(), append(events, event.New(event.UserMessage{Content: "Hello"}))...) {
			require.NoError(t, err)
			body = e.Body
		}
		return body
	}
	require.IsType(t, event.LLMRequestCompleted{}, last("file"))
	require.Equal(t, "Bearer key-of-house", model.Requests()[0].Header.Get("Authorization"))

	failed := last("missing", event.New(event.SetProviderConfig{ProviderID: "spare", Model: "m"}))
	require.Contains(t, failed.(event.LLMRequestFailed).Error, "set SPARE_KEY for the worker")
	failed = last("elsewhere", event.New(event.SetProviderConfig{ProviderID: "mine", Model: "m", BaseURL: "http://169.254.169.254/v1"}))
	require.Contains(t, failed.(event.LLMRequestFailed).Error, "--allow-base-url http://169.254.169.254/v1")
	failed = last("key", event.New(event.SetProviderConfig{ProviderID: "mine", Model: "m", BaseURL: model.URL, APIKeyRef: "env:XAI_API_KEY"}))
	require.Contains(t, failed.(event.LLMRequestFailed).Error, "the key env:XAI_API_KEY is not configured for "+model.URL)

	worker.signal(syscall.SIGTERM)
	require.Zero(t, worker.exit(), worker.stderr.String())
	require.Contains(t, worker.stderr.String(), "a provider in --providers has no key")
	require.NotContains(t, worker.stderr.String(), "key-of-")
	require.Len(t, model.Requests(), 1)
}

func TestWithoutATemporaryFileTheWorkerKeepsSessionsInMemory(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	core, logs := observer.New(zap.WarnLevel)
	require.EqualValues(t, 1000, main.CacheBudget(1000, zap.New(core)))
	require.Empty(t, logs.All())
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	require.Zero(t, main.CacheBudget(1000, zap.New(core)))
	require.Len(t, logs.All(), 1)
	require.Contains(t, fmt.Sprint(logs.All()[0].ContextMap()["error"]), "set TMPDIR")
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
