// Command worker runs the contexts: it takes their workflows and activities
// from Temporal, asks the models, and says over NATS what they answer.
//
//	worker                  # works for the Temporal at TEMPORAL_ADDRESS
//	worker --dev            # starts Temporal, NATS and, without a key, a model first
//	worker --dev -- COMMAND # the same for as long as COMMAND runs
//
// The way through the code: command.go reads the flags; run.go is the life of a
// worker; dev.go, with package devserver, starts what --dev starts; start.go
// connects and starts a worker of package contexts; ready.go makes sure that a
// context can answer before announce.go says so; check.go is --check.
//
// What it guarantees:
//   - After "ready" a message to a context is answered, unless the line says
//     model=none and the context chose no provider of its own.
//   - SIGINT, SIGTERM and SIGHUP end it in order: running answers finish or are
//     handed back to Temporal first, what --dev started goes last. A second
//     signal ends it at once.
//   - Nothing that it started outlives it; on Linux not even when it is killed.
package main

import (
	"context"
	"os"
)

func main() {
	app := &app{out: os.Stdout, err: os.Stderr, getenv: os.Getenv}
	os.Exit(execute(context.Background(), app, os.Args[1:]))
}
