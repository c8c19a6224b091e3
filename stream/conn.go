package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Options of a connection.
type Options struct {
	// Namespace keeps the contexts of several Temporal namespaces apart.
	// Empty: "default".
	Namespace string
	// Auth is how the connection is authenticated and encrypted.
	Auth Auth
	// Name is what the NATS server calls the connection. Optional.
	Name string
	// Lost and Found are called when the connection breaks and when it is back,
	// or there for the first time after [Connect] found none. Optional.
	Lost  func(error)
	Found func()
}

// Conn is a connection to NATS. A nil Conn leads nowhere: what is said on it is
// heard by nobody. It is safe for concurrent use.
type Conn struct {
	nats   *nats.Conn
	prefix string
	// connected is asked in place of nats, which keeps whoever asks it waiting
	// for as long as an attempt to connect takes.
	connected atomic.Bool
}

// ErrNobody says that no worker is answering in a context, or that NATS does
// not reach it.
var ErrNobody = errors.New("nobody is answering")

// DefaultURL is where NATS is expected: NATS_URL, else port 4222 on this host.
func DefaultURL() string {
	if url := os.Getenv("NATS_URL"); url != "" {
		return url
	}
	return "nats://127.0.0.1:4222"
}

// Connect returns a connection to a NATS server, or to several, separated by
// commas. When none can be reached it goes on trying for as long as it is open;
// see Connected.
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
	var late atomic.Bool // the first attempt to connect has failed
	c.nats, err = nats.Connect(url, append(auth,
		nats.Name(options.Name),
		nats.Timeout(connectTimeout),
		nats.SetCustomDialer(dialer{}),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		// Credentials may be renewed while the connection is away.
		nats.IgnoreAuthErrorAbort(),
		nats.ReconnectWait(200*time.Millisecond),
		nats.ReconnectJitter(50*time.Millisecond, 50*time.Millisecond),
		// What was said while nobody could hear it is of no use later.
		nats.ReconnectBufSize(-1),
		// What is said is written by whoever says it. To leave it to a goroutine
		// of the connection would hold up every delta.
		nats.WriteBufferSize(1),
		// A server that has fallen silent must not hold up an answer for as long
		// as the system keeps the connection: a write waits for it once, for this
		// long, and then the connection is broken.
		nats.FlusherTimeout(time.Second),
		// Between the answers only a ping finds out.
		nats.PingInterval(10*time.Second),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			c.connected.Store(false)
			if options.Lost != nil {
				options.Lost(err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { c.found(options) }),
		// The first connection is not news, unless it was waited for.
		nats.ConnectHandler(func(*nats.Conn) {
			if late.Load() {
				c.found(options)
			}
		}),
		// A slow subscriber misses messages; it asks for the text when it does.
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	)...)
	if err != nil {
		return nil, fmt.Errorf("nats at %s: %s", RedactURL(url), event.Redact(err.Error(), 0))
	}
	c.connected.Store(c.nats.IsConnected())
	late.Store(!c.Connected())
	return c, nil
}

func (c *Conn) found(options Options) {
	c.connected.Store(true)
	if options.Found != nil {
		options.Found()
	}
}

// Close ends the connection.
func (c *Conn) Close() {
	if c != nil {
		c.connected.Store(false)
		c.nats.Close()
	}
}

// Problem is why the newest attempt to connect failed; nil when none did.
func (c *Conn) Problem() error {
	if c == nil {
		return nil
	}
	return c.nats.LastError()
}

// Connected reports whether the server can be reached now.
func (c *Conn) Connected() bool { return c != nil && c.connected.Load() }

// unhurried does something that needs the connection, but nobody waits for, in
// the background when the connection is away: see connected.
func (c *Conn) unhurried(f func()) {
	if c.Connected() {
		f()
	} else {
		go f()
	}
}

// Flush waits until the server has taken all that was said before, five seconds
// at most.
func (c *Conn) Flush(ctx context.Context) error {
	if c == nil {
		return nats.ErrInvalidConnection
	}
	// Without a deadline NATS refuses to wait at all.
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return c.nats.FlushWithContext(ctx)
}

func (c *Conn) deltaSubject(contextName string) string {
	return c.prefix + "." + token(contextName) + ".delta"
}

func (c *Conn) askSubject(contextName string) string {
	return c.prefix + "." + token(contextName) + ".ask"
}

// token makes a name one token of a subject: dots would separate tokens, and
// other characters have a meaning of their own.
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

// Stop asks the worker that makes a request to stop it.
type Stop struct {
	RequestID string       `json:"requestId"`
	Reason    event.Reason `json:"reason"`
	// Through is the newest event that wants an answer. An attempt that was
	// shown it goes on when the reason is new input.
	Through string `json:"throughEventId,omitempty"`
}

// ask is a request to whoever is answering. Without a Stop it asks for the text
// so far.
type ask struct {
	Stop *Stop `json:"stop,omitempty"`
}

// answerWithin is how long the answer to an ask is waited for.
const answerWithin = 500 * time.Millisecond

// Stop delivers the hint and returns once the worker has heard it. ErrNobody
// says that none did; it comes at once when NATS knows of none, and after half a
// second at the latest.
func (c *Conn) Stop(ctx context.Context, contextName string, stop Stop) error {
	if !c.Connected() {
		return ErrNobody
	}
	question, err := json.Marshal(ask{Stop: &stop})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	if _, err := c.nats.RequestWithContext(ctx, c.askSubject(contextName), question); err != nil {
		return fmt.Errorf("%w in context %s: %w", ErrNobody, contextName, err)
	}
	return nil
}
