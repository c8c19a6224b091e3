// Command starter is the command line client of Chronicle. It sends messages to contexts and
// shows the answers.
//
//	starter chat                            # chat, in a terminal or in a pipe
//	starter send -n demo -m "Hello"         # one message, one answer
//	starter events -n demo --follow --json  # follow the log
//
// Each command has its own file with an options struct, a constructor (newSendCommand in
// send.go) and a run function. main creates an [app] with the streams of the process, and
// [execute] parses the flags with cobra. The run function connects, uses the context through
// the interface [conversation] and returns an error, which [exitCode] maps to the exit code.
//
// Standard output contains only the requested data, with --json one JSON value per line.
// Notes and errors go to standard error.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/seed-9ed7edd4/chronicle/internal/exit"
)

// grace is the time that a command has to end after a signal, unless it asks for more.
const grace = time.Second

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	a := &app{streams: systemStreams(), dial: dialClient, self: os.Args[0]}
	ended := context.AfterFunc(ctx, func() {
		// stop restores the default action, so a second signal ends the process at once. The
		// timer ends a command that blocks where ctx cannot reach it, as in reading its input.
		stop()
		time.AfterFunc(max(grace, time.Duration(a.grace.Load())), func() { os.Exit(exit.Interrupted) })
	})
	defer ended()
	return execute(ctx, a, os.Args[1:])
}
