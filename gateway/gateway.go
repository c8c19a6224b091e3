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

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/session"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// Client is what the gateway needs of a [session.Client].
type Client[C Context] interface {
	Open(name string) (C, error)
	List(ctx context.Context, query string) iter.Seq2[session.Summary, error]
	Live() bool
	Ping(ctx context.Context) error
	Limits() session.Limits
}

// Context is what the gateway needs of a [session.Context].
type Context interface {
	Name() string
	Send(ctx context.Context, events ...event.Event) (session.Receipt, error)
	Events(ctx context.Context, from string) iter.Seq2[event.Event, error]
	Follow(ctx context.Context, options session.FollowOptions) iter.Seq2[event.Event, error]
	Attachment(ctx context.Context, id string) (event.FileAttachment, error)
	State(ctx context.Context) (wire.State, error)
	Interrupt(ctx context.Context) error
	Close(ctx context.Context, reason string) error
}

// Options are the settings of a [Gateway]. The zero value is for a loopback
// address.
type Options struct {
	// Page is what is served at / and where nothing else is, see package page; nil:
	// nothing.
	Page http.Handler
	// Hosts are the names that the gateway is reached by, beside localhost and IP
	// addresses. Ports do not matter.
	Hosts []string
	// Rate is how many requests per second an address may make on average; 0: 50;
	// negative: any number. Burst is how many it may make at once; 0: four times as
	// many.
	Rate  float64
	Burst int
	// Streams is how many may be open, and StreamsPerAddress how many of them by one
	// address. 0: 10,000 and 1,000; negative: any number.
	Streams, StreamsPerAddress int
	// Proxies are the addresses of those whose X-Forwarded-For is believed, which
	// says for whom they ask.
	Proxies []netip.Prefix
	// MaxBody is the longest body of a request in bytes; 0: 32 MiB, which has room
	// for a file of 20 MiB.
	MaxBody int64
	// BodyBytes bounds the bytes of the bodies that are read or processed at once, of
	// all clients; 0: 256 MiB. AnswerBytes bounds those of the pages of logs and the
	// attachments that are read or sent at once; 0: 256 MiB. Neither is less than the
	// longest body or attachment.
	BodyBytes, AnswerBytes int64
	// KeepAlive is how often a stream says that it is alive; 0: 15 s.
	KeepAlive time.Duration
	// Linger is how long a context is followed after its last viewer left; 0: 10 s.
	Linger time.Duration
	// Log is told of each request; nil: nobody is.
	Log *slog.Logger
}

// Times that a peer may take.
const (
	headerTimeout = 10 * time.Second
	// bodyTimeout is for each piece of a body, bodyEnd for all of it, see [upload]:
	// the longest body comes in time at 300 kbit/s.
	bodyTimeout = 30 * time.Second
	bodyEnd     = 15 * time.Minute
	// writeTimeout is for each piece of an answer, see [answer.Write].
	writeTimeout = 30 * time.Second
	idleTimeout  = 2 * time.Minute
	// answerTimeout is how long the gateway may take for a short request.
	answerTimeout = 30 * time.Second
	// pingTimeout is how long Temporal may take to say that it serves.
	pingTimeout = 2 * time.Second
	// DrainTimeout is how long Serve waits for short requests when it is to end.
	DrainTimeout = 5 * time.Second
)

// Gateway is a [http.Handler] that serves the contexts of a namespace.
type Gateway struct {
	options Options
	open    func(name string) (Context, error)
	client  interface {
		Live() bool
		Ping(ctx context.Context) error
		Limits() session.Limits
	}
	probe   *probe
	bodies  *budget
	answers *budget
	listing *listing
	rooms   rooms
	closing context.Context // done when streams are to end
	close   context.CancelFunc
	handler http.Handler
}

// New returns a gateway to the contexts of a client: a [*session.Client], which
// the caller shuts down after Close.
func New[C Context](client Client[C], options Options) *Gateway {
	options.Rate = cmp.Or(options.Rate, 50)
	options.Burst = cmp.Or(options.Burst, int(min(max(1, 4*options.Rate), math.MaxInt32)))
	options.Streams = cmp.Or(options.Streams, 10_000)
	options.StreamsPerAddress = cmp.Or(options.StreamsPerAddress, 1000)
	options.MaxBody = cmp.Or(options.MaxBody, 32<<20)
	options.BodyBytes = max(cmp.Or(options.BodyBytes, 256<<20), options.MaxBody)
	options.AnswerBytes = max(cmp.Or(options.AnswerBytes, 256<<20), event.MaxAttachmentBytes)
	options.KeepAlive = cmp.Or(options.KeepAlive, 15*time.Second)
	options.Linger = cmp.Or(options.Linger, 10*time.Second)
	options.Log = cmp.Or(options.Log, slog.New(slog.DiscardHandler))
	g := &Gateway{
		options: options, client: client,
	}
	known := newNames()
	g.open = func(name string) (Context, error) {
		c, err := client.Open(name)
		return named{c, known}, err
	}
	g.probe = &probe{ping: client.Ping}
	g.bodies = newBudget("bodies", options.BodyBytes)
	g.answers = newBudget("answers", options.AnswerBytes)
	g.listing = newListing(g.probe.check, client.List)
	g.closing, g.close = context.WithCancel(context.Background())
	g.rooms = rooms{ctx: g.closing, linger: options.Linger, names: known, open: map[string]*room{}}
	g.handler = g.guard(g.mux())
	return g
}

// ServeHTTP serves a request.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) { g.handler.ServeHTTP(w, r) }

// Close ends all streams, each with a hint when to come back, and follows no
// context any more when it returns.
func (g *Gateway) Close() {
	g.close()
	g.rooms.close()
}

// Serve serves the connections of a listener until ctx is done; then it lets go of
// the listener, ends the streams, answers what has been asked, and returns nil.
// What takes longer than [DrainTimeout] is cut off.
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
