// Command starter is the command line of Chronicle: it sends to contexts and
// shows what they answer.
//
//	starter chat                            # talk, in a terminal or in a pipe
//	starter send -n demo -m "Hello"         # one message, one answer
//	starter events -n demo --follow --json  # the log, as it grows
//
// One command goes through the code like this: main builds an [app] on the
// process's streams, [execute] lets cobra find the command and read its flags,
// its constructor (newSendCommand in send.go, one file for each command) has
// filled an options struct, its run function connects, talks to the context
// through the narrow [conversation], and returns an error, which [exitCode]
// turns into the exit code.
//
// Standard output carries what was asked for, and with --json one JSON value
// per line and nothing else; notes and errors go to standard error.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// grace is the time that a command has to end after a signal, unless it asks for
// more.
const grace = time.Second

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	a := &app{streams: systemStreams(), dial: dialSession, self: os.Args[0]}
	ended := context.AfterFunc(ctx, func() {
		// A second signal ends the process at once, and the first one does, too,
		// where a command waits for what no context reaches, like its input.
		stop()
		time.AfterFunc(max(grace, time.Duration(a.grace.Load())), func() { os.Exit(exitInterrupted) })
	})
	defer ended()
	return execute(ctx, a, os.Args[1:])
}
