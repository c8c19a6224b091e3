// Package session is the typed client of contexts: what a program in Go uses
// to talk to them, and what the starter and the gateway are made of.
//
//	c, err := session.Dial(ctx, session.Config{})
//	demo, err := c.Open("demo")
//	for e, err := range demo.Ask(ctx, event.New(event.UserMessage{Content: "Hello"})) {
//		// TextDelta as the model speaks, then AssistantMessage, LLMRequestCompleted
//	}
//
// A context exists from the first event that is sent to it; opening one asks
// nothing of the server. Reading the log and following it needs no worker.
package session

import (
	"context"
	"errors"
	"iter"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/stream"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// Errors that callers tell apart, with errors.Is.
var (
	// ErrName: no context can have that name.
	ErrName = errors.New("invalid context name")
	// ErrNoContext: there is no context of that name.
	ErrNoContext = errors.New("no such context")
	// ErrUnreachable: Temporal does not answer.
	ErrUnreachable = errors.New("temporal is unreachable")
	// ErrNoWorker: the context is there, but no worker answers for it.
	ErrNoWorker = errors.New("no worker answers")
)

// Config says how to reach Temporal and NATS.
type Config struct {
	// Address of Temporal, host:port. Empty: TEMPORAL_ADDRESS or the TOML
	// profile, see go.temporal.io/sdk/contrib/envconfig; else 127.0.0.1:7233.
	Address string
	// Namespace of Temporal. Empty: TEMPORAL_NAMESPACE or the profile; else
	// "default".
	Namespace string
	// Profile of the TOML file. Empty: TEMPORAL_PROFILE, else "default".
	Profile string
	// NATSURL is where live deltas come from. Empty: NATS_URL, else
	// nats://127.0.0.1:4222. "none": no live deltas.
	NATSURL string
	// TaskQueue on which new contexts start. Empty: wire.TaskQueue.
	TaskQueue string
}

// Dial connects to Temporal, which must answer, and to NATS, which need not:
// without it everything works but live deltas, and Client.Live is false.
func Dial(ctx context.Context, config Config) (*Client, error) { panic("later") }

// Options are the connections of a [Client].
type Options struct {
	Temporal client.Client
	// Stream carries live deltas; nil: there are none.
	Stream *stream.Conn
	// TaskQueue on which new contexts start. Empty: wire.TaskQueue.
	TaskQueue string
}

// Client reaches the contexts of one Temporal namespace. It is safe for
// concurrent use.
type Client struct {
	options Options
}

// New returns a client on connections that the caller owns.
func New(options Options) *Client { return &Client{options: options} }

// Live reports whether live deltas arrive.
func (c *Client) Live() bool { return c.options.Stream != nil }

// Shutdown closes the connections that Dial made.
func (c *Client) Shutdown() {}

// Open returns the context of a name, whether it exists or not. The error, if
// any, is ErrName.
func (c *Client) Open(name string) (*Context, error) { panic("later") }

// Summary is a context in a list.
type Summary struct {
	ContextName string      `json:"contextName"`
	Status      wire.Status `json:"status"`
	Turns       int         `json:"turns"`
	Model       string      `json:"model,omitempty"`
	// StartedAt is the start of the newest session, ClosedAt its end; zero
	// while it goes on.
	StartedAt time.Time `json:"startedAt"`
	ClosedAt  time.Time `json:"closedAt,omitzero"`
}

// List yields the contexts of the namespace, newest session first, one summary
// for each. The query, if any, is a Temporal list filter that is applied on top,
// like `ContextStatus = "answering"`.
func (c *Client) List(ctx context.Context, query string) iter.Seq2[Summary, error] { panic("later") }

// Context is one context.
type Context struct {
	client *Client
	name   string
}

// Name of the context.
func (c *Context) Name() string { return c.name }

// Send delivers events as one input, which is taken or refused as a whole, and
// creates the context or its next session when there is none. Events that could
// not be taken by any context are refused here, as *event.FieldError. When Send
// returns nil, Temporal has stored the input. Each event is given a
// ClientEventID, unless it has one; they are returned in order.
func (c *Context) Send(ctx context.Context, events ...event.Event) (clientEventIDs []string, err error) {
	panic("later")
}

// Ask sends events and yields what follows from them, until their turn is
// over: the events themselves as recorded, live deltas, the answer, and last
// the event that ended the turn: LLMRequestCompleted, LLMRequestInterrupted,
// LLMRequestFailed, InputRejected, or SessionEnded. When none of the events
// wants an answer it ends after they are recorded.
func (c *Context) Ask(ctx context.Context, events ...event.Event) iter.Seq2[event.Event, error] {
	panic("later")
}

// FollowOptions say what Follow yields.
type FollowOptions struct {
	// From is the id of the event after which to begin. Empty: at the first.
	From string
	// Deltas adds live deltas, if the client has them.
	Deltas bool
}

// Events yields the log so far, from the event after an id, or from the first
// when it is empty.
func (c *Context) Events(ctx context.Context, from string) iter.Seq2[event.Event, error] {
	panic("later")
}

// Follow yields the log so far and then what is added to it, for as long as
// ctx lasts: every event exactly once and in order, over the ends of runs and
// sessions. It waits for a context that is not there yet. With Deltas, live
// deltas stand between the events: those of one attempt in order, a Reset before
// an answer that begins anew, none after the event that ended their request.
func (c *Context) Follow(ctx context.Context, options FollowOptions) iter.Seq2[event.Event, error] {
	panic("later")
}

// State asks the context for its state, which needs a worker.
func (c *Context) State(ctx context.Context) (wire.State, error) { panic("later") }

// Interrupt stops the running answer; when none runs, nothing happens.
func (c *Context) Interrupt(ctx context.Context) error { panic("later") }

// Close ends the session, after stopping a running answer. It does not wait.
// The reason goes into the log; empty means "closed".
func (c *Context) Close(ctx context.Context, reason string) error { panic("later") }
