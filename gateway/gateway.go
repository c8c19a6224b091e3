package gateway

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/netip"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
	"github.com/seed-9ed7edd4/chronicle/internal/metrics"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// Client is the part of [client.Client] that the gateway uses. T is the client of a tenant.
type Client[T any] interface {
	Tenant(tenant string) (T, error)
	Live() bool
	Ping(ctx context.Context) error
	Limits() client.Limits
}

// TenantClient is the part of the client of a tenant that the gateway uses, see [client.Client.Tenant].
type TenantClient[C Context] interface {
	Open(name string) (C, error)
	List(ctx context.Context, query string) iter.Seq2[client.Summary, error]
	StoreUsage(ctx context.Context, names ...string) (client.StoreUsage, error)
	Summary(ctx context.Context, name string) (client.Summary, error)
	Events(ctx context.Context, name, from string) iter.Seq2[event.Event, error]
	Stored(ctx context.Context) iter.Seq2[string, error]
	Watch(ctx context.Context, changed func(contextName string)) error
}

// Context is the part of [client.Context] that the gateway uses.
type Context interface {
	Name() string
	Send(ctx context.Context, events ...event.Event) (client.Receipt, error)
	Events(ctx context.Context, from string) iter.Seq2[event.Event, error]
	EventsAndWaiting(ctx context.Context, from string, waiting func(client.Waiting)) iter.Seq2[event.Event, error]
	Follow(ctx context.Context, options client.FollowOptions) iter.Seq2[event.Event, error]
	Attachment(ctx context.Context, id string) (event.FileAttachment, error)
	State(ctx context.Context) (wire.State, error)
	UnattendedSince(ctx context.Context) (time.Time, error)
	Branch(ctx context.Context, options client.BranchOptions) (client.Branched, error)
	Branches(ctx context.Context) (client.Branches, error)
	Interrupt(ctx context.Context) error
	Close(ctx context.Context, reason string) error
	StartDeletion(ctx context.Context, o client.DeleteOptions) error
	Deletion(ctx context.Context) (client.Deletion, error)
}

// Options configure a [Gateway]. The zero value suits a loopback address.
type Options struct {
	// Page serves / and every path without a route, see package page. Nil: no page.
	Page http.Handler
	// Protocols are served besides the gateway's own, see package openai. Nil: none.
	Protocols []Protocol
	// Auth authenticates requests about contexts. Nil: none, so anyone who can reach the gateway may do everything
	// with the contexts that have no tenant.
	Auth auth.Authenticator
	// SignIn serves the paths below [auth.Path], and makes share links. Nil: nobody signs in or shares.
	SignIn SignIn
	// Audit receives an entry for each operation that is not public, each sign-in and each sign-out: subject, token,
	// tenant, operation, context, status, client and request_id, and no content. Nil: none.
	Audit *slog.Logger
	// PublicPath is the path of the page for browsers, without a slash at its end, behind a proxy that removes it from
	// requests. Links in responses begin with it. Empty: the root.
	PublicPath string
	// IndexDir has the indexes for the list and the search, which are built from the logs: one folder per tenant. A
	// folder that another gateway uses is not used. Empty: a temporary one, which Close removes.
	IndexDir string
	Hosts    []string // accepted besides localhost and IP addresses, without ports
	// Rate bounds the average requests per second of one client, which is an IPv4 address or an IPv6 /64;
	// 0: 50, negative: unlimited. Burst is the number allowed at once; 0: 4 * Rate.
	Rate  float64
	Burst int
	// Streams bounds the open streams, StreamsPerAddress those of one client. 0: 10,000 and 1,000;
	// negative: unlimited.
	Streams, StreamsPerAddress int
	// With Auth, TenantRate bounds the requests per second of a tenant, with bursts of four times as many, and
	// StreamsPerTenant its open streams. 0: 10 * Rate and 5,000; negative: unlimited.
	TenantRate       float64
	StreamsPerTenant int
	// With Auth, TenantContexts bounds the contexts of a tenant, and TenantBytes what they occupy in the blob store. A
	// tenant that has reached a bound still reads, closes and deletes. 0 or less: unlimited.
	TenantContexts int
	TenantBytes    int64
	Proxies        []netip.Prefix // trusted; their X-Forwarded-For identifies the client
	MaxBody        int64          // bytes of a request body; 0: 32 MiB, for a file of 20 MiB
	// BodyBytes bounds the request bodies read or processed at once, over all clients, and
	// AnswerBytes the log pages, attachments and pieces of logs and transcripts read or sent at once. 0:
	// 256 MiB each. Both are at least the maximum size of one body or attachment.
	BodyBytes, AnswerBytes int64
	KeepAlive              time.Duration        // interval of comments on a stream, at most 15 s; 0: 15 s
	Linger                 time.Duration        // time until a room without viewers ends; 0: 10 s
	Log                    *slog.Logger         // receives an entry for each request; nil: none
	Meters                 metric.MeterProvider // records metrics; nil: none. For its views, see client.Config.
	// Tracers makes spans of requests about a context, which continue the trace of their W3C headers.
	// The client needs the same provider, see [client.Config]. Nil: none.
	Tracers trace.TracerProvider
}

const (
	headerTimeout = 10 * time.Second
	// bodyTimeout applies to each chunk of a body, bodyEnd to all of it, see [upload]. A body of
	// the maximum size requires 300 kbit/s.
	bodyTimeout   = 30 * time.Second
	bodyEnd       = 15 * time.Minute
	writeTimeout  = 30 * time.Second // of each chunk of a response; may be cut to two thirds of this time, see [response.extend]
	idleTimeout   = 2 * time.Minute
	answerTimeout = 30 * time.Second // of requests other than streams
	pingTimeout   = 2 * time.Second  // of the health check of Temporal
	DrainTimeout  = 5 * time.Second  // for running requests on shutdown
)

// Gateway is an [http.Handler] that serves the contexts of a namespace.
type Gateway struct {
	options Options
	client  interface {
		Live() bool
		Ping(ctx context.Context) error
		Limits() client.Limits
	}
	metrics *metrics.Metrics
	probe   *probe
	bodies  *byteLimit
	answers *byteLimit
	tenants *tenants
	streams *streamLimiter
	closing context.Context // done on shutdown, ends all streams
	close   context.CancelFunc
	handler http.Handler
}

// New returns a gateway. The caller shuts the client down after Close.
func New[T TenantClient[C], C Context](client Client[T], options Options) *Gateway {
	options.Rate = cmp.Or(options.Rate, 50)
	options.Burst = cmp.Or(options.Burst, int(min(max(1, 4*options.Rate), math.MaxInt32)))
	options.TenantRate = cmp.Or(options.TenantRate, 10*options.Rate)
	options.Streams = cmp.Or(options.Streams, 10_000)
	options.StreamsPerAddress = cmp.Or(options.StreamsPerAddress, 1000)
	options.StreamsPerTenant = cmp.Or(options.StreamsPerTenant, 5000)
	options.MaxBody = cmp.Or(options.MaxBody, 32<<20)
	options.BodyBytes = max(cmp.Or(options.BodyBytes, 256<<20), options.MaxBody)
	options.AnswerBytes = max(cmp.Or(options.AnswerBytes, 256<<20), event.MaxAttachmentBytes)
	options.KeepAlive = cmp.Or(options.KeepAlive, 15*time.Second)
	options.Linger = cmp.Or(options.Linger, 10*time.Second)
	options.Log = cmp.Or(options.Log, slog.New(slog.DiscardHandler))
	if options.Auth == nil {
		options.TenantContexts, options.TenantBytes = 0, 0
	}
	if options.SignIn == nil {
		options.SignIn = new(auth.Service)
	}
	g := &Gateway{
		options: options, client: client, metrics: metrics.New(options.Meters),
	}
	g.probe = &probe{ping: client.Ping}
	g.bodies = newByteLimit("request bodies", options.BodyBytes)
	g.answers = newByteLimit("responses", options.AnswerBytes)
	g.closing, g.close = context.WithCancel(context.Background())
	g.tenants = newTenants(g, client)
	g.streams = newStreamLimiter(options)
	g.handler = g.guard(g.mux())
	return g
}

func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) { g.handler.ServeHTTP(w, r) }

// Close ends all streams, tells each viewer how long to wait before it reconnects, and waits until no
// context is followed.
func (g *Gateway) Close() {
	g.close()
	g.tenants.close()
}

// Serve serves until ctx is done. Then it closes the listener, ends the streams, completes running
// requests, and returns nil. It aborts requests after [DrainTimeout].
func (g *Gateway) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler:           g,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(g.options.Log.Handler(), slog.LevelWarn),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	g.openIndexes()
	defer g.Close()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	g.close()
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), DrainTimeout)
	defer cancel()
	if err := server.Shutdown(drain); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return server.Close()
}
