package client

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/seed-9ed7edd4/chronicle/internal/connect"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
	"github.com/seed-9ed7edd4/chronicle/internal/tracing/intercept"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// Config configures [Dial] and the worker's contexts.Connect. The zero value is valid for Dial.
type Config struct {
	// Address of Temporal, host:port. Empty: TEMPORAL_ADDRESS or the TOML profile
	// (go.temporal.io/sdk/contrib/envconfig), else 127.0.0.1:7233.
	Address string
	// Namespace of Temporal. Empty: TEMPORAL_NAMESPACE or the profile, else "default".
	Namespace string
	// Profile of the TOML file. Empty: TEMPORAL_PROFILE, else "default".
	Profile string
	// Temporal replaces the profile and all variables: the defaults of empty fields are then those without them, and
	// none for NATSURL. Address and Namespace override it. Nil: the profile and the variables are read.
	Temporal *sdkclient.Options
	// NATSURL for live deltas. Empty: NATS_URL, else nats://127.0.0.1:4222. "none": no deltas.
	NATSURL string
	// NATSAuth for NATSURL. Empty fields: NATS_USER, NATS_PASSWORD, NATS_CREDS etc. Without any of them, for NATS on
	// this machine: the token in .chronicle/nats.token, of a worker --dev that was started in the working directory, if
	// the file exists.
	NATSAuth NATSAuth
	// BlobURL of the workers' store: file:///folder, or a bucket like s3://bucket if the program is built with -tags clouds
	// or imports its driver, such as gocloud.dev/blob/s3blob. Empty: BLOB_URL, else "none". A folder must exist for Dial;
	// Connect creates it. With "none", input is limited to 60 KiB, and operations on archived events or large payloads
	// fail; workers require a store.
	BlobURL   string
	TaskQueue string // of contexts; empty: "contexts"
	// Tracers makes spans of the calls to Temporal, and of the work of workers. Nil: none.
	Tracers trace.TracerProvider
	// Meters records metrics of the blob store and of workers; nil: none.
	Meters metric.MeterProvider
	// Logger receives what happens to the connections, and what the Temporal SDK logs unless Temporal has a Logger. Nil:
	// Dial discards it, Connect uses [slog.Default].
	Logger *slog.Logger
}

// NATSAuth is how a program and a NATS server authenticate each other.
type NATSAuth = stream.Auth

// Resolve returns the config as [Dial] uses it: with the values of the profile and of variables, and without "none".
// Temporal has the options for a Temporal client of your own, which then has no blob store.
func (c Config) Resolve() (Config, error) {
	options, err := connect.Temporal{Address: c.Address, Namespace: c.Namespace, Profile: c.Profile, Given: c.Temporal}.Options()
	if err != nil {
		return c, err
	}
	if c.Temporal == nil {
		c.BlobURL = cmp.Or(c.BlobURL, os.Getenv("BLOB_URL"))
		c.NATSURL = connect.NATSURL(c.NATSURL, os.Getenv)
		c.NATSAuth = connect.NATSAuth(c.NATSAuth, c.NATSURL, os.Getenv)
	}
	for _, url := range []*string{&c.BlobURL, &c.NATSURL} {
		if *url == "none" {
			*url = ""
		}
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Tracers != nil {
		options.Interceptors = append(slices.Clone(options.Interceptors), intercept.Client(c.Tracers))
	}
	if options.Logger == nil {
		options.Logger = log.NewStructuredLogger(c.Logger)
	}
	// Compressing small messages costs both sides more than sending them.
	options.ConnectionOptions.GrpcCompression = &sdkclient.GrpcCompressionNone{}
	// The SDK warns about payloads before they go to the blob store.
	options.PayloadLimits.PayloadSizeWarning = wire.MaxInputBytes
	c.Temporal, c.Namespace = &options, options.Namespace
	return c, nil
}

const (
	temporalTimeout = 5 * time.Second
	natsTimeout     = time.Second
)

// Dial connects to Temporal, and to NATS on first use. The error is ErrUnreachable if Temporal does
// not respond within 5 s. Without NATS, only live deltas are missing ([Client.Live]).
func Dial(ctx context.Context, config Config) (*Client, error) {
	config, err := config.Resolve()
	if err != nil {
		return nil, err
	}
	var store *blobs.Store
	var logs *archive.Archive
	if config.BlobURL != "" {
		if store, err = blobs.OpenExisting(ctx, config.BlobURL, config.Namespace); err != nil {
			return nil, err
		}
		store.Measure(config.Meters)
		logs = archive.New(store)
	}
	options := *config.Temporal
	options.ExternalStorage = eventlog.ExternalStorage(store)
	temporal, err := connect.Dial(ctx, options, temporalTimeout)
	if err != nil {
		return nil, err
	}
	c := New(Options{Temporal: temporal, Namespace: config.Namespace, Archive: logs, TaskQueue: config.TaskQueue})
	c.ownsConnections, c.blobs = true, store
	if err := c.checkNamespace(ctx); err != nil {
		c.Shutdown()
		return nil, err
	}
	c.stream.connect = func() (*stream.Conn, error) {
		conn, err := connect.NATS(config.NATSURL, stream.Options{Namespace: config.Namespace, Auth: config.NATSAuth, Name: "chronicle client"}, config.Logger)
		if conn != nil {
			flush, cancel := context.WithTimeout(context.Background(), natsTimeout)
			defer cancel()
			_ = conn.Flush(flush)
		}
		return conn, err
	}
	return c, nil
}

// lazyStream connects on first use, because most calls do not need NATS.
type lazyStream struct {
	mu      sync.Mutex
	connect func() (*stream.Conn, error) // nil after the first use, or without NATS
	conn    *stream.Conn                 // nil: no live deltas
	err     error
}

func (l *lazyStream) get() (*stream.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.connect != nil {
		l.conn, l.err = l.connect()
		l.connect = nil
	}
	return l.conn, l.err
}

func (l *lazyStream) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn.Close()
	l.connect = nil
}
