package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/config"
	"github.com/seed-9ed7edd4/chronicle/internal/connect"
	"github.com/seed-9ed7edd4/chronicle/internal/doctor"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
	"github.com/seed-9ed7edd4/chronicle/internal/version"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

type app struct {
	streams
	// connection and gateway are set by config, from the flags of the root command and of serve.
	connection config.Connection
	tracers    trace.TracerProvider // nil: none
	gateway    config.Gateway
	log        *zap.Logger // of the gateway; nil: another command
	config     *config.Config
	// dial connects. Cancelling ctx ends the attempt, not the connection.
	dial   func(ctx context.Context, config client.Config) (contextClient, error)
	client contextClient // that the command has dialed; nil: none
	// examine runs the checks of "starter doctor". Nil: [examine].
	examine func(ctx context.Context, config client.Config, call bool) (iter.Seq[doctor.Finding], error)
	// self is the name that the program was called by. Empty: "starter".
	self string
	// grace is the time that the command has to end after a signal, if longer than [grace]. It
	// holds a time.Duration.
	grace atomic.Int64
	// endTrace exports the trace of the command, with its error. Nil: it has none.
	endTrace func(error)
	// parsed is set once flags and arguments are valid. Errors before that are usage errors.
	parsed bool
	// isDefaultStore means that the blob store is the folder [config.ClientBlobs], and not a setting.
	isDefaultStore bool
}

func execute(ctx context.Context, a *app, args []string) int {
	a.out, a.err = terminal.NewWriter(a.out), terminal.NewWriter(a.err)
	root := newRootCommand(a)
	root.SetArgs(args)
	command, err := root.ExecuteContextC(ctx)
	if a.client != nil {
		a.client.Shutdown()
	}
	if a.endTrace != nil {
		a.endTrace(err)
	}
	if errors.Is(err, errPrinted) {
		return exit.OK
	}
	if err != nil && !a.parsed {
		err = exit.UsageError{Err: err}
	}
	if err != nil && ctx.Err() != nil {
		// Any error after a signal counts as an interruption.
		err = fmt.Errorf("%w: %w", context.Canceled, err)
	}
	a.report(command, err)
	return exitCode(err)
}

func (a *app) report(command *cobra.Command, err error) {
	code := exitCode(err)
	isAway := code == exit.Unreachable && !errors.Is(err, client.ErrBusy)
	switch {
	case err == nil || errors.Is(err, context.Canceled):
	case code == exit.Usage:
		fmt.Fprintf(a.err, "%s: %v\nRun '%[1]s --help' for usage.\n", command.CommandPath(), err)
	case a.log != nil && a.gateway.JSON:
		if isAway {
			err = fmt.Errorf("%s: %w", a.unreachable(), err)
		}
		if errors.Is(err, client.ErrOtherStore) {
			err = fmt.Errorf("%w; %s", err, a.storeInUse())
		}
		a.log.Error("failed", zap.Error(err))
	case isAway:
		fmt.Fprintf(a.err, "starter: %s\n", a.unreachable())
		cause := err.Error()
		if _, after, found := strings.Cut(cause, client.ErrUnreachable.Error()); found {
			cause = strings.TrimPrefix(after, ": ")
		}
		if cause != "" {
			a.note("%s", cause)
		}
	case code == exit.NoContext:
		fmt.Fprintf(a.err, "starter: %v (list the contexts with \"%s list\")\n", err, a.program())
	default:
		fmt.Fprintf(a.err, "starter: %v\n", err)
		if errors.Is(err, client.ErrOtherStore) {
			a.note("%s", a.storeInUse())
		}
	}
}

func (a *app) unreachable() string {
	return fmt.Sprintf("cannot reach Temporal at %s (start it with \"make run\" or \"worker --dev\", or set --address)", a.address())
}

func (a *app) storeInUse() string {
	blobURL, _, _ := strings.Cut(a.connection.BlobURL, "?") // parameters can hold secrets
	blobURL = event.Redact(blobURL, 0)
	if a.isDefaultStore {
		return fmt.Sprintf("this process uses %s, the default because the working directory has the folder %s "+
			"(work in another directory, or set --blob-url to the store of the workers or to none)", blobURL, config.ClientBlobs)
	}
	return fmt.Sprintf("this process uses %s, which is the value of %s", blobURL, a.config.Label("blob-url"))
}

func (a *app) address() string {
	// Connecting reports an invalid profile.
	options, _ := connect.Temporal{Address: a.connection.Address, Profile: a.connection.Profile}.Options()
	return options.HostPort
}

func (a *app) taskQueue() string { return cmp.Or(a.connection.TaskQueue, wire.TaskQueue) }

func (a *app) program() string { return cmp.Or(a.self, "starter") }

func newRootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "starter",
		Short: "Talk to Chronicle: durable conversations on Temporal",
		Long: `Send messages to contexts and show the answers. A context is a named, durable
conversation with a model, stored in Temporal. The first message to a name
creates the context.

Flags override environment variables, which override the file of --config, which
overrides the TOML profile of the temporal command.

` + exitHelp,
		Example: `  starter chat
  starter send -n demo -m "Hello"
  starter set provider -n demo --provider ollama --model llama3.2
  starter events -n demo --follow --json`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version.Build(),
		PersistentPreRunE: func(command *cobra.Command, _ []string) error {
			if err := a.config.Load(os.Getenv); err != nil {
				return err
			}
			if err := a.checkAddresses(); err != nil {
				return err
			}
			a.parsed = true
			if a.config.PrintOnly {
				return a.printConfig()
			}
			if a.connection.BlobURL == "" && a.isLocal() {
				a.connection.BlobURL = devBlobURL()
				a.isDefaultStore = a.connection.BlobURL != ""
			}
			return a.startTrace(command)
		},
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	root.SetFlagErrorFunc(exit.FlagError)
	root.SetHelpCommand(newHelpCommand(a))
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	connection := a.connection.Table(config.ClientWords)
	gateway := a.gateway.Table()
	a.config = config.New([]*config.Table{connection, gateway}, new(config.Worker).Table())
	root.PersistentFlags().AddFlagSet(connection.FlagSet)
	a.config.AddFlags(root.PersistentFlags())
	root.AddCommand(
		newChatCommand(a), newSendCommand(a), newScriptCommand(a),
		newEventsCommand(a), newStateCommand(a), newListCommand(a), newSearchCommand(a), newUsageCommand(a), newBudgetCommand(a),
		newSetCommand(a), newScheduleCommand(a), newInterruptCommand(a), newCloseCommand(a),
		newToolsCommand(a), newApproveCommand(a), newDenyCommand(a), newResultCommand(a),
		newExportCommand(a), newImportCommand(a), newIngestCommand(a), newVerifyCommand(a), newForkCommand(a), newBranchesCommand(a), newDetailsCommand(a), newRerunCommand(a), newEvalCommand(a), newDeleteCommand(a),
		newServeCommand(a, gateway.FlagSet), newTokenCommand(a, gateway.FlagSet), newDoctorCommand(a),
	)
	referToExitCodes(root)
	return root
}

// referToExitCodes ends the help of each subcommand with the reference to that of the root.
func referToExitCodes(command *cobra.Command) {
	for _, c := range command.Commands() {
		c.Long += "\n\n" + exitReference
		referToExitCodes(c)
	}
}

// errPrinted ends a command after --print-config.
var errPrinted = errors.New("printed")

// printConfig validates and prints the configuration.
func (a *app) printConfig() error {
	if _, err := a.checkGateway(); err != nil {
		return err
	}
	derived, err := a.connection.Derived(os.Getenv)
	if err != nil {
		return err
	}
	blobURL := ""
	if a.isLocal() {
		blobURL = devBlobURL()
	}
	derived["blob-url"] = config.Value{Value: cmp.Or(blobURL, "none")}
	derived["task-queue"] = config.Value{Value: wire.TaskQueue}
	a.config.Omit(config.Parts...) // only workers use them
	if err := a.config.Print(a.out, os.Getenv, derived); err != nil {
		return err
	}
	return errPrinted
}

func noArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q", args[0])
	}
	return nil
}

func atMostOneArgument(command *cobra.Command, args []string) error {
	return noArguments(command, args[min(1, len(args)):])
}

func oneArgument(name string) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("%s: missing", name)
		}
		return atMostOneArgument(command, args)
	}
}

func nameFlag(command *cobra.Command, name *string, value, usage string) {
	command.Flags().StringVarP(name, "name", "n", value, usage)
}

const nameUsage = "`NAME` of the context" + nameRule + "; required"

// nameRule is event.ValidateContextName in words.
const nameRule = ", 1-128 of A-Z a-z 0-9 . _ -, starting with a letter or digit, perhaps after TENANT/"

func (a *app) printJSON(value any) error {
	encoder := json.NewEncoder(terminal.NewJSONWriter(a.out))
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// noteNotLive prints a note if the client receives no live deltas.
func (a *app) noteNotLive() {
	switch err := a.client.LiveError(); {
	case a.client.Live():
	case err != nil:
		a.note("no live deltas (see --nats-url): %v; each answer appears when it is complete", err)
	default:
		a.note("no live deltas (see --nats-url); each answer appears when it is complete")
	}
}
