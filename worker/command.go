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
	"github.com/spf13/pflag"

	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/internal/natsflags"
	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
	"github.com/seed-9ed7edd4/chronicle/internal/version"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/stream"
	"github.com/seed-9ed7edd4/chronicle/wire"
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
	// commandRuns is set while a COMMAND uses the terminal.
	commandRuns atomic.Bool
	// parsed is set once the flags are valid. Errors before that are usage errors.
	parsed bool
}

type settings struct {
	address, namespace, profile string
	natsURL, blobURL            string
	natsAuth                    stream.Auth
	taskQueue                   string
	continueAfter               int
	only                        contexts.Part
	attachmentsDir              string
	toolFetch                   bool
	toolFilesRoot               string
	mcpFile                     string
	hooksFile                   string
	providersFile               string
	allowBaseURLs               []string
	drainTimeout                time.Duration
	cacheBytes                  int64
	json                        bool
	metrics                     string
	check                       bool

	dev                            bool
	dataDir                        string
	temporalPort, uiPort, natsPort int
	untuned                        bool
	offlineTokenDelay              time.Duration
	command                        []string
}

// defaultDrainTimeout plus [contexts.HandBack] must be shorter than the grace period that
// docker-compose.yml gives workers to stop.
const defaultDrainTimeout = 30 * time.Second

// minCacheBytes is enough to cache a few contexts.
const minCacheBytes = 1 << 20

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
	case err != nil && !errors.Is(err, errStopped) && !errors.As(err, new(commandError)):
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
a NATS server and, if the environment configures no model, a built-in stand-in
that repeats its input. They listen on 127.0.0.1, store their data under
--data-dir and stop with the worker. A COMMAND after "--" starts when everything
is ready, with TEMPORAL_ADDRESS, NATS_URL and BLOB_URL in its environment, and
everything stops when it exits. While it runs, the log goes to a file in
--data-dir.

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
              authentication at NATS, as for the nats command
  BLOB_URL    blob store for logs and large payloads

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
		PreRunE: func(command *cobra.Command, _ []string) error { return s.validate(command) },
		RunE: func(command *cobra.Command, _ []string) error {
			a.parsed = true
			if s.check {
				return a.check(command.Context())
			}
			return a.run(command.Context())
		},
	}
	command.Flags().SortFlags = false
	s.addFlags(command.Flags())
	command.SetFlagErrorFunc(exit.FlagError)
	return command
}

func (s *settings) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&s.address, "address", "", "address of Temporal, `HOST:PORT` (default: $TEMPORAL_ADDRESS, the profile, 127.0.0.1:7233)")
	flags.StringVar(&s.namespace, "namespace", "", "Temporal `NAMESPACE`, created by --dev (default: $TEMPORAL_NAMESPACE, the profile, \"default\")")
	flags.StringVar(&s.profile, "profile", "", "`PROFILE` in the TOML configuration of the temporal command (default: $TEMPORAL_PROFILE, \"default\")")
	flags.StringVar(&s.natsURL, "nats-url", "", "`URLS` of NATS servers, separated by commas; \"none\": do not stream answers (default: $NATS_URL, nats://127.0.0.1:4222)")
	natsflags.Add(flags, &s.natsAuth)
	flags.StringVar(&s.blobURL, "blob-url", "", "`URL` of the blob store for logs and large payloads: file:///DIR, s3://BUCKET, gs://BUCKET or azblob://CONTAINER; use the same store for all workers and clients of a namespace "+
		"(default: $BLOB_URL, else the folder .chronicle/blobs; with --dev, the folder blobs in --data-dir)")
	flags.IntVar(&s.continueAfter, "continue-as-new-after", 0, "number of history `EVENTS` after which a run continues as new, at least 50; 0: 4,096; a run continues earlier if Temporal suggests it")
	flags.StringVar(&s.taskQueue, "task-queue", wire.TaskQueue, "task `QUEUE` of the contexts to run")
	flags.StringVar((*string)(&s.only), "only", "", "run only `KIND`: workflows or activities (default: both)")
	flags.StringVar(&s.providersFile, "providers", "", "TOML `FILE` of model providers with their URLs, keys and prices, see providers.example.toml (default: the presets "+
		strings.Join(llm.Presets(), ", ")+")")
	flags.StringArrayVar(&s.allowBaseURLs, "allow-base-url", nil, "base `URL` that contexts may use without a key, including paths below it; may be repeated "+
		"(default: only those of the providers and, with --dev, those on this machine)")
	flags.StringVar(&s.attachmentsDir, "attachments-dir", "", "`DIRECTORY` from which attachments of type \"file\" are read (default: none)")
	flags.BoolVar(&s.toolFetch, "tool-fetch", false, "enable the tool fetch, which gets public web pages, for contexts that name it")
	flags.StringVar(&s.toolFilesRoot, "tool-files-root", "", "enable the tools list_files and read_file, which read this `DIRECTORY`, for contexts that name them (default: none)")
	flags.StringVar(&s.mcpFile, "mcp", "", "JSON `FILE` with the MCP servers whose tools contexts may name, like mcp.example.json (default: none)")
	flags.StringVar(&s.hooksFile, "hooks", "", "TOML `FILE` of webhooks that check all requests and answers, or receive all events, like hooks.example.toml (default: none)")
	flags.Int64Var(&s.cacheBytes, "cache-bytes", 512<<20, "memory for cached contexts in `BYTES`, at least 1,048,576; the excess is written to a temporary file in $TMPDIR")
	flags.DurationVar(&s.drainTimeout, "drain-timeout", defaultDrainTimeout, "time for running answers to finish when the worker stops; the rest are handed back to Temporal and repeated by another worker; 0: hand back at once, as --dev does")
	flags.BoolVar(&s.json, "json", false, "write logs as JSON lines, including those of the Temporal SDK and, with --dev, the Temporal server")
	flags.StringVar(&s.metrics, "metrics", "", "serve metrics for Prometheus at http://`HOST:PORT`/metrics; port 0: any free port (default: none)")
	flags.BoolVar(&s.check, "check", false, "report by exit code whether a worker on this host polls the task queue")
	flags.BoolVar(&s.dev, "dev", false, "start Temporal, NATS and, without a key, a stand-in for a model on this machine")
	flags.StringVar(&s.dataDir, "data-dir", defaultDataDir, "data `DIRECTORY` of --dev, created if missing")
	flags.IntVar(&s.temporalPort, "temporal-port", 7233, "`PORT` of Temporal with --dev; 0: any free port")
	flags.IntVar(&s.uiPort, "ui-port", 8233, "`PORT` of the Web UI with --dev; 0: any free port")
	flags.IntVar(&s.natsPort, "nats-port", 4222, "`PORT` of NATS with --dev; 0: any free port")
	flags.BoolVar(&s.untuned, "untuned", false, "with --dev, run Temporal with its default settings instead of the tuned ones")
	flags.DurationVar(&s.offlineTokenDelay, "offline-token-delay", 25*time.Millisecond, "delay between the tokens of the built-in stand-in for a model; 0: none")
}

// devFlags require --dev, and connectFlags exclude it.
var (
	devFlags     = []string{"data-dir", "temporal-port", "ui-port", "nats-port", "untuned", "offline-token-delay"}
	connectFlags = []string{
		"address", "profile", "nats-url", "nats-user", "nats-password-file", "nats-token-file", "nats-creds", "nats-nkey",
		"nats-ca", "nats-cert", "nats-key",
	}
)

func (s *settings) validate(command *cobra.Command) error {
	invalid, why := devFlags, "requires --dev"
	if s.dev {
		invalid, why = connectFlags, "cannot be used with --dev, which starts its own servers"
	}
	for _, name := range invalid {
		if command.Flags().Changed(name) {
			return fmt.Errorf("--%s: %s", name, why)
		}
	}
	if s.dev && !command.Flags().Changed("drain-timeout") {
		s.drainTimeout = 0 // no other worker could take over
	}
	switch {
	case s.cacheBytes < minCacheBytes:
		return fmt.Errorf("--cache-bytes %d: out of range (at least %d)", s.cacheBytes, minCacheBytes)
	case s.drainTimeout < 0:
		return fmt.Errorf("--drain-timeout %v: want 0s or more", s.drainTimeout)
	case s.check && s.dev:
		return errors.New("--check: cannot be used with --dev")
	case len(s.command) > 0 && !s.dev:
		return errors.New("COMMAND: requires --dev")
	case s.only != contexts.Both && s.only != contexts.OnlyWorkflows && s.only != contexts.OnlyActivities:
		return fmt.Errorf("--only %q: want %s or %s", s.only, contexts.OnlyWorkflows, contexts.OnlyActivities)
	case s.taskQueue == "":
		return errors.New("--task-queue: missing")
	case s.dev && s.dataDir == "":
		return errors.New("--data-dir: missing")
	case s.continueAfter != 0 && s.continueAfter < contexts.MinContinueAfter:
		return fmt.Errorf("--continue-as-new-after %d: want 0 or at least %d", s.continueAfter, contexts.MinContinueAfter)
	case s.offlineTokenDelay < 0:
		return fmt.Errorf("--offline-token-delay %v: want 0s or more", s.offlineTokenDelay)
	}
	for name, port := range map[string]int{"temporal-port": s.temporalPort, "ui-port": s.uiPort, "nats-port": s.natsPort} {
		if port < 0 || port > 65535 {
			return fmt.Errorf("--%s %d: want 0 to 65535", name, port)
		}
	}
	return nil
}
