package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/api/serviceerror"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed-9ed7edd4/chronicle/internal/connect"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
	"github.com/seed-9ed7edd4/chronicle/internal/tracing/intercept"
)

// Config configures [Dial]. The zero value is valid.
type Config struct {
	// Address of Temporal, host:port. Empty: TEMPORAL_ADDRESS or the TOML profile
	// (go.temporal.io/sdk/contrib/envconfig), else 127.0.0.1:7233.
	Address string
	// Namespace of Temporal. Empty: TEMPORAL_NAMESPACE or the profile, else "default".
	Namespace string
	// Profile of the TOML file. Empty: TEMPORAL_PROFILE, else "default".
	Profile string
	// NATSURL for live deltas. Empty: NATS_URL, else nats://127.0.0.1:4222. "none": no deltas.
	NATSURL string
	// NATSAuth for NATSURL. Empty fields: NATS_USER, NATS_PASSWORD, NATS_CREDS etc., see [stream.Auth]. Without
	// any of them, for NATS on this machine: the token in .chronicle/nats.token, of a worker --dev that was started
	// in the working directory, if the file exists.
	NATSAuth stream.Auth
	// BlobURL of the workers' store, see package blobs. A folder must exist: the first worker creates it,
	// clients do not. Empty: BLOB_URL, else "none". With "none", input is limited to 60 KiB, and operations
	// on archived events or large payloads fail.
	BlobURL   string
	TaskQueue string // of new contexts; empty: wire.TaskQueue
	// Tracers makes spans of the calls to Temporal, and sends their trace context to the workers.
	// Nil: none.
	Tracers trace.TracerProvider
	// OnDisconnect is called when the connection to NATS breaks. OnConnect is called when it is restored,
	// or established after the first attempt failed. Optional.
	OnDisconnect func(error)
	OnConnect    func()
}

// Tracing returns an interceptor for the Temporal client of [Options], which does what
// [Config].Tracers does for [Dial].
func Tracing(tracers trace.TracerProvider) interceptor.ClientInterceptor {
	return intercept.Client(tracers)
}

const (
	temporalTimeout = 5 * time.Second
	natsTimeout     = time.Second
)

// Dial connects to Temporal, and to NATS on first use. The error is ErrUnreachable if Temporal does
// not respond within 5 s. Without NATS, only live deltas are missing ([Client.Live]).
func Dial(ctx context.Context, config Config) (*Client, error) {
	options, err := connect.Temporal{Address: config.Address, Namespace: config.Namespace, Profile: config.Profile}.Options()
	if err != nil {
		return nil, err
	}
	if config.Tracers != nil {
		options.Interceptors = append(options.Interceptors, Tracing(config.Tracers))
	}
	options.Logger = log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	// Compressing small messages costs both sides more than sending them.
	options.ConnectionOptions.GrpcCompression = &sdkclient.GrpcCompressionNone{}
	var store *blobs.Store
	var logs *archive.Archive
	if url := cmp.Or(config.BlobURL, os.Getenv("BLOB_URL"), "none"); url != "none" {
		if store, err = blobs.OpenExisting(ctx, url, options.Namespace); err != nil {
			return nil, err
		}
		logs = archive.New(store)
	}
	options.ExternalStorage = blobs.ExternalStorage(store)
	dial, cancel := context.WithTimeout(ctx, temporalTimeout)
	defer cancel()
	temporal, err := sdkclient.DialContext(dial, options)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if isDenied(err) {
			return nil, fmt.Errorf("connect to Temporal at %s: access denied (check the credentials): %w", options.HostPort, err)
		}
		return nil, fmt.Errorf("connect to Temporal at %s: %w: %w", options.HostPort, ErrUnreachable, err)
	}
	c := New(Options{Temporal: temporal, Namespace: options.Namespace, Archive: logs, TaskQueue: config.TaskQueue})
	c.ownsConnections, c.blobs = true, store
	if err := c.checkNamespace(dial); err != nil {
		c.Shutdown()
		return nil, err
	}
	if url := connect.NATSURL(config.NATSURL, os.Getenv); url != "" {
		config.NATSAuth = connect.NATSAuth(config.NATSAuth, url, os.Getenv)
		c.stream.connect = func() (*stream.Conn, error) { return dialStream(url, config, options.Namespace) }
	}
	return c, nil
}

func isDenied(err error) bool {
	var denied *serviceerror.PermissionDenied
	return errors.As(err, &denied) || status.Code(err) == codes.Unauthenticated
}

// dialStream waits for the first attempt to connect, and then up to natsTimeout. After that, connecting
// continues in the background.
func dialStream(url string, config Config, namespace string) (*stream.Conn, error) {
	conn, err := stream.Connect(url, stream.Options{
		Namespace: namespace, Auth: config.NATSAuth, Name: "chronicle client", OnDisconnect: config.OnDisconnect, OnConnect: config.OnConnect,
	})
	if err != nil {
		return nil, err
	}
	flush, cancel := context.WithTimeout(context.Background(), natsTimeout)
	defer cancel()
	_ = conn.Flush(flush)
	return conn, nil
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
