// Package client is the Go client of contexts: what a program in Go uses
// to talk to them, and what the starter and the gateway are made of.
//
//	c, err := client.Dial(ctx, client.Config{})
//	demo, err := c.Open("demo")
//	for e, err := range demo.Ask(ctx, event.New(event.UserMessage{Content: "Hello"})) {
//		// TextDelta as the model speaks, then AssistantMessage, LLMRequestCompleted
//	}
//
// A context exists from the first event that is sent to it; opening one asks
// nothing of the server. Reading the log and following it needs no worker.
package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/eventlog"
	"github.com/seed-9ed7edd4/chronicle/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/stream"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// Errors that callers tell apart, with errors.Is.
var (
	// ErrName: no context can have that name.
	ErrName = errors.New("invalid context name")
	// ErrNoContext: there is no context of that name.
	ErrNoContext = eventlog.ErrNoContext
	// ErrUnreachable: Temporal does not answer.
	ErrUnreachable = errors.New("temporal is unreachable")
	// ErrLost: the run that was sent the events was terminated or reset before it
	// recorded them.
	ErrLost = errors.New("the run was terminated before it recorded the events")
	// ErrUnanswered: the run that recorded the events was terminated before it
	// answered them.
	ErrUnanswered = errors.New("the run was terminated before it answered")
	// ErrRefused: the context did not take the events but recorded an
	// InputRejectedEvent, whose reason follows.
	ErrRefused = errors.New("refused")
	// ErrKeyReused is the ErrRefused of events whose idempotency key was used for
	// others, see [event.KeyedID].
	ErrKeyReused = fmt.Errorf("%w: %s", ErrRefused, event.KeyReused)
	// ErrNoAttachment: the event brought no file, or one whose bytes are elsewhere.
	ErrNoAttachment = errors.New("no such attachment")
	// ErrNoWorker: the context is there, but no worker answers for it.
	ErrNoWorker = errors.New("no worker answers")
)

// Config says how to reach Temporal and NATS.
type Config struct {
	// Address of Temporal, host:port. Empty: TEMPORAL_ADDRESS or the TOML
	// profile, see go.temporal.io/sdk/contrib/envconfig; else localhost:7233.
	Address string
	// Namespace of Temporal. Empty: TEMPORAL_NAMESPACE or the profile; else
	// "default".
	Namespace string
	// Profile of the TOML file. Empty: TEMPORAL_PROFILE, else "default".
	Profile string
	// NATSURL is where live deltas come from. Empty: NATS_URL, else
	// nats://127.0.0.1:4222. "none": no live deltas.
	NATSURL string
	// NATSAuth is how the client authenticates at NATS. What is empty is taken
	// from NATS_USER, NATS_PASSWORD, NATS_CREDS and so on, see [stream.Auth].
	NATSAuth stream.Auth
	// BlobURL is the blob store of the workers, see package blobs. Empty:
	// BLOB_URL, else none. A client without a store ("none") sends input up to
	// wire.MaxAppendBytes and reads what Temporal has; for anything else it fails
	// with an error that says so.
	BlobURL string
	// TaskQueue on which new contexts start. Empty: wire.TaskQueue.
	TaskQueue string
}

// How long what is connected to may take to answer.
const (
	temporalTimeout = 5 * time.Second
	natsTimeout     = time.Second
)

// Dial connects to Temporal, which must answer, and to NATS, which need not:
// without it everything works but live deltas, and Client.Live is false.
func Dial(ctx context.Context, config Config) (*Client, error) {
	options, err := config.clientOptions()
	if err != nil {
		return nil, err
	}
	options.Logger = log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	// Compressing small messages costs both sides more than sending them does.
	options.ConnectionOptions.GrpcCompression = &sdkclient.GrpcCompressionNone{}
	var store *blobs.Store
	var logs *archive.Archive
	if url := cmp.Or(config.BlobURL, os.Getenv("BLOB_URL"), "none"); url != "none" {
		if store, err = blobs.Open(ctx, url, options.Namespace); err != nil {
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
		if isRefusal(err) {
			return nil, fmt.Errorf("temporal at %s refuses the connection: %w", options.HostPort, err)
		}
		return nil, fmt.Errorf("%w at %s: %w", ErrUnreachable, options.HostPort, err)
	}
	c := New(Options{Temporal: temporal, Namespace: options.Namespace, Archive: logs, TaskQueue: config.TaskQueue})
	c.owned, c.blobs = true, store
	if err := c.checkNamespace(dial); err != nil {
		c.Shutdown()
		return nil, err
	}
	if url := cmp.Or(config.NATSURL, stream.DefaultURL()); url != "none" {
		auth := config.NATSAuth.WithEnv(os.Getenv)
		c.stream.connect = func() (*stream.Conn, error) { return dialStream(url, auth, options.Namespace) }
	}
	return c, nil
}

// isRefusal reports whether Temporal answered, and does not let us in.
func isRefusal(err error) bool {
	var denied *serviceerror.PermissionDenied
	return errors.As(err, &denied) || status.Code(err) == codes.Unauthenticated
}

// clientOptions are the settings of the Temporal client.
func (config Config) clientOptions() (sdkclient.Options, error) {
	options, err := envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{ConfigFileProfile: config.Profile})
	if err != nil {
		return options, fmt.Errorf("read the settings of the Temporal client: %w", err)
	}
	options.HostPort = cmp.Or(config.Address, options.HostPort, sdkclient.DefaultHostPort)
	options.Namespace = cmp.Or(config.Namespace, options.Namespace, sdkclient.DefaultNamespace)
	return options, nil
}

// dialStream returns a connection even when there is no answer in time: it
// goes on trying.
func dialStream(url string, auth stream.Auth, namespace string) (*stream.Conn, error) {
	conn, err := stream.Connect(url, stream.Options{Namespace: namespace, Auth: auth, Name: "chronicle session"})
	if err != nil {
		return nil, err
	}
	flush, cancel := context.WithTimeout(context.Background(), natsTimeout)
	defer cancel()
	_ = conn.Flush(flush)
	return conn, nil
}

// lazyStream is a connection to NATS that is made when it is first needed: most
// commands never need it.
type lazyStream struct {
	mu      sync.Mutex
	connect func() (*stream.Conn, error) // nil when done, or when there is nothing to do
	conn    *stream.Conn                 // nil: there are no deltas
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

// close closes a connection that was made.
func (l *lazyStream) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn.Close()
	l.connect = nil
}

// Options are the connections of a [Client].
type Options struct {
	Temporal sdkclient.Client
	// Namespace of Temporal, whose record of the blob store is compared with the store of
	// the client. Empty: "default", and nothing is compared.
	Namespace string
	// Stream carries live deltas; nil: there are none.
	Stream *stream.Conn
	// TaskQueue on which new contexts start. Empty: wire.TaskQueue.
	TaskQueue string
	// Archive has what the server does not keep of the logs; nil: there is none.
	// Its store is that of the blobs.ExternalStorage of Temporal.
	Archive *archive.Archive
}

// Client reaches the contexts of one Temporal namespace. It is safe for
// concurrent use.
type Client struct {
	options Options
	log     *eventlog.Log
	stream  lazyStream
	room    room
	wakes   wakes
	stores  storeChecks
	owned   bool         // the connections are ours to close
	blobs   *blobs.Store // ours, if there is one
}

// New returns a client on connections that the caller owns.
func New(options Options) *Client {
	options.TaskQueue = cmp.Or(options.TaskQueue, wire.TaskQueue)
	return &Client{options: options, log: eventlog.New(options.Temporal, options.Namespace, options.Archive), stream: lazyStream{conn: options.Stream}}
}

// Live reports whether live deltas arrive now.
func (c *Client) Live() bool {
	conn, err := c.stream.get()
	return err == nil && conn.Connected()
}

// Ping asks Temporal whether it serves. The error is ErrUnreachable, or that of
// ctx.
func (c *Client) Ping(ctx context.Context) error {
	if _, err := c.options.Temporal.CheckHealth(ctx, &sdkclient.CheckHealthRequest{}); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return nil
}

// Shutdown closes the connections that Dial made.
func (c *Client) Shutdown() {
	if c.owned {
		c.stream.close()
		c.options.Temporal.Close()
	}
	if c.blobs != nil {
		_ = c.blobs.Close() // nothing was left half written
	}
}

// Open returns the context of a name, whether it exists or not. The error, if
// any, is ErrName.
func (c *Client) Open(name string) (*Context, error) {
	if err := event.ValidateContextName(name); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrName, err)
	}
	return &Context{client: c, name: name}, nil
}

// Context is one context.
type Context struct {
	client *Client
	name   string
}

// Name of the context.
func (c *Context) Name() string { return c.name }

// State asks the context for its state, which needs a worker.
func (c *Context) State(ctx context.Context) (wire.State, error) {
	var state wire.State
	query, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	value, err := c.query(query, wire.QueryState)
	if err != nil {
		silence := ErrNoWorker
		if query.Err() != nil {
			silence = c.silence(ctx)
		}
		return state, c.explain(ctx, "ask for the state of", err, silence)
	}
	if err := value.Get(&state); err != nil {
		return state, fmt.Errorf("read the state of context %s: %w", c.name, err)
	}
	return state, nil
}

// notReadyPause is how long to wait before a run that has just started is asked
// again.
const notReadyPause = 10 * time.Millisecond

// query asks the newest run. A run that has just started is not ready for queries
// until its first workflow task is complete.
func (c *Context) query(ctx context.Context, name string, args ...any) (converter.EncodedValue, error) {
	for {
		value, err := c.client.options.Temporal.QueryWorkflow(ctx, wire.WorkflowID(c.name), "", name, args...)
		if !errors.As(err, new(*serviceerror.WorkflowNotReady)) || !pause(ctx, notReadyPause) {
			return value, err
		}
	}
}

// pause waits and reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// silence is what it means that a query was not answered: without a worker,
// Temporal still answers for itself.
func (c *Context) silence(ctx context.Context) error {
	probe, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err := c.client.options.Temporal.DescribeWorkflowExecution(probe, wire.WorkflowID(c.name), "")
	var unavailable *serviceerror.Unavailable
	if errors.As(err, &unavailable) || probe.Err() != nil {
		return ErrUnreachable
	}
	return ErrNoWorker
}

// Interrupt stops the running answer; when none runs, nothing happens.
func (c *Context) Interrupt(ctx context.Context) error {
	return c.signal(ctx, "interrupt", wire.SignalInterrupt, nil)
}

// Close ends the session, after stopping a running answer. It does not wait.
// The reason goes into the log; empty means "closed". Closing a closed context
// does nothing.
func (c *Context) Close(ctx context.Context, reason string) error {
	return c.signal(ctx, "close", wire.SignalClose, wire.Close{Reason: reason})
}

func (c *Context) signal(ctx context.Context, verb, name string, input any) error {
	if err := c.checkStore(ctx, verb); err != nil {
		return err
	}
	temporal := c.client.options.Temporal
	err := temporal.SignalWorkflow(ctx, wire.WorkflowID(c.name), "", name, input)
	var notFound *serviceerror.NotFound
	if errors.As(err, &notFound) {
		// Temporal says the same of a context that is closed and of none.
		if _, err := temporal.DescribeWorkflowExecution(ctx, wire.WorkflowID(c.name), ""); err == nil {
			return nil
		}
	}
	return c.explain(ctx, verb, err, ErrUnreachable)
}

// explain turns an error of Temporal into one of this package. silence is what
// it means when no answer came in time.
func (c *Context) explain(ctx context.Context, verb string, err, silence error) error {
	if err == nil {
		return nil
	}
	var (
		notFound    *serviceerror.NotFound
		unavailable *serviceerror.Unavailable
		noWorker    *serviceerror.FailedPrecondition
		deadline    *serviceerror.DeadlineExceeded
		failed      *serviceerror.QueryFailed
	)
	kind := error(nil)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, ErrRefused), errors.Is(err, ErrFull):
		return fmt.Errorf("%s context %s: %w", verb, c.name, err)
	case errors.As(err, &notFound):
		kind = ErrNoContext
	case errors.As(err, &unavailable):
		kind = ErrUnreachable
	case errors.As(err, &deadline), errors.Is(err, context.DeadlineExceeded):
		kind = silence
	case errors.As(err, &noWorker), errors.As(err, &failed):
		kind = ErrNoWorker
	default:
		return fmt.Errorf("%s context %s: %w", verb, c.name, err)
	}
	return fmt.Errorf("%s context %s: %w: %w", verb, c.name, kind, err)
}

// Events yields the log so far, from the event after an id, or from the first
// when it is empty. An error comes last; it is ErrNoContext when there is none of
// that name, and ErrUnreachable when Temporal is away.
func (c *Context) Events(ctx context.Context, from string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range c.client.log.Events(ctx, c.name, from) {
			if !yield(e, unreachable(ctx, err)) {
				return
			}
		}
	}
}

// RunEvents yields the log of a run, like Events: also that of a run whose end a
// reset has abandoned.
func (c *Context) RunEvents(ctx context.Context, runID, from string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range c.client.log.Run(ctx, c.name, runID, from) {
			if !yield(e, unreachable(ctx, err)) {
				return
			}
		}
	}
}

// unreachable calls an error by which Temporal is away, or has too much to do, by
// its name. To Temporal a ctx that is done is an error of its own kind; callers are
// told of theirs.
func unreachable(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	if ctx.Err() == nil && (errors.As(err, new(*serviceerror.Unavailable)) ||
		errors.As(err, new(*serviceerror.DeadlineExceeded)) || errors.As(err, new(*serviceerror.ResourceExhausted))) {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return err
}
