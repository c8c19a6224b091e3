// Command local runs the services of docker-compose.yml as processes on this
// machine, without Docker, for as long as a command runs:
//
//	local -- go test ./e2e
//	local -- bin/starter chat
//
// It starts PostgreSQL in a directory of its own, sets up Temporal's schema,
// starts the Temporal server, makes the namespace, starts NATS and the workers,
// and then COMMAND with TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, NATS_URL and BLOB_URL in its
// environment, and in TEMPORAL_PID_FILE a file with the pid of the Temporal server.
// COMMAND's exit code is its own. All that it started ends with it, on Linux even
// when it is killed.
//
// What it guarantees:
//   - A service is told what docker-compose.yml tells it: its environment, its
//     command and its mounted files come from there. Only addresses, ports and
//     paths are replaced, so what is tested is what is shipped.
//   - A service that is killed is started again if docker-compose.yml says so, at
//     the same address. One that ends by itself ends everything.
//   - Everything listens on 127.0.0.1, on ports that were free.
//   - Nothing of the caller's environment reaches a service, keys least of all:
//     contexts have to name their provider.
//
// It needs PostgreSQL installed (initdb and postgres, of any place that the
// distributions use) and the programs of `make e2e-postgres` in bin/.
//
// The way through the code: topology.go starts and stops processes, postgres.go
// and services.go know one service each after the other, compose.go reads what
// they are told.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/seed-9ed7edd4/chronicle/worker/child"
)

// commandGrace is the time that the command has to end when everything does.
const commandGrace = 5 * time.Second

func main() {
	err := run(os.Args[1:])
	var exit commandError
	switch {
	case err == nil:
	case errors.As(err, &exit):
		os.Exit(int(exit))
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "local:", err)
		os.Exit(1)
	}
}

func run(args []string) (err error) {
	flags := flag.NewFlagSet("local", flag.ContinueOnError)
	file := flags.String("file", "docker-compose.yml", "the compose `file`")
	bin := flags.String("bin", "bin", "`directory` of worker, temporal, temporal-server, temporal-sql-tool and nats-server")
	dir := flags.String("dir", "", "`directory` for data and logs, which stay; must be empty or missing; default: a temporary one")
	workers := flags.Int("workers", -1, "how many workers to start; -1: as many as the compose file says")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: local [flags] -- COMMAND [ARGUMENT...]")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return flag.ErrHelp
	}
	if flags.NArg() == 0 {
		flags.Usage()
		return flag.ErrHelp
	}

	life, end := context.WithCancelCause(context.Background())
	defer end(nil)
	signals := make(chan os.Signal, 1)
	// A Ctrl-C reaches the command by itself, and what it means is its business.
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		for s := range signals {
			if s != syscall.SIGINT {
				end(fmt.Errorf("told to stop: %v", s))
			}
		}
	}()

	t := &topology{end: end, workers: *workers}
	if t.bin, err = filepath.Abs(*bin); err != nil {
		return err
	}
	if t.compose, err = load(life, *file); err != nil {
		return err
	}
	if t.dir = *dir; t.dir == "" {
		if t.dir, err = os.MkdirTemp("", "chronicle-"); err != nil {
			return err
		}
		defer os.RemoveAll(t.dir)
	}
	defer func() { err = errors.Join(err, t.stop()) }()
	if err := t.start(life); err != nil {
		return err
	}
	return t.command(life, flags.Args())
}

// commandError is the exit code of the command, not 0.
type commandError int

func (e commandError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// command runs the command until it ends or life does.
func (t *topology) command(life context.Context, args []string) error {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "TEMPORAL_") || strings.HasPrefix(variable, "NATS_URL=") ||
			strings.HasPrefix(variable, "BLOB_URL=")
	}),
		"TEMPORAL_ADDRESS="+t.temporalAddress,
		"TEMPORAL_NAMESPACE="+t.namespace,
		"TEMPORAL_CONFIG_FILE="+os.DevNull,
		"TEMPORAL_PID_FILE="+t.pidFile("temporal"),
		"NATS_URL="+t.natsURL,
		"BLOB_URL="+t.blobURL(),
	)
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
		return process.Err()
	case <-life.Done():
		return errors.Join(context.Cause(life), process.Stop(commandGrace))
	}
}
