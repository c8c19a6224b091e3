package rig

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/devserver"
)

// AddressVariable is the environment variable with the address of a running Temporal
// server. If it is not set, the rig starts a dev server.
const AddressVariable = "BENCH_TEMPORAL_ADDRESS"

// Options of a rig. The zero value is a tuned dev server and a model without faults.
type Options struct {
	// Untuned runs the dev server with its default configuration.
	Untuned bool
	// Faults is the fraction of requests that the model fails, 0 to 1.
	Faults float64
	Seed   uint64
	// Minimal omits the processes behind Bare, Direct and Contexts.Watch, which must not
	// be used then.
	Minimal bool
	// Checked makes the model report requests that violate a rule of providers, or the [Script] of
	// their message, as [Invalid].
	Checked bool
	// LogDir is the directory for the logs of the workers; Start creates it. Empty: none are kept.
	LogDir string
	// Worker is the path of the worker binary. Empty: next to this executable.
	Worker string
	// TaskQueue on which contexts start. Empty: wire.TaskQueue.
	TaskQueue string
}

type Rig struct {
	Temporal sdkclient.Client
	// Contexts are measured; Bare and Direct are the references.
	Contexts     *Contexts
	Bare         *Bare
	Direct       *Direct
	Observations *Observations

	options   Options
	addresses addresses
	dir       string
	// server is nil for a server that the rig did not start. startDevServer starts it on a
	// port, 0 for any, with the existing database.
	server         *devserver.Server
	startDevServer func(ctx context.Context, port int) error
	serverPID      int // 0 for a server that the rig did not start
	nats           *subprocess
	workers        int // number started
	stops          []func()
}

func Start(ctx context.Context, options Options) (_ *Rig, err error) {
	if options.Worker == "" {
		executable, err := os.Executable()
		if err != nil {
			return nil, err
		}
		options.Worker = filepath.Join(filepath.Dir(executable), "worker")
	}
	if options.LogDir != "" {
		if err := os.MkdirAll(options.LogDir, 0o700); err != nil {
			return nil, err
		}
	}
	r := &Rig{options: options, Observations: newObservations()}
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
	if r.Temporal, err = dial(ctx, r.addresses.Temporal); err != nil {
		return nil, err
	}
	r.stops = append(r.stops, r.Temporal.Close)

	r.addresses.Faults, r.addresses.Seed, r.addresses.Checked = options.Faults, options.Seed, options.Checked
	subprocesses := map[role]*subprocess{}
	roles := []role{roleNATS, roleModel, roleBare, roleDirect, roleWatch}
	if options.Minimal {
		roles = roles[:2]
	}
	for _, role := range roles {
		p, err := start(ctx, role, r.addresses, r.Observations)
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", role, err)
		}
		subprocesses[role] = p
		if role != roleNATS {
			r.stops = append(r.stops, p.stop)
		}
		switch role {
		case roleNATS:
			r.nats, r.addresses.NATS = p, p.address
			r.stops = append(r.stops, func() { r.nats.stop() }) // RestartNATS replaces it
		case roleModel:
			r.addresses.Model = p.address
		}
	}
	watcher := subprocesses[roleWatch]
	r.Bare = &Bare{temporal: r.Temporal, watcher: watcher}
	r.Direct = &Direct{subprocess: subprocesses[roleDirect]}
	contexts, err := r.Dial(ctx, options.TaskQueue)
	if err != nil {
		return nil, err
	}
	r.stops = append(r.stops, contexts.Shutdown)
	r.Contexts = &Contexts{Client: contexts, watcher: watcher}
	return r, nil
}

// Dial returns a client whose contexts start on a task queue. Empty: wire.TaskQueue.
func (r *Rig) Dial(ctx context.Context, taskQueue string) (*client.Client, error) {
	return client.Dial(ctx, client.Config{
		Address: r.addresses.Temporal, NATSURL: r.addresses.NATS, BlobURL: r.addresses.Blobs, TaskQueue: taskQueue,
	})
}

func (r *Rig) Stop() {
	for len(r.stops) > 0 {
		last := len(r.stops) - 1
		r.stops[last]()
		r.stops = r.stops[:last]
	}
}

func (r *Rig) startServer(ctx context.Context, dir string) error {
	if r.addresses.Temporal = os.Getenv(AddressVariable); r.addresses.Temporal != "" {
		return nil
	}
	command, err := devserver.Find(ctx, func(message string) { fmt.Fprintln(os.Stderr, message) })
	if err != nil {
		return err
	}
	r.startDevServer = func(ctx context.Context, port int) error {
		server, err := devserver.Start(ctx, devserver.Options{Command: command, DataDir: dir, Port: port, Untuned: r.options.Untuned})
		if err != nil {
			return err
		}
		r.server, r.serverPID, r.addresses.Temporal = server, server.PID(), server.Address()
		return nil
	}
	if err := r.startDevServer(ctx, 0); err != nil {
		return err
	}
	r.stops = append(r.stops, func() { _ = r.server.Stop() }) // RestartTemporal replaces it
	return nil
}

// ServerCPU is the processor time of the Temporal server; ok is false for a server that
// the rig did not start.
func (r *Rig) ServerCPU() (used time.Duration, ok bool) {
	if r.serverPID == 0 {
		return 0, false
	}
	used, err := cpu(r.serverPID)
	return used, err == nil
}

func dial(ctx context.Context, address string) (sdkclient.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return sdkclient.DialContext(ctx, sdkclient.Options{
		HostPort: address, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
		// The same setting as for contexts, to compare only what differs by design.
		ConnectionOptions: sdkclient.ConnectionOptions{GrpcCompression: &sdkclient.GrpcCompressionNone{}},
	})
}

type Contexts struct {
	*client.Client
	watcher *subprocess
}

func (c *Contexts) Begin(ctx context.Context, name string) error {
	opened, err := c.Open(name)
	if err != nil {
		return err
	}
	_, err = opened.Send(ctx, event.New(event.SystemPrompt{Content: "Answer as you are told."}))
	return err
}

// Send sends a message to a context, creating it if needed. It returns when the message is
// in the log, or stored until a worker records it.
func (c *Contexts) Send(ctx context.Context, name string, m Message) error {
	opened, err := c.Open(name)
	if err != nil {
		return err
	}
	_, err = opened.Send(ctx, event.New(event.UserMessage{Content: m.String()}))
	return err
}

func (c *Contexts) Watch(name string) error { return c.watcher.order(order{Follow: name}) }

type Direct struct{ subprocess *subprocess }

func (d *Direct) Send(m Message) error { return d.subprocess.order(order{Ask: m.String()}) }
