package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/session"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// client is what the commands need of a [session.Client].
type client interface {
	Open(name string) (conversation, error)
	List(ctx context.Context, query string) iter.Seq2[session.Summary, error]
	Live() bool
	Ping(ctx context.Context) error
	Limits() session.Limits
	Shutdown()
}

// conversation is what the commands need of a [session.Context].
type conversation interface {
	Name() string
	Send(ctx context.Context, events ...event.Event) (session.Receipt, error)
	Ask(ctx context.Context, events ...event.Event) iter.Seq2[event.Event, error]
	Events(ctx context.Context, from string) iter.Seq2[event.Event, error]
	RunEvents(ctx context.Context, runID, from string) iter.Seq2[event.Event, error]
	Follow(ctx context.Context, options session.FollowOptions) iter.Seq2[event.Event, error]
	State(ctx context.Context) (wire.State, error)
	Delivery(ctx context.Context, clientEventIDs ...string) (session.Delivery, error)
	Interrupt(ctx context.Context) error
	Close(ctx context.Context, reason string) error
	Import(ctx context.Context, events []event.Event) error
	Verify(ctx context.Context) (session.Verification, error)
	Fork(ctx context.Context, at, as string) error
	Attachment(ctx context.Context, id string) (event.FileAttachment, error)
}

// sessionClient makes a [session.Client] a client.
type sessionClient struct{ *session.Client }

func (c sessionClient) Open(name string) (conversation, error) {
	opened, err := c.Client.Open(name)
	if err != nil {
		return nil, err
	}
	return opened, nil
}

func dialSession(ctx context.Context, config session.Config) (client, error) {
	dialed, err := session.Dial(ctx, config)
	if err != nil {
		return nil, err
	}
	return sessionClient{dialed}, nil
}

// dialTimeout bounds how long a command waits for Temporal to answer at all.
const dialTimeout = 5 * time.Second

// connect reaches Temporal. The caller shuts the client down.
func (a *app) connect(ctx context.Context) (client, error) {
	dialCtx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := a.dial(dialCtx, a.connection)
	if err != nil && ctx.Err() == nil && errors.Is(dialCtx.Err(), context.DeadlineExceeded) {
		return nil, fmt.Errorf("%w: no answer within %s", session.ErrUnreachable, dialTimeout)
	}
	return c, err
}

// open reaches Temporal and opens the context of a name. The caller shuts the
// client down.
func (a *app) open(ctx context.Context, name string) (client, conversation, error) {
	if err := checkName(name); err != nil {
		return nil, nil, err
	}
	c, err := a.connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	opened, err := c.Open(name)
	if err != nil {
		c.Shutdown()
		return nil, nil, err
	}
	return c, opened, nil
}

// checkName refuses a name before anything is connected.
func checkName(name string) error {
	if name == "" {
		return usagef("which context? Name it with -n NAME")
	}
	if err := event.ValidateContextName(name); err != nil {
		return usageError{err}
	}
	return nil
}

// input is an event made of arguments, which are wrong when the event is not
// valid.
func input(body event.Body) (event.Event, error) {
	e := event.New(body)
	if err := e.Validate(); err != nil {
		return event.Event{}, usageError{err}
	}
	return e, nil
}
