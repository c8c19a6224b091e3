// Command worker runs contexts. It executes their workflows and activities for Temporal, sends
// requests to the models and streams the answers over NATS.
//
//	worker                  # connect to Temporal at TEMPORAL_ADDRESS
//	worker --dev            # also start Temporal, NATS and, without a default model, a stand-in
//	worker --dev -- COMMAND # stop when COMMAND exits
//
// command.go parses the flags. run.go starts and stops a worker. dev.go, with package
// devserver, implements --dev. start.go connects and starts a worker of package contexts.
// ready.go checks that a context can answer before announce.go prints the ready line.
// reload.go applies a changed configuration. check.go implements --check. doctor.go checks the
// deployment at the start, and for `starter doctor`.
//
// Guarantees:
//   - After "ready", messages to contexts are answered, except with model=none in contexts
//     without a provider of their own.
//   - SIGINT, SIGTERM and a closed terminal stop the worker gracefully: running answers finish or are
//     handed back to Temporal, then the servers of --dev stop. A second signal ends the process at
//     once.
//   - SIGHUP reloads the providers and the log level. Attempts that have begun keep their provider,
//     and an invalid configuration changes nothing.
//   - No process that it started outlives it, on Linux even if it is killed.
package main

import (
	"context"
	"os"

	"github.com/seed-9ed7edd4/chronicle/internal/gc"
)

func main() {
	gc.Relax(os.Getenv)
	app := &app{out: os.Stdout, err: os.Stderr, getenv: os.Getenv}
	os.Exit(execute(context.Background(), app, os.Args[1:]))
}
