package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/seed-9ed7edd4/chronicle/internal/config"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
	"github.com/seed-9ed7edd4/chronicle/internal/version"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

const exitHelp = `Exit codes:
  0    stopped by a signal; with a COMMAND, its exit code instead; with --check, a
       worker on this host polls the task queue
  1    failure
  2    usage error: an unknown flag, or an invalid argument or value
  4    Temporal is unreachable
  130  stopped by a signal before it was ready`

type app struct {
	out, err io.Writer
	getenv   func(string) string
	settings settings
	config   *config.Config
	level    zap.AtomicLevel // of the log
	log      *zap.Logger     // for the error that ends the worker; nil: it is printed as text
	// commandRuns is set while a COMMAND uses the terminal.
	commandRuns atomic.Bool
	// parsed is set once the flags are valid. Errors before that are usage errors.
	parsed bool
}

type settings struct {
	config.Connection
	config.Worker

	check, dev bool
	command    []string
}

func (s settings) part() contexts.Part { return contexts.Part(s.Only) }

// tables returns the settings that can also be set in the configuration file.
func (s *settings) tables() []*config.Table {
	return []*config.Table{s.Connection.Table(config.WorkerWords), s.Worker.Table(llm.Presets()...)}
}

// minFailover leaves room for a late heartbeat.
const minFailover = time.Second

var errUnreachable = errors.New("cannot reach Temporal")

func execute(ctx context.Context, a *app, args []string) int {
	a.out, a.err = terminal.NewWriter(a.out), terminal.NewWriter(a.err)
	command := newCommand(a)
	command.SetArgs(args)
	err := command.ExecuteContext(ctx)
	if err != nil && !a.parsed {
		err = exit.UsageError{Err: err}
	}
	code := exitCode(err)
	switch {
	case code == exit.Usage:
		fmt.Fprintf(a.err, "worker: %v\nRun 'worker --help' for usage.\n", err)
	case err == nil || errors.Is(err, errStopped) || errors.As(err, new(commandError)):
	case a.log != nil:
		a.log.Error("failed", zap.Error(err))
	default:
		fmt.Fprintf(a.err, "worker: %v\n", err)
	}
	return code
}

func exitCode(err error) int {
	var command commandError
	switch {
	case err == nil:
		return exit.OK
	case errors.As(err, new(exit.UsageError)):
		return exit.Usage
	case errors.Is(err, errUnreachable):
		return exit.Unreachable
	case errors.Is(err, errStopped):
		return exit.Interrupted
	case errors.As(err, &command):
		return int(command)
	default:
		return exit.Failure
	}
}

func newCommand(a *app) *cobra.Command {
	s := &a.settings
	command := &cobra.Command{
		Use:   "worker [flags] [-- COMMAND [ARGUMENT...]]",
		Short: "Run the contexts of Chronicle on Temporal",
		Long: `Run the contexts of one Temporal namespace: their workflows, and the requests to
the models.

With --dev, also start everything that the worker needs: Temporal with its Web UI,
a NATS server and, if no default model is configured, a built-in stand-in that
repeats its input. They listen on 127.0.0.1, store their data under --data-dir
and stop with the worker. A COMMAND after "--" starts when everything
is ready, with TEMPORAL_ADDRESS, NATS_URL, NATS_TOKEN_FILE and BLOB_URL in its
environment, and everything stops when it exits. While it runs, the log goes to a
file in --data-dir.

Flags override environment variables, which override the file of --config. On
SIGHUP, the worker reads the file again and applies the providers and the log
level; running answers keep their provider. --print-config shows each setting and
where its value comes from.

With --check, do not start a worker: ask Temporal whether a worker on this host
polls the task queue, and exit with 0 if one does. Use it as the health check of
a container.

When it is ready for work, the worker prints one line to standard output,
"ready temporal=... model=...". It logs to standard error. With model=none, only
contexts with a provider of their own are answered; for the others, set
OPENAI_API_KEY or OPENAI_BASE_URL.

Environment:
  OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_MODEL
              model of contexts without a provider of their own; set only the
              base URL for a server that requires no key
  TEMPORAL_*  connection to Temporal, as for the temporal command, including its
              TOML profiles; ignored with --dev, like NATS_*
  NATS_URL    NATS server for live deltas
  NATS_USER, NATS_PASSWORD, NATS_TOKEN, NATS_CREDS, NATS_NKEY, NATS_CA,
  NATS_CERT, NATS_KEY
              authentication to NATS, as for the nats command
  NATS_PASSWORD_FILE, NATS_TOKEN_FILE
              files with a password or a token for NATS
  BLOB_URL    blob store for logs and large payloads
  CHRONICLE_CONFIG
              file of --config

` + exitHelp,
		Version:       version.Build(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(command *cobra.Command, args []string) error {
			if len(args) > 0 && command.ArgsLenAtDash() != 0 {
				return fmt.Errorf("unexpected argument %q", args[0])
			}
			s.command = args
			return nil
		},
		PreRunE: func(command *cobra.Command, _ []string) error { return a.load(command.Flags()) },
		RunE: func(command *cobra.Command, _ []string) error {
			a.parsed = true
			if a.config.PrintOnly {
				return a.printConfig()
			}
			if s.check {
				return a.check(command.Context())
			}
			return a.run(command.Context())
		},
	}
	command.Flags().SortFlags = false
	a.addFlags(command.Flags())
	command.SetFlagErrorFunc(exit.FlagError)
	return command
}

func (a *app) addFlags(flags *pflag.FlagSet) {
	s := &a.settings
	tables := s.tables()
	a.config = config.New(tables, new(config.Gateway).Table())
	a.config.AddFlags(flags)
	flags.BoolVar(&s.check, "check", false, "report by exit code whether a worker on this host polls the task queue")
	flags.BoolVar(&s.dev, "dev", false, "start Temporal, NATS and, without a default model, a stand-in for one on this machine")
	for _, t := range tables {
		flags.AddFlagSet(t.FlagSet)
	}
}

// On the command line, devFlags require --dev, and connectFlags exclude it. In the environment and the
// file, both are allowed with and without --dev; those that do not apply have no effect.
var (
	devFlags     = []string{"data-dir", "temporal-port", "ui-port", "nats-port", "untuned", "offline-token-delay"}
	connectFlags = []string{
		"address", "profile", "nats-url", "nats-user", "nats-password-file", "nats-token-file", "nats-creds", "nats-nkey",
		"nats-ca", "nats-cert", "nats-key",
	}
)

// load finds and validates the values of the settings.
func (a *app) load(flags *pflag.FlagSet) error {
	invalid, why := devFlags, "requires --dev"
	if a.settings.dev {
		invalid, why = connectFlags, "cannot be used with --dev, which starts its own servers"
	}
	for _, name := range invalid {
		if flags.Changed(name) {
			return fmt.Errorf("--%s: %s", name, why)
		}
	}
	if err := a.config.Load(a.getenv, a.settings.ignored()...); err != nil {
		return err
	}
	return a.settings.validate(a.config)
}

// ignored returns the settings that are not read from the environment and the file because of --dev.
func (s *settings) ignored() []string {
	if s.dev {
		return append([]string{"namespace"}, connectFlags...)
	}
	return nil
}

func (s *settings) validate(c *config.Config) error {
	if s.dev && !c.IsGiven("drain-timeout") {
		s.DrainTimeout = 0 // no other worker could continue its requests
	}
	switch {
	case s.CachedContexts < 1:
		return fmt.Errorf("%s %d: out of range (at least 1)", c.Label("cached-contexts"), s.CachedContexts)
	case s.Failover < minFailover:
		return fmt.Errorf("%s %v: out of range (at least %v)", c.Label("failover"), s.Failover, minFailover)
	case s.IdleClose < 0:
		return fmt.Errorf("%s %v: want 0s or more", c.Label("idle-close"), s.IdleClose)
	case s.DrainTimeout < 0:
		return fmt.Errorf("%s %v: want 0s or more", c.Label("drain-timeout"), s.DrainTimeout)
	case s.check && s.dev:
		return errors.New("--check: cannot be used with --dev")
	case len(s.command) > 0 && !s.dev:
		return errors.New("COMMAND: requires --dev")
	case s.part() != contexts.Both && s.part() != contexts.OnlyWorkflows && s.part() != contexts.OnlyActivities:
		return fmt.Errorf("%s %q: want %s or %s", c.Label("only"), s.Only, contexts.OnlyWorkflows, contexts.OnlyActivities)
	case s.TaskQueue == "":
		return fmt.Errorf("%s: missing", c.Label("task-queue"))
	case s.dev && s.DataDir == "":
		return fmt.Errorf("%s: missing", c.Label("data-dir"))
	case s.ContinueAfter != 0 && s.ContinueAfter < contexts.MinContinueAfter:
		return fmt.Errorf("%s %d: want 0 or at least %d", c.Label("continue-as-new-after"), s.ContinueAfter, contexts.MinContinueAfter)
	case s.OfflineTokenDelay < 0:
		return fmt.Errorf("%s %v: want 0s or more", c.Label("offline-token-delay"), s.OfflineTokenDelay)
	}
	if s.Metrics != "" {
		if err := c.CheckListen("metrics", s.Metrics, "127.0.0.1:9464"); err != nil {
			return err
		}
	}
	for name, port := range map[string]int{"temporal-port": s.TemporalPort, "ui-port": s.UIPort, "nats-port": s.NATSPort} {
		if port < 0 || port > 65535 {
			return fmt.Errorf("%s %d: want 0 to 65535", c.Label(name), port)
		}
	}
	return nil
}
