package main

import (
	"cmp"
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
	"go.temporal.io/sdk/contrib/envconfig"
	sdklog "go.temporal.io/sdk/log"
	"go.uber.org/zap"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/stream"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// connectTimeout is for the first answer of Temporal.
const connectTimeout = 10 * time.Second

// places are what the worker works with, and where they are.
type places struct {
	temporal client.Options
	natsURL  string
	natsAuth stream.Auth
	blobURL  string
	models   llm.Options
	// modelURL is where the built-in model is, empty without it.
	modelURL string
}

// errTold ends a worker that was told to stop.
var errTold = errors.New("told to stop")

// run is the life of a worker.
func (a *app) run(ctx context.Context) (err error) {
	life, end := context.WithCancelCause(ctx)
	defer end(nil)
	a.endOnSignal(life, end)

	log := newLogger(a.err, a.settings.json)
	var at places
	var dev *local
	if a.settings.dev {
		if dev, err = a.startLocal(life, end, log); err != nil {
			return because(life, err)
		}
		defer func() { err = errors.Join(err, dev.stop()) }()
		log, at = dev.log, dev.places
	} else if at, err = a.configured(log); err != nil {
		return err
	}
	running, err := a.startWorker(life, end, at, log)
	if err != nil {
		return because(life, err)
	}
	defer func() {
		// Without Temporal there is nobody to hand running requests back to, and
		// the worker would wait for them in vain.
		if !errors.As(context.Cause(life), new(goneError)) {
			running.stop()
		}
	}()
	a.announce(at, dev, log)

	if len(a.settings.command) > 0 {
		return a.runCommand(life, at)
	}
	<-life.Done()
	if reason := context.Cause(life); !errors.Is(reason, errTold) {
		// Now: to stop may take a while, and why is told at the end.
		log.Error("cannot go on, stopping")
		return reason
	}
	log.Info("stopping")
	return nil
}

// because is why something failed: if life has ended, that is the reason.
func because(life context.Context, err error) error {
	if life.Err() != nil {
		return context.Cause(life)
	}
	return err
}

// endOnSignal ends life on the first signal that says so; a second one ends the
// worker at once. While a command has the terminal, a Ctrl-C reaches it by
// itself, and what that means is the command's business.
func (a *app) endOnSignal(life context.Context, end context.CancelCauseFunc) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		defer signal.Stop(signals)
		for {
			select {
			case s := <-signals:
				if s == os.Interrupt && a.commandRuns.Load() {
					continue
				}
				end(errTold)
				return
			case <-life.Done():
				return
			}
		}
	}()
}

// configured finds everything by flags, environment and TOML profile.
func (a *app) configured(log *zap.Logger) (places, error) {
	s := a.settings
	options, err := envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{ConfigFileProfile: s.profile})
	if err != nil {
		return places{}, fmt.Errorf("connection settings of Temporal: %w", err)
	}
	options.HostPort = cmp.Or(s.address, options.HostPort, client.DefaultHostPort)
	options.Namespace = cmp.Or(s.namespace, options.Namespace, client.DefaultNamespace)
	options.Logger = sdkLogger(log)
	natsURL := cmp.Or(s.natsURL, a.getenv("NATS_URL"), "nats://127.0.0.1:4222")
	if natsURL == "none" {
		natsURL = ""
	}
	blobURL, err := a.blobURL(defaultDataDir)
	if err != nil {
		return places{}, err
	}
	models, err := a.modelOptions()
	return places{temporal: options, natsURL: natsURL, natsAuth: s.natsAuth.WithEnv(a.getenv), blobURL: blobURL, models: models}, err
}

// blobURL is the store by flag or environment, else a folder in a data directory.
func (a *app) blobURL(dataDir string) (string, error) {
	switch blobURL := cmp.Or(a.settings.blobURL, a.getenv("BLOB_URL")); blobURL {
	case "":
		dir, err := filepath.Abs(filepath.Join(dataDir, blobsDir))
		return (&url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}).String(), err
	case "none":
		return "", usageError{errors.New(`--blob-url or BLOB_URL "none": a worker needs a blob store (leave it empty for a local folder)`)}
	default:
		return blobURL, nil
	}
}

// sdkLogger is quiet: the SDK tells at info level what is no news.
func sdkLogger(log *zap.Logger) sdklog.Logger {
	return sdklog.NewStructuredLogger(structured(log, "temporal-sdk", zap.WarnLevel))
}

// dial reaches Temporal.
func dial(ctx context.Context, at places) (client.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	// Compressing small messages costs both sides more than sending them does.
	at.temporal.ConnectionOptions.GrpcCompression = &client.GrpcCompressionNone{}
	// Longer payloads are in the blob store.
	at.temporal.PayloadLimits.PayloadSizeWarning = wire.MaxInputBytes
	at.temporal.Identity = fmt.Sprintf("%d%s", os.Getpid(), atThisHost())
	c, err := client.DialContext(ctx, at.temporal)
	if err != nil {
		return nil, fmt.Errorf("%w at %s: %w (--address or TEMPORAL_ADDRESS says where it is; "+
			"--dev starts one on this machine)", errUnreachable, at.temporal.HostPort, err)
	}
	return c, nil
}

// connect reaches Temporal and, if it is there, NATS.
func connect(ctx context.Context, at places, log *zap.Logger) (client.Client, *stream.Conn, error) {
	c, err := dial(ctx, at)
	if err != nil {
		return nil, nil, err
	}
	if at.natsURL == "" {
		return c, nil, nil
	}
	conn, err := stream.Connect(at.natsURL, stream.Options{
		Namespace: at.temporal.Namespace,
		Auth:      at.natsAuth,
		Name:      "chronicle worker",
		Lost: func(err error) {
			if err != nil {
				log.Warn("lost NATS: answers are not streamed until it is back", zap.Error(err))
			}
		},
		Found: func() { log.Info("NATS is there: answers are streamed") },
	})
	if err != nil {
		c.Close()
		return nil, nil, err
	}
	if !conn.Connected() {
		log.Warn("cannot reach NATS: answers are not streamed until it is there",
			zap.String("url", stream.RedactURL(at.natsURL)), zap.Error(conn.Problem()))
	}
	return c, conn, nil
}

// attachmentReader reads files below a directory. Empty: nil, which is none.
func attachmentReader(dir string) (func(path string) ([]byte, error), error) {
	if dir == "" {
		return nil, nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("--attachments-dir: %w", err)
	}
	// A root refuses every way out of it, symbolic links included.
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("--attachments-dir: %w", err)
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

// readBounded reads a file that is not longer than an attachment may be.
func readBounded(root *os.Root, path string) ([]byte, error) {
	info, err := root.Stat(path) // to open a pipe would wait for its writer
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
	// The file may grow while it is read.
	return io.ReadAll(io.LimitReader(file, event.MaxAttachmentBytes))
}
