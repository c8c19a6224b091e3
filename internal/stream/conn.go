package stream

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Options configure a [Conn].
type Options struct {
	Namespace string // Temporal namespace of the contexts; empty: "default"
	Auth      Auth
	Name      string // of the connection, which the NATS server shows; optional
	// OnDisconnect is called when the connection breaks; OnConnect when it is restored, or
	// established after [Connect] returned without it. Optional.
	OnDisconnect func(error)
	OnConnect    func()
}

// Conn is a connection to NATS. A nil Conn discards everything. It is safe for concurrent use.
type Conn struct {
	nats       *nats.Conn
	prefix     string
	connected  atomic.Bool
	connectErr error
}

// ErrNoWorker means that no worker acknowledged a stop message.
var ErrNoWorker = errors.New("no worker acknowledged the stop message")

// Connect connects to one of several NATS servers, whose URLs are separated by commas. If none is
// reachable, it returns a connection that keeps trying until it is closed; see [Conn.Connected].
func Connect(url string, options Options) (*Conn, error) {
	if options.Namespace == "" {
		options.Namespace = "default"
	}
	c := &Conn{prefix: "chronicle." + token(options.Namespace)}
	if err := checkURLs(url); err != nil {
		return nil, fmt.Errorf("nats at %s: %w", RedactURL(url), err)
	}
	auth, err := options.Auth.options(url)
	if err != nil {
		return nil, fmt.Errorf("nats at %s: %w", RedactURL(url), err)
	}
	// nats calls handlers one at a time. The first call reports the first attempt to connect.
	var first sync.Once
	attempted := make(chan struct{})
	endAttempt := func(err error) (isFirst bool) {
		first.Do(func() {
			isFirst = true
			c.connected.Store(err == nil)
			if errors.Is(err, nats.ErrAuthorization) {
				err = options.Auth.refused(url, err)
			}
			c.connectErr = err
			close(attempted)
		})
		return isFirst
	}
	c.nats, err = nats.Connect(url, append(auth,
		nats.Name(options.Name),
		nats.Timeout(connectTimeout),
		nats.SetCustomDialer(dialer{}),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(), // credentials may be renewed while disconnected
		nats.ReconnectWait(200*time.Millisecond),
		nats.ReconnectJitter(50*time.Millisecond, 50*time.Millisecond),
		nats.ReconnectBufSize(-1), // deltas are worthless after a reconnection
		nats.WriteBufferSize(1),   // Publish writes at once; a goroutine would delay every delta
		// An unresponsive server must not block an answer for the TCP timeout. One write waits this
		// long, then the connection is closed.
		nats.FlusherTimeout(time.Second),
		nats.PingInterval(10*time.Second), // detects an unresponsive server between answers
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			c.connected.Store(false)
			if options.OnDisconnect != nil && err != nil { // nil: closed by Close
				options.OnDisconnect(err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { c.handleConnect(options) }),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { endAttempt(err) }),
		// The first connection is reported only if it was delayed.
		nats.ConnectHandler(func(*nats.Conn) {
			if !endAttempt(nil) {
				c.handleConnect(options)
			}
		}),
		// A slow subscriber misses messages and then requests the text.
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	)...)
	if err != nil {
		return nil, fmt.Errorf("nats at %s: %s", RedactURL(url), event.Redact(err.Error(), 0))
	}
	<-attempted
	return c, nil
}

func (c *Conn) handleConnect(options Options) {
	c.connected.Store(true)
	if options.OnConnect != nil {
		options.OnConnect()
	}
}

// Close closes the connection.
func (c *Conn) Close() {
	if c != nil {
		c.connected.Store(false)
		c.nats.Close()
	}
}

// ConnectError returns why Connect returned without a connection; nil if it returned with one.
func (c *Conn) ConnectError() error {
	if c == nil {
		return nil
	}
	return c.connectErr
}

// Connected reports whether the connection is established at present.
func (c *Conn) Connected() bool { return c != nil && c.connected.Load() }

// inBackgroundIfDown runs f in the background while disconnected, since nats may block.
func (c *Conn) inBackgroundIfDown(f func()) {
	if c.Connected() {
		f()
	} else {
		go f()
	}
}

// Flush waits at most five seconds until the server has received all published messages.
func (c *Conn) Flush(ctx context.Context) error {
	if c == nil {
		return nats.ErrInvalidConnection
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second) // required by NATS
	defer cancel()
	return c.nats.FlushWithContext(ctx)
}

// RoundTrip publishes a delta of a context that does not exist, and returns how long it takes to arrive back.
// Only workers may publish deltas; see [Conn.AskRoundTrip].
func (c *Conn) RoundTrip(ctx context.Context) (time.Duration, error) {
	if c == nil {
		return 0, nats.ErrInvalidConnection
	}
	subject := c.deltaSubject("probe-" + rand.Text())
	messages := make(chan *nats.Msg, 1)
	sub, err := c.nats.ChanSubscribe(subject, messages)
	if err != nil {
		return 0, fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	defer func() { _ = sub.Unsubscribe() }() // an error means a closed connection
	began := time.Now()
	if err := c.nats.Publish(subject, nil); err != nil {
		return 0, fmt.Errorf("publish to %s: %w", subject, err)
	}
	select {
	case <-messages:
		return time.Since(began), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("a message to %s did not arrive: %w", subject, cmp.Or(c.nats.LastError(), ctx.Err()))
	}
}

// AskRoundTrip asks for the text of a context that does not exist, and returns how long NATS takes to respond
// that nobody answers.
func (c *Conn) AskRoundTrip(ctx context.Context) (time.Duration, error) {
	if c == nil {
		return 0, nats.ErrInvalidConnection
	}
	name := "probe-" + rand.Text()
	sub, err := c.nats.SubscribeSync(c.deltaSubject(name))
	if err != nil {
		return 0, fmt.Errorf("subscribe to %s: %w", c.deltaSubject(name), err)
	}
	defer func() { _ = sub.Unsubscribe() }() // an error means a closed connection
	began := time.Now()
	_, err = c.nats.RequestWithContext(ctx, c.askSubject(name), []byte(`{}`))
	took := time.Since(began)
	if denied := c.nats.LastError(); errors.Is(denied, nats.ErrPermissionViolation) {
		return 0, denied
	}
	if !errors.Is(err, nats.ErrNoResponders) {
		return 0, fmt.Errorf("no response to a message to %s: %w", c.askSubject(name), cmp.Or(err, errors.New("another response")))
	}
	return took, nil
}

func (c *Conn) deltaSubject(contextName string) string { return c.subject(contextName, "delta") }
func (c *Conn) askSubject(contextName string) string   { return c.subject(contextName, "ask") }
func (c *Conn) stopSubject(contextName string) string  { return c.subject(contextName, "stop") }

func (c *Conn) subject(contextName, kind string) string {
	tenant, local := event.CutTenant(contextName)
	return c.prefix + "." + token(cmp.Or(tenant, noTenant)) + "." + token(local) + "." + kind
}

const noTenant = "_" // no tenant has this name

// token encodes dots, which separate the tokens of a subject, and other special characters.
func token(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "=%02X", c)
		}
	}
	return b.String()
}

// Stop asks the worker of an attempt to stop it.
type Stop struct {
	RequestID string       `json:"requestId"`
	Attempt   int          `json:"attempt"`
	Reason    event.Reason `json:"reason"`
	Unsent    bool         `json:"unsent,omitempty"` // only if the attempt has not been sent yet
}

// Stop sends a stop message and waits for a worker to acknowledge it. If none does, it returns
// [ErrNoWorker]: at once if NATS has no subscriber, else when ctx ends.
func (c *Conn) Stop(ctx context.Context, contextName string, stop Stop) error {
	if !c.Connected() {
		return ErrNoWorker
	}
	message, err := json.Marshal(stop)
	if err != nil {
		return err
	}
	if _, err := c.nats.RequestWithContext(ctx, c.stopSubject(contextName), message); err != nil {
		return fmt.Errorf("%w in context %s: %w", ErrNoWorker, contextName, err)
	}
	return nil
}
