package child_test

import (
	"bufio"
	"io"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/child"
)

// start runs a shell script and waits until it reports that it is set up.
func start(t *testing.T, script string) *child.Process {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	stdout, output := io.Pipe()
	cmd.Stdout = output
	p, err := child.Start(cmd, child.Options{OwnGroup: true})
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Kill(-p.PID(), syscall.SIGKILL) })
	require.True(t, bufio.NewScanner(stdout).Scan())
	return p
}

func TestStop(t *testing.T) {
	t.Parallel()
	t.Run("a child that handles SIGTERM exits by itself", func(t *testing.T) {
		t.Parallel()
		p := start(t, `trap 'exit 3' TERM; echo up; while :; do sleep 0.01; done`)
		require.NoError(t, p.Stop(time.Minute))
		require.ErrorContains(t, p.Err(), "exit status 3")
	})
	t.Run("a child that ignores SIGTERM is killed with an error", func(t *testing.T) {
		t.Parallel()
		p := start(t, `trap '' TERM; echo up; while :; do sleep 0.01; done`)
		require.ErrorContains(t, p.Stop(time.Millisecond), "did not exit within 1ms of SIGTERM and was killed")
		require.ErrorContains(t, p.Err(), "signal: killed")
	})
	t.Run("stopping a child that has exited does nothing", func(t *testing.T) {
		t.Parallel()
		p := start(t, `echo up`)
		require.NoError(t, p.Err())
		require.NoError(t, p.Stop(0))
	})
}

func TestAStartErrorNamesTheProgram(t *testing.T) {
	t.Parallel()
	_, err := child.Start(exec.Command("/no/such/command"), child.Options{})
	require.ErrorContains(t, err, "start /no/such/command: ")
}
