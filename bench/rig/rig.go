package rig

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/devserver"
	"github.com/seed-9ed7edd4/chronicle/session"
)

// AddressVariable names the environment variable with the address of a running
// Temporal server to use. Without it the rig starts a dev server of its own.
const AddressVariable = "BENCH_TEMPORAL_ADDRESS"

// Options of a rig. The zero value is a tuned server and a model without
// faults.
type Options struct {
	// Untuned leaves the dev server as shipped.
	Untuned bool
	// Faults is the share of requests that the model fails, 0 to 1.
	Faults float64
	// Seed of the model's choice of faults.
	Seed uint64
	// Minimal leaves out the bare loop, the direct client and the observer: Bare,
	// Direct and Contexts.Watch are then not usable.
	Minimal bool
	// LogDir is an existing directory for the logs of the workers. Empty: they are
	// not kept.
	LogDir string
	// Worker is the path of the worker binary. Empty: next to this executable.
	Worker string
	// TaskQueue on which contexts start. Empty: wire.TaskQueue.
	TaskQueue string
}

// Rig is a running world. Its parts are in processes of their own.
type Rig struct {
	// Temporal is a client of the server.
	Temporal client.Client
	// Contexts are what is measured, Bare and Direct what it is compared with.
	Contexts *Contexts
	Bare     *Bare
	Direct   *Direct
	// Notes are what all processes saw.
	Notes *Notes

	options Options
	places  places
	dir     string
	// server is nil when it is not ours. startsServer starts it, on a port or with 0
	// on any, with the database of the one before.
	server       *devserver.Server
	startsServer func(ctx context.Context, port int) error
	serverPID    int // 0 when the server is not ours
	nats         *peer
	workers      int // how many were started
	stops        []func()
}

// Start starts everything but workers. The context bounds the start.
func Start(ctx context.Context, options Options) (_ *Rig, err error) {
	if options.Worker == "" {
		executable, err := os.Executable()
		if err != nil {
			return nil, err
		}
		options.Worker = filepath.Join(filepath.Dir(executable), "worker")
	}
	r := &Rig{options: options, Notes: newNotes()}
	defer func() {
		if err != nil {
			r.Stop()
		}
	}()
	dir, err := os.MkdirTemp("", "chronicle-rig-")
	if err != nil {
		return nil, err
	}
	r.stops = append(r.stops, func() { _ = os.RemoveAll(dir) })
	r.dir = dir
	if err := r.prepareBlobs(); err != nil {
		return nil, err
	}
	if err := r.startServer(ctx, dir); err != nil {
		return nil, err
	}
	if r.Temporal, err = dial(ctx, r.places.Temporal); err != nil {
		return nil, err
	}
	r.stops = append(r.stops, r.Temporal.Close)

	r.places.Faults, r.places.Seed = options.Faults, options.Seed
	peers := map[role]*peer{}
	roles := []role{roleNATS, roleModel, roleBare, roleDirect, roleWatch}
	if options.Minimal {
		roles = roles[:2]
	}
	for _, role := range roles {
		p, err := start(ctx, role, r.places, r.Notes)
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", role, err)
		}
		peers[role] = p
		if role != roleNATS {
			r.stops = append(r.stops, p.stop)
		}
		switch role {
		case roleNATS:
			r.nats, r.places.NATS = p, p.where
			r.stops = append(r.stops, func() { r.nats.stop() }) // an outage replaces it
		case roleModel:
			r.places.Model = p.where
		}
	}
	watcher := peers[roleWatch]
	r.Bare = &Bare{temporal: r.Temporal, watcher: watcher}
	r.Direct = &Direct{peer: peers[roleDirect]}
	client, err := session.Dial(ctx, session.Config{
		Address: r.places.Temporal, NATSURL: r.places.NATS, BlobURL: r.places.Blobs, TaskQueue: options.TaskQueue,
	})
	if err != nil {
		return nil, err
	}
	r.stops = append(r.stops, client.Shutdown)
	r.Contexts = &Contexts{Client: client, watcher: watcher}
	return r, nil
}

// Stop ends everything that Start started.
func (r *Rig) Stop() {
	for len(r.stops) > 0 {
		last := len(r.stops) - 1
		r.stops[last]()
		r.stops = r.stops[:last]
	}
}

// startServer finds a Temporal server that runs already, or starts a dev server
// with an empty database.
func (r *Rig) startServer(ctx context.Context, dir string) error {
	if r.places.Temporal = os.Getenv(AddressVariable); r.places.Temporal != "" {
		return nil
	}
	command, err := devserver.Find(ctx, func(message string) { fmt.Fprintln(os.Stderr, message) })
	if err != nil {
		return err
	}
	r.startsServer = func(ctx context.Context, port int) error {
		server, err := devserver.Start(ctx, devserver.Options{Command: command, DataDir: dir, Port: port, Untuned: r.options.Untuned})
		if err != nil {
			return err
		}
		r.server, r.serverPID, r.places.Temporal = server, server.PID(), server.Address()
		return nil
	}
	if err := r.startsServer(ctx, 0); err != nil {
		return err
	}
	r.stops = append(r.stops, func() { _ = r.server.Stop() }) // an outage replaces it
	return nil
}

// ServerCPU is the processor time that the Temporal server has used; ok is
// false when it is not the rig's own.
func (r *Rig) ServerCPU() (used time.Duration, ok bool) {
	if r.serverPID == 0 {
		return 0, false
	}
	used, err := cpu(r.serverPID)
	return used, err == nil
}

func dial(ctx context.Context, address string) (client.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return client.DialContext(ctx, client.Options{
		HostPort: address, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
		// As contexts have it: what can be set is no part of what is compared.
		ConnectionOptions: client.ConnectionOptions{GrpcCompression: &client.GrpcCompressionNone{}},
	})
}

// Contexts are the contexts of a rig.
type Contexts struct {
	*session.Client
	watcher *peer
}

// Begin creates a context.
func (c *Contexts) Begin(ctx context.Context, name string) error {
	opened, err := c.Open(name)
	if err != nil {
		return err
	}
	_, err = opened.Send(ctx, event.New(event.SystemPrompt{Content: "Answer as you are told."}))
	return err
}

// Send gives a message to a context, creating it when there is none. It returns
// when the message is in the log, or stored until a worker records it.
func (c *Contexts) Send(ctx context.Context, name string, m Message) error {
	opened, err := c.Open(name)
	if err != nil {
		return err
	}
	_, err = opened.Send(ctx, event.New(event.UserMessage{Content: m.String()}))
	return err
}

// Watch lets the observer follow a context.
func (c *Contexts) Watch(name string) error { return c.watcher.order(order{Follow: name}) }

// Direct is a client that reads the model itself.
type Direct struct{ peer *peer }

// Send gives a message to the client.
func (d *Direct) Send(m Message) error { return d.peer.order(order{Ask: m.String()}) }
