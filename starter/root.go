package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/contrib/envconfig"

	"github.com/seed-9ed7edd4/chronicle"
	"github.com/seed-9ed7edd4/chronicle/session"
	"github.com/seed-9ed7edd4/chronicle/terminal"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// app is what all commands share.
type app struct {
	streams
	// connection is filled from the flags of the root command.
	connection session.Config
	// dial connects; a context that is done ends the attempt, not the
	// connection.
	dial func(ctx context.Context, config session.Config) (client, error)
	// self is what the program was called as; empty means "starter".
	self string
	// patience is how long an input may take to be recorded before a person is
	// told what it waits for; 0 means 5 seconds.
	patience time.Duration
	// grace is how long the command may take to end after a signal, if that is
	// longer than usual; a time.Duration.
	grace atomic.Int64
	// parsed says that flags and arguments were understood and a command runs:
	// what fails before is wrong usage.
	parsed bool
}

// execute runs the command that the arguments ask for and returns its exit
// code.
func execute(ctx context.Context, a *app, args []string) int {
	a.out, a.err = terminal.NewWriter(a.out), terminal.NewWriter(a.err)
	root := newRootCommand(a)
	root.SetArgs(args)
	command, err := root.ExecuteContextC(ctx)
	if err != nil && !a.parsed {
		err = usageError{err}
	}
	if err != nil && ctx.Err() != nil {
		// Whatever the signal made fail, the signal is the reason.
		err = fmt.Errorf("%w: %w", context.Canceled, err)
	}
	a.report(command, err)
	return exitCode(err)
}

// report tells a person what went wrong, and what to do about it.
func (a *app) report(command *cobra.Command, err error) {
	switch code := exitCode(err); {
	case err == nil || errors.Is(err, context.Canceled):
	case code == exitUsage:
		fmt.Fprintf(a.err, "%s: %v\nRun '%[1]s --help' for usage.\n", command.CommandPath(), err)
	case code == exitUnreachable:
		fmt.Fprintf(a.err, "starter: cannot reach Temporal at %s: is the worker running? "+
			"Start everything with \"make run\" or \"worker --dev\"\n", a.address())
		a.note("%v", err)
	default:
		fmt.Fprintf(a.err, "starter: %v\n", err)
	}
}

// address is where Temporal was looked for.
func (a *app) address() string {
	// What is wrong with the profile was told by whoever failed to connect.
	profile, _ := envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{ConfigFileProfile: a.connection.Profile})
	return cmp.Or(a.connection.Address, profile.HostPort, "127.0.0.1:7233")
}

// taskQueue is where a worker takes what is sent to new contexts.
func (a *app) taskQueue() string { return cmp.Or(a.connection.TaskQueue, wire.TaskQueue) }

// program is the word to put before commands that a person is told to run.
func (a *app) program() string { return cmp.Or(a.self, "starter") }

func newRootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "starter",
		Short: "Talk to Chronicle: durable conversations on Temporal",
		Long: `starter talks to contexts: named conversations with a model that live in
Temporal and survive everything that happens to the programs around them. A
context begins with the first message to its name.

Where Temporal and NATS are is taken from the flags below, else from the
environment, else from the TOML profile of the temporal command.

` + exitHelp,
		Example: `  starter chat
  starter send -n demo -m "Hello"
  starter set provider -n demo --provider ollama --model llama3.2
  starter events -n demo --follow --json`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       chronicle.BuildVersion(),
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if err := checkPlaces(a.connection); err != nil {
				return err
			}
			a.parsed = true
			if a.connection.BlobURL == "" && os.Getenv("BLOB_URL") == "" && a.isLocal() {
				a.connection.BlobURL = devBlobURL()
			}
			return nil
		},
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	flags := root.PersistentFlags()
	flags.StringVar(&a.connection.Address, "address", "",
		"where Temporal is, `HOST:PORT` (default: $TEMPORAL_ADDRESS, the profile, 127.0.0.1:7233)")
	flags.StringVar(&a.connection.Namespace, "namespace", "",
		"Temporal's `NAMESPACE` (default: $TEMPORAL_NAMESPACE, the profile, \"default\")")
	flags.StringVar(&a.connection.Profile, "profile", "",
		"`PROFILE` in Temporal's TOML file (default: $TEMPORAL_PROFILE, \"default\")")
	flags.StringVar(&a.connection.TaskQueue, "task-queue", "",
		"task `QUEUE` on which new contexts start, the worker's (default \""+wire.TaskQueue+"\")")
	flags.StringVar(&a.connection.NATSURL, "nats-url", "",
		"where live deltas come from, a `URL`; \"none\": no live deltas (default: $NATS_URL, nats://127.0.0.1:4222)")
	for _, s := range a.connection.NATSAuth.Settings() {
		usage := s.Usage
		if s.Env != "" {
			usage += " (default: $" + s.Env + ")"
		}
		flags.StringVar(s.Value, s.Flag, "", usage)
	}
	flags.StringVar(&a.connection.BlobURL, "blob-url", "",
		"blob store of the workers, a `URL`; \"none\": send up to 64 KB and read what Temporal has (default: $BLOB_URL, "+devBlobs+" when it is there and Temporal is on this machine)")
	root.AddCommand(
		newChatCommand(a), newSendCommand(a), newScriptCommand(a),
		newEventsCommand(a), newStateCommand(a), newListCommand(a),
		newSetCommand(a), newInterruptCommand(a), newCloseCommand(a),
		newExportCommand(a), newImportCommand(a), newIngestCommand(a), newVerifyCommand(a), newForkCommand(a), newRerunCommand(a),
		newServeCommand(a),
	)
	return root
}

// nameFlag adds -n to a command.
func nameFlag(command *cobra.Command, name *string, value, usage string) {
	command.Flags().StringVarP(name, "name", "n", value, usage)
}

const nameUsage = "`NAME` of the context, 1-128 of A-Z a-z 0-9 . _ -, first a letter or digit; required"

// printJSON writes a value as one line of JSON.
func (a *app) printJSON(value any) error {
	encoder := json.NewEncoder(terminal.NewJSONWriter(a.out))
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// noteNotLive says once that answers come in one piece.
func (a *app) noteNotLive(c client) {
	if !c.Live() {
		a.note("no live deltas (--nats-url says where they come from); answers appear when they are complete")
	}
}
