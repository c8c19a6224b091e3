package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/seed-9ed7edd4/chronicle/internal/child"
	"github.com/seed-9ed7edd4/chronicle/terminal"
)

// commandGrace is the time that a command has to end when the worker is told
// to stop.
const commandGrace = 5 * time.Second

// commandError is the exit code of a command, not 0.
type commandError int

func (e commandError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// runCommand runs the command on the terminal until it ends, and returns how it
// ended, or until life does.
func (a *app) runCommand(life context.Context, at places) error {
	a.commandRuns.Store(true)
	cmd := exec.Command(a.settings.command[0], a.settings.command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, terminal.Raw(a.out), terminal.Raw(a.err)
	cmd.Env = commandEnvironment(os.Environ(), at)
	restore := keepTerminal(terminal.Raw(a.err))
	process, err := child.Start(cmd, child.Options{})
	if err != nil {
		return err
	}
	select {
	case <-process.Done():
		var exit *exec.ExitError
		if errors.As(process.Err(), &exit) && exit.ExitCode() > 0 {
			return commandError(exit.ExitCode())
		}
		if exit != nil {
			restore() // a signal ended it
		}
		return process.Err()
	case <-life.Done():
		err := process.Stop(commandGrace)
		restore()
		if reason := context.Cause(life); !errors.Is(reason, errTold) {
			err = errors.Join(reason, err)
		}
		return err
	}
}

// keepTerminal returns what gives the terminal back as it is now: a command that
// is killed cannot do that itself.
func keepTerminal(w io.Writer) (restore func()) {
	fd := int(os.Stdin.Fd())
	state, err := term.GetState(fd)
	if err != nil {
		return func() {} // it is none
	}
	return func() {
		// A terminal that has gone away needs nothing.
		_ = term.Restore(fd, state)
		if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
			fmt.Fprint(file, showCursor+plainPaste)
		}
	}
}

// What a screen turns on the other way, as of XTerm Control Sequences, "DECSET".
const (
	showCursor = "\x1b[?25h"
	plainPaste = "\x1b[?2004l"
)

// variableEndsAll tells a command that everything ends with it.
const variableEndsAll = "CHRONICLE_ENDS_WITH_COMMAND"

// commandEnvironment replaces whatever the environment says about Temporal, NATS
// and blobs, keys of other servers included.
func commandEnvironment(environment []string, at places) []string {
	kept := slices.DeleteFunc(slices.Clone(environment), func(variable string) bool {
		return strings.HasPrefix(variable, "TEMPORAL_") || strings.HasPrefix(variable, "NATS_") || strings.HasPrefix(variable, "BLOB_URL=")
	})
	return append(kept,
		"TEMPORAL_ADDRESS="+at.temporal.HostPort,
		"TEMPORAL_NAMESPACE="+at.temporal.Namespace,
		"TEMPORAL_CONFIG_FILE="+os.DevNull,
		"NATS_URL="+at.natsURL,
		"BLOB_URL="+at.blobURL,
		variableEndsAll+"=1",
	)
}
