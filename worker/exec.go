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
	"github.com/seed-9ed7edd4/chronicle/internal/config"
	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
)

// commandGrace is the time for a COMMAND to exit when the worker stops.
const commandGrace = 5 * time.Second

type commandError int

func (e commandError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func (a *app) runCommand(life context.Context, at endpoints) error {
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
			restore() // it was killed
		}
		return process.Err()
	case <-life.Done():
		err := process.Stop(commandGrace)
		restore()
		if reason := context.Cause(life); !errors.Is(reason, errStopped) {
			err = errors.Join(reason, err)
		}
		return err
	}
}

// A killed command cannot restore the terminal.
func keepTerminal(w io.Writer) (restore func()) {
	fd := int(os.Stdin.Fd())
	state, err := term.GetState(fd)
	if err != nil {
		return func() {} // not a terminal
	}
	return func() {
		// Ignore a terminal that is gone.
		_ = term.Restore(fd, state)
		if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
			fmt.Fprint(file, showCursor+plainPaste+plainKeys)
		}
	}
}

// Defaults of the terminal modes that full-screen programs change (XTerm Control Sequences, "DECSET" and
// "XTMODKEYS"; https://sw.kovidgoyal.net/kitty/keyboard-protocol).
const (
	showCursor = "\x1b[?25h"
	plainPaste = "\x1b[?2004l"
	plainKeys  = "\x1b[>4m" + "\x1b[<u"
)

// variableEndsAll tells a COMMAND that everything stops when it exits.
const variableEndsAll = "CHRONICLE_ENDS_WITH_COMMAND"

// commandEnvironment points COMMAND at the servers of --dev. It drops the settings of other servers, so
// that credentials for those are not sent to the servers of --dev.
func commandEnvironment(environment []string, at endpoints) []string {
	kept := slices.DeleteFunc(slices.Clone(environment), func(variable string) bool {
		return strings.HasPrefix(variable, "TEMPORAL_") || strings.HasPrefix(variable, "NATS_") || strings.HasPrefix(variable, "BLOB_URL=") || strings.HasPrefix(variable, config.VariableFile+"=")
	})
	return append(kept,
		"TEMPORAL_ADDRESS="+at.temporal.HostPort,
		"TEMPORAL_NAMESPACE="+at.temporal.Namespace,
		"TEMPORAL_CONFIG_FILE="+os.DevNull,
		"NATS_URL="+at.natsURL,
		"NATS_TOKEN_FILE="+at.natsAuth.TokenFile,
		"BLOB_URL="+at.blobURL,
		variableEndsAll+"=1",
	)
}
