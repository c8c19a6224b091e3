package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"
	"go.uber.org/zap"

	"github.com/seed-9ed7edd4/chronicle/activities"
	chronicle "github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/internal/config"
	"github.com/seed-9ed7edd4/chronicle/internal/connect"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/internal/logging"
	"github.com/seed-9ed7edd4/chronicle/internal/retention"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
	"github.com/seed-9ed7edd4/chronicle/internal/telemetry"
	"github.com/seed-9ed7edd4/chronicle/internal/version"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/tool/mcp"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

const connectTimeout = 10 * time.Second

type endpoints struct {
	temporal  client.Options
	natsURL   string
	natsAuth  stream.Auth
	blobURL   string
	taskQueue string
	models    llm.Options
	budgets   []activities.LabelBudget
	mcp       []mcp.Server
	hooks     []hook.Hook
	retention []retention.Rule
	telemetry *telemetry.Telemetry
	// modelURL is the URL of the built-in stand-in for a model; empty without it.
	modelURL string
}

var errStopped = errors.New("stopped by a signal")

func (a *app) run(ctx context.Context) (err error) {
	life, end := context.WithCancelCause(ctx)
	defer end(nil)
	a.endOnSignal(life, end)

	a.level = zap.NewAtomicLevelAt(a.settings.LogLevel.Zap())
	log := logging.New(a.err, a.settings.JSON, a.level)
	defer log.Sync()
	if a.settings.JSON {
		a.log = log
	}
	started := a.reloadOnHangup(life, end)
	servers, err := a.mcpServers()
	if err != nil {
		return err
	}
	hooks, err := a.hooks()
	if err != nil {
		return err
	}
	rules, err := a.retentionRules()
	if err != nil {
		return err
	}
	exported, err := telemetry.Start(life, telemetry.Options{
		Service: "chronicle-worker", Version: version.Build(), Listen: a.settings.Metrics, ListenLabel: a.config.Label("metrics"), Getenv: a.getenv,
		OnError: func(err error) { log.Warn("cannot export metrics or traces", zap.Error(err)) },
	})
	if err != nil {
		return err
	}
	defer func() {
		if err := exported.Close(); err != nil {
			log.Warn("cannot export the last metrics and traces", zap.Error(err))
		}
	}()
	var at endpoints
	var dev *local
	if a.settings.dev {
		if dev, err = a.startLocal(life, end, log); err != nil {
			return causeOf(life, err)
		}
		defer func() { err = errors.Join(err, dev.stop()) }()
		log, at = dev.log, dev.endpoints
	} else if at, err = a.configured(log); err != nil {
		return err
	}
	at.mcp, at.hooks, at.retention, at.telemetry = servers, hooks, rules, exported
	if err := a.checkTitles(at); err != nil {
		return err
	}
	at.taskQueue = a.settings.TaskQueue
	at.temporal.MetricsHandler = exported.TemporalMetrics()
	running, err := a.startWorker(life, end, at, log)
	if err != nil {
		return causeOf(life, err)
	}
	defer func() {
		if errors.As(context.Cause(life), new(serverExitError)) {
			// Without Temporal, stop would wait in vain to hand running requests back.
			running.conn.Close()
			return
		}
		running.stop()
		log.Info("stopped")
	}()
	started(at, running, log)
	log.Info("started", zap.String("version", version.Build()), zap.String("namespace", at.temporal.Namespace),
		zap.String("task_queue", a.settings.TaskQueue))
	a.announce(at, dev, running.tools, log)
	defer a.startChecks(life, at, running, log)()
	defer running.startRetention(life, at, log)()

	if len(a.settings.command) > 0 {
		return a.runCommand(life, at)
	}
	<-life.Done()
	if reason := context.Cause(life); !errors.Is(reason, errStopped) {
		// Stopping may take a while, and the error is reported at the end, too.
		log.Error("stopping after a failure", zap.Error(reason))
		return reason
	}
	log.Info("stopping")
	return nil
}

func causeOf(life context.Context, err error) error {
	if life.Err() != nil {
		return context.Cause(life)
	}
	return err
}

// While a COMMAND uses the terminal, Ctrl-C is left to it. A second signal ends the process.
func (a *app) endOnSignal(life context.Context, end context.CancelCauseFunc) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		defer signal.Stop(signals)
		for {
			select {
			case s := <-signals:
				if s == os.Interrupt && a.commandRuns.Load() {
					continue
				}
				end(errStopped)
				return
			case <-life.Done():
				return
			}
		}
	}()
}

func (a *app) configured(log *zap.Logger) (endpoints, error) {
	s := a.settings
	options, err := connect.Temporal{Address: s.Address, Namespace: s.Namespace, Profile: s.Profile}.Options()
	if err != nil {
		return endpoints{}, err
	}
	options.Logger = logging.Temporal(log)
	blobURL, err := a.blobURL(config.DefaultDataDir)
	if err != nil {
		return endpoints{}, err
	}
	models, budgets, err := a.modelOptions()
	natsURL := connect.NATSURL(s.NATSURL, a.getenv)
	return endpoints{
		temporal: options, natsURL: natsURL, natsAuth: connect.NATSAuth(s.NATSAuth, natsURL, a.getenv), blobURL: blobURL, models: models, budgets: budgets,
	}, err
}

func (a *app) blobURL(dataDir string) (string, error) {
	switch blobURL := a.settings.BlobURL; blobURL {
	case "":
		dir, err := filepath.Abs(filepath.Join(dataDir, blobsDir))
		return (&url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}).String(), err
	case "none":
		return "", exit.UsageError{Err: fmt.Errorf(`%s "none": a worker requires a blob store (leave it unset for a local folder)`, a.config.Label("blob-url"))}
	default:
		return blobURL, nil
	}
}

// dial connects to Temporal only.
func dial(ctx context.Context, at endpoints) (client.Client, error) {
	config, err := at.config(zap.NewNop()).Resolve()
	if err != nil {
		return nil, err
	}
	c, err := connect.Dial(ctx, *config.Temporal, connectTimeout)
	return c, unreachable(err)
}

// connectAll connects to the blob store, Temporal and NATS.
func (a *app) connectAll(ctx context.Context, at endpoints, log *zap.Logger) (*contexts.Connection, error) {
	conn, err := contexts.Connect(ctx, at.config(log))
	if errors.As(err, new(*blobs.OpenError)) {
		err = fmt.Errorf("%s: %w", a.config.Label("blob-url"), err)
	}
	return conn, unreachable(err)
}

func (p endpoints) config(log *zap.Logger) chronicle.Config {
	p.temporal.Identity = identity()
	config := chronicle.Config{
		Temporal: &p.temporal, BlobURL: p.blobURL, NATSURL: p.natsURL, NATSAuth: p.natsAuth, TaskQueue: p.taskQueue,
		Logger: logging.Structured(log, "", zap.InfoLevel),
	}
	if p.telemetry != nil {
		config.Tracers, config.Meters = p.telemetry.Tracers(), p.telemetry.Meters()
	}
	return config
}

func unreachable(err error) error {
	var failed *connect.UnreachableError
	if !errors.As(err, &failed) {
		return err
	}
	return fmt.Errorf("%w at %s: %w (set --address or TEMPORAL_ADDRESS, "+
		"or start it on this machine with --dev)", errUnreachable, failed.Address, failed.Cause)
}

// attachmentReader returns a function that reads files below a directory; nil without one.
func attachmentReader(dir string) (func(path string) ([]byte, error), error) {
	if dir == "" {
		return nil, nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	// A root rejects all paths out of it, including symbolic links.
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return func(path string) ([]byte, error) {
		if filepath.IsAbs(path) {
			relative, err := filepath.Rel(dir, path)
			if err != nil {
				return nil, fmt.Errorf("attachment %q: %w", path, err)
			}
			path = relative
		}
		return readBounded(root, path)
	}, nil
}

func readBounded(root *os.Root, path string) ([]byte, error) {
	info, err := root.Stat(path) // opening a named pipe would block
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("attachment %q: not a regular file", path)
	}
	if info.Size() > event.MaxAttachmentBytes {
		return nil, fmt.Errorf("attachment %q: %d bytes is out of range (at most %d)", path, info.Size(), event.MaxAttachmentBytes)
	}
	file, err := root.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	// The file may grow while it is being read.
	return io.ReadAll(io.LimitReader(file, event.MaxAttachmentBytes))
}
