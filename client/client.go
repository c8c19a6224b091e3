package client

import (
	"cmp"
	"context"
	"fmt"

	"github.com/golang/groupcache/lru"
	sdkclient "go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// Options configure a [Client]. Programs use [Dial] or contexts.Connect, which derive them.
type Options struct {
	Temporal sdkclient.Client // required
	// Namespace of Temporal. The blob store recorded in it must be that of Archive. Empty: "default", and
	// its recorded store is not checked.
	Namespace string
	Stream    *stream.Conn // live deltas; nil: none
	TaskQueue string       // of new contexts; empty: "contexts"
	// Archive has the events that the server no longer has; nil: none. Temporal must use the same
	// blob store as its ExternalStorage.
	Archive *archive.Archive
}

// Client accesses the contexts of a Temporal namespace, or of one tenant ([Client.Tenant]). It is safe for concurrent
// use.
type Client struct {
	*shared
	isBound bool // to the contexts of tenant, which it knows by their names within the tenant
	tenant  string
}

// shared is what a client shares with those of tenants.
type shared struct {
	options      Options
	log          *eventlog.Log
	stream       lazyStream
	backpressure backpressure
	notifier     notifier
	storeChecks  storeChecks
	previews     previews

	ownsConnections bool
	blobs           *blobs.Store // closed by Shutdown; nil: none
}

// New returns a client on connections that the caller owns.
func New(options Options) *Client {
	options.TaskQueue = cmp.Or(options.TaskQueue, wire.TaskQueue)
	return &Client{shared: &shared{
		options:      options,
		log:          eventlog.New(options.Temporal, options.Namespace, options.Archive),
		stream:       lazyStream{conn: options.Stream},
		backpressure: newBackpressure(),
		storeChecks:  newStoreChecks(),
		previews:     previews{texts: lru.New(maxPreviews)},
	}}
}

// Tenant returns a client that reaches the contexts of one tenant only, by their names within it: its Open("demo")
// opens acme/demo. The tenant "" has the contexts without one. The clients share connections; close only c.
func (c *Client) Tenant(tenant string) (*Client, error) {
	if c.isBound {
		return nil, fmt.Errorf("tenant %s: the client is that of tenant %q (want a client of the namespace)", event.Redact(tenant, 0), c.tenant)
	}
	if tenant != "" {
		if err := event.ValidateTenant(tenant); err != nil {
			return nil, err
		}
	}
	return &Client{shared: c.shared, isBound: true, tenant: tenant}, nil
}

// nameOf returns the name of a context for the users of the client. ok is false for a context of another tenant.
func (c *Client) nameOf(contextName string) (name string, ok bool) {
	if !c.isBound {
		return contextName, true
	}
	tenant, local := event.CutTenant(contextName)
	return local, tenant == c.tenant
}

// Live reports whether NATS is connected, so that live deltas arrive.
func (c *Client) Live() bool {
	conn, err := c.stream.get()
	return err == nil && conn.Connected()
}

// LiveError returns why NATS was not connected at first, such as refused credentials; nil if it was, or if NATS is off.
func (c *Client) LiveError() error {
	conn, err := c.stream.get()
	return cmp.Or(err, conn.ConnectError())
}

// Ping checks the health of Temporal. The error is ErrUnreachable, ErrBusy, or that of ctx.
func (c *Client) Ping(ctx context.Context) error {
	if _, err := c.options.Temporal.CheckHealth(ctx, &sdkclient.CheckHealthRequest{}); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w: %w", cmp.Or(outage(err), ErrUnreachable), err)
	}
	return nil
}

// Shutdown closes the connections that Dial opened.
func (c *Client) Shutdown() {
	if c.ownsConnections {
		c.stream.close()
		c.options.Temporal.Close()
	}
	if c.blobs != nil {
		_ = c.blobs.Close() // writes are complete before they return
	}
}

// Open returns a handle. It sends no request, and the context need not exist. The name of a context of a tenant is
// TENANT/NAME, unless the client is that of a tenant. The error is ErrName.
func (c *Client) Open(name string) (*Context, error) {
	validate := event.ValidateContextName
	if c.isBound {
		validate = event.ValidateLocalName
	}
	if err := validate(name); err != nil {
		return nil, nameError{err}
	}
	if c.isBound {
		name = event.JoinTenant(c.tenant, name)
	}
	return &Context{client: c, name: name}, nil
}
