package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/internal/version"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/stream"
	"github.com/seed-9ed7edd4/chronicle/terminal"
	"github.com/seed-9ed7edd4/chronicle/wire"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// The exit codes; codesHelp documents them.
const (
	codeOK          = 0
	codeFailure     = 1
	codeUsage       = 2
	codeUnreachable = 4
	codeInterrupted = 130
)

const codesHelp = `Exit codes:
  0    told to stop, and stopped; with a COMMAND, its exit code instead; with
       --check, a worker takes work
  1    failed
  2    wrong usage: a flag or a value that cannot be meant
  4    Temporal cannot be reached
  130  told to stop before it was ready`

// app is the worker as a command: its flags and its surroundings.
type app struct {
	out, err io.Writer
	getenv   func(string) string
	settings settings
	// commandRuns says that a command has the terminal.
	commandRuns atomic.Bool
	// parsed says that the flags were understood: what fails before is wrong
	// usage.
	parsed bool
}

// settings are what the flags say.
type settings struct {
	address, namespace, profile string
	natsURL, blobURL            string
	natsAuth                    stream.Auth
	taskQueue                   string
	continueAfter               int
	only                        contexts.Part
	attachmentsDir              string
	providersFile               string
	allowBaseURLs               []string
	drainTimeout                time.Duration
	cacheBytes                  int64
	json                        bool
	check                       bool

	dev                            bool
	dataDir                        string
	temporalPort, uiPort, natsPort int
	untuned                        bool
	offlineTokenDelay              time.Duration
	// command is what to run for as long as the worker lives; see dev.
	command []string
}

// defaultDrainTimeout is shorter than the time that orchestrators usually give a
// process to end, with HandBack added.
const defaultDrainTimeout = 30 * time.Second

// minCacheBytes lets a handful of contexts be cached.
const minCacheBytes = 1 << 20

// usageError is a mistake in the arguments.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// errUnreachable: Temporal does not answer.
var errUnreachable = errors.New("cannot reach temporal")

// execute runs the command and returns its exit code.
func execute(ctx context.Context, a *app, args []string) int {
	a.out, a.err = terminal.NewWriter(a.out), terminal.NewWriter(a.err)
	command := newCommand(a)
	command.SetArgs(args)
	err := command.ExecuteContext(ctx)
	if err != nil && !a.parsed {
		err = usageError{err}
	}
	code := exitCode(err)
	switch {
	case code == codeUsage:
		fmt.Fprintf(a.err, "worker: %v\nRun 'worker --help' for usage.\n", err)
	case err != nil && !errors.Is(err, errTold) && !errors.As(err, new(commandError)):
		fmt.Fprintf(a.err, "worker: %v\n", err)
	}
	return code
}

func exitCode(err error) int {
	var command commandError
	switch {
	case err == nil:
		return codeOK
	case errors.As(err, new(usageError)):
		return codeUsage
	case errors.Is(err, errUnreachable):
		return codeUnreachable
	case errors.Is(err, errTold):
		return codeInterrupted
	case errors.As(err, &command):
		return int(command)
	default:
		return codeFailure
	}
}

func newCommand(a *app) *cobra.Command {
	s := &a.settings
	command := &cobra.Command{
		Use:   "worker [flags] [-- COMMAND [ARGUMENT...]]",
		Short: "Run Chronicle's contexts on Temporal",
		Long: `worker runs the contexts of one Temporal namespace: their workflows, and the
requests to the models.

With --dev it starts on this machine all that it needs: Temporal with its Web UI,
a NATS server, and, when the environment names no model, a built-in one that is
none: it repeats what it is told. It all listens on 127.0.0.1, keeps its data
under --data-dir, and ends with the worker. A COMMAND after "--" is run when
everything is ready, with TEMPORAL_ADDRESS, NATS_URL and BLOB_URL in its
environment, and everything ends with it; the log goes to a file in --data-dir
meanwhile.

With --check it runs nothing: it asks Temporal whether a worker that runs on this
host takes work, which is the health check of a container.

When it takes work, the worker says so in one line on stdout,
"ready temporal=... model=..."; the log goes to stderr. After model=none only
contexts that chose a provider are answered: the others need OPENAI_API_KEY or
OPENAI_BASE_URL, see below.

Environment:
  OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_MODEL
              the model of contexts that chose none; a base URL alone is for a
              server that wants no key
  TEMPORAL_*  the connection, as for the temporal command; see also its TOML
              profiles. Not used by --dev, nor is NATS_*
  NATS_URL    where answers are streamed to
  NATS_USER, NATS_PASSWORD, NATS_TOKEN, NATS_CREDS, NATS_NKEY, NATS_CA,
  NATS_CERT, NATS_KEY
              how the worker authenticates there, as for the nats command
  BLOB_URL    the blob store for logs and large payloads; "worker" without it
              uses the folder .chronicle/blobs

` + codesHelp,
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
		PreRunE: func(command *cobra.Command, _ []string) error { return s.validate(command) },
		RunE: func(command *cobra.Command, _ []string) error {
			a.parsed = true
			if s.check {
				return a.check(command.Context())
			}
			return a.run(command.Context())
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	flags.StringVar(&s.address, "address", "", "host:port of Temporal; empty: TEMPORAL_ADDRESS or the profile, else 127.0.0.1:7233")
	flags.StringVar(&s.namespace, "namespace", "", `namespace of Temporal; empty: TEMPORAL_NAMESPACE or the profile, else "default"; --dev creates it`)
	flags.StringVar(&s.profile, "profile", "", `profile in Temporal's TOML file; empty: TEMPORAL_PROFILE, else "default"`)
	flags.StringVar(&s.natsURL, "nats-url", "", `NATS servers, separated by commas; empty: NATS_URL, else nats://127.0.0.1:4222; "none": answers are not streamed`)
	for _, setting := range s.natsAuth.Settings() {
		usage := setting.Usage + "; empty: none"
		if setting.Env != "" {
			usage = setting.Usage + "; empty: " + setting.Env
		}
		flags.StringVar(setting.Value, setting.Flag, "", usage)
	}
	flags.StringVar(&s.blobURL, "blob-url", "", `blob store for logs and large payloads: file:///DIR, s3://BUCKET, gs://BUCKET or azblob://CONTAINER, the same for all workers and clients of a namespace; `+
		`empty: BLOB_URL, else the folder .chronicle/blobs, with --dev the folder blobs in --data-dir`)
	flags.IntVar(&s.continueAfter, "continue-as-new-after", 0, "number of history entries after which a context goes on in another run; 0: when Temporal suggests it, at 4,096")
	flags.StringVar(&s.taskQueue, "task-queue", wire.TaskQueue, "task queue to work on")
	flags.StringVar((*string)(&s.only), "only", "", "part of the work to do, workflows or activities; empty: both")
	flags.StringVar(&s.providersFile, "providers", "", "TOML `FILE` with model providers: their URLs, keys and prices, see providers.example.toml; empty: the presets ("+
		strings.Join(llm.Presets(), ", ")+") only")
	flags.StringArrayVar(&s.allowBaseURLs, "allow-base-url", nil, "base `URL` that contexts may name themselves, with the paths below it; no key is sent there; may be repeated; "+
		"none: providers' URLs only, and with --dev those on this machine")
	flags.StringVar(&s.attachmentsDir, "attachments-dir", "", `directory that attachments of type "file" may be read from; empty: none are read`)
	flags.Int64Var(&s.cacheBytes, "cache-bytes", 512<<20, "memory in bytes that contexts may take between their messages, at least 1,048,576; what does not fit is in a temporary file, for which TMPDIR is the directory")
	flags.DurationVar(&s.drainTimeout, "drain-timeout", defaultDrainTimeout, "time that running answers have to finish when the worker stops; then, and with 0 at once, they are handed back to Temporal, and another worker makes them again; with --dev 0 unless set")
	flags.BoolVar(&s.json, "json", false, "log JSON lines, Temporal's own log included")
	flags.BoolVar(&s.check, "check", false, "only say whether a worker of this host takes work from the task queue, by exit code")
	flags.BoolVar(&s.dev, "dev", false, "start everything that is needed on this machine")
	flags.StringVar(&s.dataDir, "data-dir", defaultDataDir, "where --dev keeps everything; created if missing")
	flags.IntVar(&s.temporalPort, "temporal-port", 7233, "port of --dev's Temporal; 0: any free port")
	flags.IntVar(&s.uiPort, "ui-port", 8233, "port of --dev's Web UI; 0: any free port")
	flags.IntVar(&s.natsPort, "nats-port", 4222, "port of --dev's NATS; 0: any free port")
	flags.BoolVar(&s.untuned, "untuned", false, "leave --dev's Temporal as shipped: every turn takes about 0.1 s longer")
	flags.DurationVar(&s.offlineTokenDelay, "offline-token-delay", 25*time.Millisecond, "time between two pieces of an answer of --dev's built-in model; 0: none")
	return command
}

// devFlags mean nothing without --dev, and connectFlags nothing with it.
var (
	devFlags     = []string{"data-dir", "temporal-port", "ui-port", "nats-port", "untuned", "offline-token-delay"}
	connectFlags = []string{
		"address", "profile", "nats-url", "nats-user", "nats-password-file", "nats-token-file", "nats-creds", "nats-nkey",
		"nats-ca", "nats-cert", "nats-key",
	}
)

func (s *settings) validate(command *cobra.Command) error {
	refused, why := devFlags, "it needs --dev"
	if s.dev {
		refused, why = connectFlags, "--dev starts its own"
	}
	for _, name := range refused {
		if command.Flags().Changed(name) {
			return fmt.Errorf("--%s: %s", name, why)
		}
	}
	if s.dev && !command.Flags().Changed("drain-timeout") {
		s.drainTimeout = 0 // no other worker is there to replace this one
	}
	switch {
	case s.cacheBytes < minCacheBytes:
		return fmt.Errorf("--cache-bytes %d: out of range (at least %d)", s.cacheBytes, minCacheBytes)
	case s.drainTimeout < 0:
		return fmt.Errorf("--drain-timeout %v: must not be negative", s.drainTimeout)
	case s.check && s.dev:
		return errors.New("--check: it starts nothing, so it does not go with --dev")
	case len(s.command) > 0 && !s.dev:
		return errors.New("a COMMAND needs --dev")
	case s.only != contexts.Both && s.only != contexts.OnlyWorkflows && s.only != contexts.OnlyActivities:
		return fmt.Errorf("--only %q: want %q, %q or nothing", s.only, contexts.OnlyWorkflows, contexts.OnlyActivities)
	case s.taskQueue == "":
		return errors.New("--task-queue: must not be empty")
	case s.dev && s.dataDir == "":
		return errors.New("--data-dir: must not be empty")
	case s.continueAfter != 0 && s.continueAfter < contexts.MinContinueAfter:
		return fmt.Errorf("--continue-as-new-after %d: want 0 or at least %d", s.continueAfter, contexts.MinContinueAfter)
	case s.offlineTokenDelay < 0:
		return fmt.Errorf("--offline-token-delay %v: must not be negative", s.offlineTokenDelay)
	}
	for name, port := range map[string]int{"temporal-port": s.temporalPort, "ui-port": s.uiPort, "nats-port": s.natsPort} {
		if port < 0 || port > 65535 {
			return fmt.Errorf("--%s %d: want 0 to 65535", name, port)
		}
	}
	return nil
}
