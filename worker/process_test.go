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
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/devserver"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
	main "github.com/seed-9ed7edd4/chronicle/worker"
)

// asWorker makes a copy of the test binary run the worker.
const asWorker = "CHRONICLE_TEST_AS_WORKER"

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
	r.cmd.WaitDelay = time.Minute
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
		}, time.Minute, 10*time.Millisecond, "%s still listens at %s", key, address)
	}
}

// natsAuth returns the credentials for NATS of a worker --dev.
func natsAuth(facts map[string]string) stream.Auth {
	return stream.Auth{TokenFile: filepath.Join(facts["data"], stream.DevToken)}
}

func dial(t *testing.T, facts map[string]string) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), client.Config{Address: facts["temporal"], NATSURL: facts["nats"], NATSAuth: natsAuth(facts)})
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
