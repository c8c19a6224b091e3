// Command local runs services of docker-compose.yml as local processes, without Docker,
// while a command runs:
//
//	local -- go test ./e2e
//	local -- bin/starter chat
//
// It starts PostgreSQL in a new directory, sets up Temporal's schema, and starts the
// Temporal server, NATS, the S3-compatible store, the workers, the gateway and Prometheus. Then it
// runs COMMAND with TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, NATS_URL, NATS_USER, NATS_PASSWORD_FILE, BLOB_URL,
// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, GATEWAY_URL and PROMETHEUS_URL in its environment, and with the path of a
// file with the Temporal server's pid in TEMPORAL_PID_FILE. MODEL_URL is a free address at which
// COMMAND can serve a model: the workers connect to it without a key. It exits with the exit code of
// COMMAND and stops all services, on Linux even if it is killed.
//
// Guarantees:
//   - Environment, command and mounted files of each service come from docker-compose.yml, so the
//     tests cover the configuration that ships. Addresses, ports and paths are replaced, the workers
//     may use MODEL_URL, and Prometheus logs less.
//   - A service that is killed is restarted at the same address if docker-compose.yml
//     says so. If a service exits on its own, everything stops.
//   - All services listen on free ports of 127.0.0.1.
//   - The Temporal server and the workers do not inherit the caller's environment, in
//     particular no keys, so contexts have to configure a provider.
//
// It requires PostgreSQL (initdb and postgres, in any location that distributions use) and the
// programs that `make e2e-postgres` builds in bin/, worker and starter with -tags clouds.
//
// topology.go starts and stops processes; postgres.go, services.go, monitoring.go and s3.go configure them;
// compose.go reads docker-compose.yml.
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

	"github.com/seed-9ed7edd4/chronicle/internal/child"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
)

const commandGrace = 5 * time.Second // to exit after SIGTERM

func main() {
	err := run(os.Args[1:])
	var failed commandError
	switch {
	case err == nil:
	case errors.As(err, &failed):
		os.Exit(int(failed))
	case errors.Is(err, flag.ErrHelp):
		os.Exit(exit.Usage)
	default:
		fmt.Fprintln(os.Stderr, "local:", err)
		os.Exit(exit.Failure)
	}
}

func run(args []string) (err error) {
	flags := flag.NewFlagSet("local", flag.ContinueOnError)
	file := flags.String("file", "docker-compose.yml", "the compose `file`")
	bin := flags.String("bin", "bin", "`directory` with worker, starter, temporal, temporal-server, temporal-sql-tool, nats-server, versitygw and prometheus")
	dir := flags.String("dir", "", "`directory` for data and logs, kept after the run; must be empty or missing (default: a temporary directory, removed at the end)")
	workers := flags.Int("workers", -1, "`number` of workers; -1 uses the number in the compose file")
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
	// Ctrl-C also reaches the command, which decides what to do.
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		for s := range signals {
			if s != syscall.SIGINT {
				end(fmt.Errorf("stopped by signal: %v", s))
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
	credentials, err := t.credentials()
	if err != nil {
		return err
	}
	return command(life, flags.Args(), append(credentials,
		"TEMPORAL_ADDRESS="+t.temporalAddress,
		"TEMPORAL_NAMESPACE="+t.namespace,
		"TEMPORAL_CONFIG_FILE="+os.DevNull,
		"TEMPORAL_PID_FILE="+t.pidFile("temporal"),
		"NATS_URL="+t.natsURL,
		"BLOB_URL="+t.blobURL,
		"GATEWAY_URL="+t.gatewayURL,
		"PROMETHEUS_URL="+t.prometheusURL,
		"MODEL_URL="+t.modelURL,
	))
}

type commandError int

func (e commandError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// command ends when its command exits or life is done.
func command(life context.Context, args, environment []string) error {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "TEMPORAL_") || strings.HasPrefix(variable, "NATS_") ||
			strings.HasPrefix(variable, "BLOB_URL=")
	}), environment...)
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
