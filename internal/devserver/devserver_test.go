package devserver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/internal/devserver"
)

// parentOf is set to the data directory when this test binary runs as a parent process
// that holds a server and a lock until it is killed.
const parentOf = "DEVSERVER_TEST_PARENT_OF"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentOf); dir != "" {
		hold(dir)
	}
	os.Exit(m.Run())
}

// hold starts a server, prints its address, and blocks.
func hold(dir string) {
	lock, err := devserver.Lock(dir)
	exitOn(err)
	defer lock.Close()
	command, err := devserver.Find(context.Background(), nil)
	exitOn(err)
	server, err := devserver.Start(context.Background(), devserver.Options{Command: command, DataDir: dir})
	exitOn(err)
	fmt.Println(server.Address())
	<-server.Done()
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// start starts a server and stops it at the end of the test.
func start(t *testing.T, options devserver.Options) *devserver.Server {
	t.Helper()
	command, err := devserver.Find(t.Context(), func(message string) { t.Log(message) })
	require.NoError(t, err)
	options.Command = command
	server, err := devserver.Start(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	return server
}

func dial(t *testing.T, server *devserver.Server) client.Client {
	t.Helper()
	c, err := client.DialContext(t.Context(), client.Options{HostPort: server.Address(), Namespace: server.Namespace()})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func TestWorkflowsSurviveARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()

	first := start(t, devserver.Options{DataDir: dir})
	_, err := dial(t, first).ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "kept", TaskQueue: "q"}, "W")
	require.NoError(t, err)
	require.NoError(t, first.Stop())
	requireSilence(t, first.Address())

	second := start(t, devserver.Options{DataDir: dir})
	described, err := dial(t, second).DescribeWorkflowExecution(t.Context(), "kept", "")
	require.NoError(t, err)
	require.Equal(t, "W", described.WorkflowExecutionInfo.GetType().GetName())
}

func TestStartReturnsAReadyServer(t *testing.T) {
	t.Parallel()
	ports, err := devserver.FreePorts(0)
	require.NoError(t, err)
	server := start(t, devserver.Options{DataDir: t.TempDir(), Namespace: "talks", Untuned: true, MetricsPort: ports[0]})

	t.Run("the namespace keeps closed workflows for ten years", func(t *testing.T) {
		described, err := dial(t, server).WorkflowService().DescribeNamespace(t.Context(),
			&workflowservice.DescribeNamespaceRequest{Namespace: "talks"})
		require.NoError(t, err)
		require.Equal(t, devserver.Retention, described.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration())
	})
	t.Run("the web UI responds", func(t *testing.T) {
		response, err := http.Get(server.UIURL())
		require.NoError(t, err)
		defer response.Body.Close()
		require.Equal(t, http.StatusOK, response.StatusCode)
	})
	t.Run("the metrics are served", func(t *testing.T) {
		response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", ports[0]))
		require.NoError(t, err)
		defer response.Body.Close()
		require.Equal(t, http.StatusOK, response.StatusCode)
	})
	t.Run("a second server on the same port is a PortError", func(t *testing.T) {
		_, portText, err := net.SplitHostPort(server.Address())
		require.NoError(t, err)
		port, err := net.LookupPort("tcp", portText)
		require.NoError(t, err)
		_, err = devserver.Start(t.Context(), devserver.Options{Command: "unused", DataDir: t.TempDir(), Port: port})
		var inUse *devserver.PortError
		require.ErrorAs(t, err, &inUse)
		require.Equal(t, port, inUse.Port)
	})
}

func TestAServerThatExitsReportsItsStatus(t *testing.T) {
	t.Parallel()
	t.Run("while it starts", func(t *testing.T) {
		command := filepath.Join(t.TempDir(), "temporal")
		require.NoError(t, os.WriteFile(command, []byte("#!/bin/sh\necho no room left >&2\nexit 3\n"), 0o755))
		_, err := devserver.Start(t.Context(), devserver.Options{Command: command, DataDir: t.TempDir()})
		require.ErrorContains(t, err, "temporal server exited: exit status 3")
		require.ErrorContains(t, err, "no room left")
		require.ErrorContains(t, err, "temporal.log")
	})
	t.Run("later", func(t *testing.T) {
		server := start(t, devserver.Options{DataDir: t.TempDir()})
		process, err := os.FindProcess(server.PID())
		require.NoError(t, err)
		require.NoError(t, process.Kill())
		<-server.Done()
		require.ErrorContains(t, server.Err(), "signal: killed")
	})
}

func TestStartTriesAgainIfAPortWasTakenInTheMeantime(t *testing.T) {
	t.Parallel()
	temporal, err := devserver.Find(t.Context(), func(message string) { t.Log(message) })
	require.NoError(t, err)
	for name, line := range map[string]string{
		"of the Web UI": `{"time":"2026-01-02T03:04:05Z","level":"FATAL","prefix":"echo","file":"server.go","line":"152","message":"listen tcp 127.0.0.1:8233: bind: address already in use"}`,
		"of the server": `level=ERROR msg="Failed to start gRPC listener" error="listen tcp 127.0.0.1:7233: bind: address already in use"` +
			"\n" + "panic: unable to start\n\ngoroutine 1 [running]:\n" + strings.Repeat("main.main()\n\tmain.go:18 +0x96\n", 10),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			command := filepath.Join(dir, "temporal")
			script := fmt.Sprintf("#!/bin/sh\nmkdir %s/tried 2>/dev/null && echo '%s' >&2 && exit 1\nexec %s \"$@\"\n", dir, line, temporal)
			require.NoError(t, os.WriteFile(command, []byte(script), 0o755))
			server, err := devserver.Start(t.Context(), devserver.Options{Command: command, DataDir: dir})
			require.NoError(t, err)
			require.DirExists(t, filepath.Join(dir, "tried"))
			require.NoError(t, server.Stop())
		})
	}
}

func TestACanceledStartLeavesNoProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pidFile := filepath.Join(dir, "pid")
	command := filepath.Join(dir, "temporal")
	require.NoError(t, os.WriteFile(command, []byte("#!/bin/sh\necho $$ >"+pidFile+"\nexec sleep 600\n"), 0o755))
	ctx, cancel := context.WithCancel(t.Context())
	var pid int
	go func() {
		defer cancel()
		for ctx.Err() == nil {
			content, _ := os.ReadFile(pidFile)
			if n, _ := fmt.Sscan(string(content), &pid); n == 1 && strings.HasSuffix(string(content), "\n") {
				return
			}
		}
	}()
	_, err := devserver.Start(ctx, devserver.Options{Command: command, DataDir: dir})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "process %d is still there", pid)
}

func TestAKilledParentLeavesNeitherServerNorLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	executable, err := os.Executable()
	require.NoError(t, err)
	parent := exec.Command(executable)
	parent.Env = append(os.Environ(), parentOf+"="+dir)
	parent.Stderr = os.Stderr
	stdout, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	t.Cleanup(func() {
		_ = parent.Process.Kill()
		_, _ = parent.Process.Wait()
	})
	var address string
	_, err = fmt.Fscanln(stdout, &address)
	require.NoError(t, err, "the parent ended before its server was ready")

	_, err = devserver.Lock(dir)
	require.ErrorIs(t, err, devserver.ErrLocked)

	require.NoError(t, parent.Process.Kill())
	_, err = io.Copy(io.Discard, stdout)
	require.NoError(t, err)
	_, err = parent.Process.Wait()
	require.NoError(t, err)
	requireSilence(t, address)
	lock, err := devserver.Lock(dir)
	require.NoError(t, err)
	require.NoError(t, lock.Close())
}

// requireSilence waits until nothing listens on an address.
func requireSilence(t *testing.T, address string) {
	t.Helper()
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	}, time.Minute, 10*time.Millisecond, "something still listens at %s", address)
}
