package main_test

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// openTerminal returns both ends of a pseudo-terminal: that of the terminal and that of a program.
func openTerminal(t *testing.T) (terminal, program *os.File) {
	t.Helper()
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	var unlocked, number int32
	for request, argument := range map[uintptr]*int32{syscall.TIOCSPTLCK: &unlocked, syscall.TIOCGPTN: &number} {
		_, _, failed := syscall.Syscall(syscall.SYS_IOCTL, terminal.Fd(), request, uintptr(unsafe.Pointer(argument)))
		require.Zero(t, failed)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	return terminal, program
}

func TestAWorkerStopsWhenItsTerminalCloses(t *testing.T) {
	t.Parallel()
	// If the tests run under nohup, the worker would ignore the signal, too.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	defer signal.Stop(signals)
	terminal, program := openTerminal(t)
	worker := prepare(t, devArgs(t.TempDir())...)
	worker.cmd.Stdin = program
	worker.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	worker.start()
	require.NoError(t, program.Close())
	facts := worker.ready()
	worker.signal(syscall.SIGHUP) // reloads while the terminal is open
	require.Contains(t, ask(t, facts, "still here"), "still here")
	require.NoError(t, terminal.Close())
	require.Zero(t, worker.exit(), worker.stderr.String())
	requireSilence(t, facts)
	require.Contains(t, worker.stderr.String(), "reloaded the configuration")
}
