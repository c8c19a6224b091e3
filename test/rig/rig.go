package rig

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/devserver"
)

// AddressVariable is the environment variable with the address of a running Temporal server. If it is not set,
// the rig starts a dev server.
const AddressVariable = "BENCH_TEMPORAL_ADDRESS"

// Options of a rig. The zero value is a tuned dev server and a model without faults.
type Options struct {
	// Stock runs the dev server with its default settings.
	Stock bool
	// Faults is the fraction of requests that the model fails, 0 to 1, by a random sequence with Seed.
	Faults float64
	Seed   uint64
	// Checked makes the model report requests that violate a rule of providers as [Invalid].
	Checked bool
	// LogDir is the directory for the logs of workers and gateways; Start creates it. Empty: none are kept.
	LogDir string
	// WorkerFlags are further flags of all workers that StartWorker starts.
	WorkerFlags []string
	// Env are further environment variables of workers and gateways.
	Env []string
}

type Rig struct {
	Temporal     sdkclient.Client
	Contexts     *client.Client
	Bare         *Bare
	Observations *Observations

	options Options
	ctx     context.Context // of the observers
	dir     string
	at      struct{ temporal, nats, model, blobs string } // addresses; a restart does not change them
	server  *devserver.Server                             // nil for a server that the rig did not start
	metrics int                                           // port of the metrics of the server
	nats    *Process
	logs    int // number of log files
	// Observers have clients of their own: those that follow a context with the client that sends to it learn
	// of its messages earlier.
	observing sdkclient.Client
	observer  *client.Client
	stops     []func()
}

func Start(ctx context.Context, options Options) (_ *Rig, err error) {
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
	if r.dir, err = os.MkdirTemp("", "chronicle-rig-"); err != nil {
		return nil, err
	}
	r.onStop(func() { _ = os.RemoveAll(r.dir) })
	if err := r.prepareBlobs(); err != nil {
		return nil, err
	}
	if r.at.temporal = os.Getenv(AddressVariable); r.at.temporal == "" {
		if err := r.startTemporal(ctx, 0); err != nil {
			return nil, err
		}
		r.onStop(func() { _ = r.server.Stop() }) // RestartTemporal replaces it
	}
	if r.nats, err = (&role{Name: "nats"}).launch(ctx, nil); err != nil {
		return nil, err
	}
	r.onStop(func() { r.nats.Kill() }) // RestartNATS replaces it
	r.at.nats = r.nats.Ready["address"]
	model := &role{Name: "model", Faults: options.Faults, Seed: options.Seed, Checked: options.Checked}
	answering, err := model.launch(ctx, r.Observations.addLine)
	if err != nil {
		return nil, err
	}
	r.onStop(answering.Kill)
	r.at.model = answering.Ready["address"]
	for _, c := range []*sdkclient.Client{&r.Temporal, &r.observing} {
		if *c, err = dial(ctx, r.at.temporal); err != nil {
			return nil, err
		}
		r.onStop((*c).Close)
	}
	for _, c := range []**client.Client{&r.Contexts, &r.observer} {
		*c, err = client.Dial(ctx, client.Config{Address: r.at.temporal, NATSURL: r.at.nats, BlobURL: r.at.blobs})
		if err != nil {
			return nil, err
		}
		r.onStop((*c).Shutdown)
	}
	var cancel context.CancelFunc
	r.ctx, cancel = context.WithCancel(context.WithoutCancel(ctx))
	r.onStop(cancel)
	return r, nil
}

func (r *Rig) onStop(stop func()) { r.stops = append(r.stops, stop) }

func (r *Rig) Stop() {
	for _, stop := range slices.Backward(r.stops) {
		stop()
	}
	r.stops = nil
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

// StartBare starts the worker of [Rig.Bare].
func (r *Rig) StartBare(ctx context.Context) error {
	p, err := (&role{Name: "bare", Temporal: r.at.temporal, Model: r.at.model}).launch(ctx, nil)
	if err != nil {
		return err
	}
	r.Bare = &Bare{r, p}
	r.onStop(p.Kill)
	return nil
}

// APIKey is the key of the model. It must be in no log.
const APIKey = "sk-rig-3f9a1c0b8f4c6a1d73e952"

// NATSURL is the URL of the NATS server.
func (r *Rig) NATSURL() string { return r.at.nats }

// ModelURL is the base URL of the model.
func (r *Rig) ModelURL() string { return r.at.model }

// start runs a program of Chronicle that was built next to this one, with the flags for the addresses of the rig, and the
// model in the environment. It returns when it is ready.
func (r *Rig) start(ctx context.Context, program string, args ...string) (*Process, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(filepath.Join(filepath.Dir(executable), program), args...)
	cmd.Args = append(cmd.Args, "--address", r.at.temporal, "--nats-url", r.NATSURL(), "--blob-url", r.at.blobs)
	cmd.Env = append(os.Environ(), "OPENAI_BASE_URL="+r.at.model, "OPENAI_MODEL=scripted", "OPENAI_API_KEY="+APIKey)
	cmd.Env = append(cmd.Env, r.options.Env...)
	if r.options.LogDir != "" {
		r.logs++
		file, err := os.Create(filepath.Join(r.options.LogDir, fmt.Sprintf("%s-%03d.log", program, r.logs)))
		if err != nil {
			return nil, err
		}
		defer file.Close() // the child has a copy
		cmd.Stderr = file
	}
	return launch(ctx, cmd, nil)
}

// StartWorker starts bin/worker with further flags.
func (r *Rig) StartWorker(ctx context.Context, flags ...string) (*Process, error) {
	return r.start(ctx, "worker", slices.Concat(r.options.WorkerFlags, flags)...)
}

// StartGateway starts a gateway with further flags. Ready["url"] is its URL, Ready["metrics"] that of its metrics.
func (r *Rig) StartGateway(ctx context.Context, flags ...string) (*Process, error) {
	return r.start(ctx, "starter", append([]string{"serve", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--rate", "-1", "--index-dir", filepath.Join(r.dir, "index")}, flags...)...)
}

// ErrNoServer is the error of methods that require a Temporal server that the rig has started.
var ErrNoServer = errors.New("the rig did not start the temporal server (unset " + AddressVariable + ")")

// ServerPID is the process id of the Temporal server.
func (r *Rig) ServerPID() (int, error) {
	if r.server == nil {
		return 0, ErrNoServer
	}
	return r.server.PID(), nil
}

// NATSPID is the process id of the NATS server.
func (r *Rig) NATSPID() int { return r.nats.PID() }

// Begin creates a context, and follows it as a terminal does, from before its first message.
func (r *Rig) Begin(ctx context.Context, name string) error {
	c, err := r.Contexts.Open(name)
	if err != nil {
		return err
	}
	if _, err = c.Send(ctx, event.New(event.SystemPrompt{Content: "Answer as you are told."})); err != nil {
		return err
	}
	if c, err = r.observer.Open(name); err != nil {
		return err
	}
	go r.watch(c)
	_, err = r.Observations.Await(ctx, Watching, name)
	return err
}

// Send sends a message to a context. It returns when the message is in the log, or stored until a worker
// records it.
func (r *Rig) Send(ctx context.Context, name string, m Message) error {
	c, err := r.Contexts.Open(name)
	if err != nil {
		return err
	}
	_, err = c.Send(ctx, event.New(event.UserMessage{Content: m.String()}))
	return err
}
