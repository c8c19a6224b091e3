package doctor

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"time"

	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/internal/connect"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// Deployment is what the checks examine.
type Deployment struct {
	Address   string // of Temporal
	Namespace string
	TaskQueue string // of contexts
	Dial      func(context.Context) (sdkclient.Client, error)
	NATS      func() (*stream.Conn, error)                // nil: live deltas are off
	Store     func(context.Context) (*blobs.Store, error) // nil: there is none
	IsClient  bool                                        // it publishes no deltas, and checks close the connections that they open
	Call      bool                                        // workers send a request to each of their providers
	Now       func() time.Time                            // nil: [time.Now]

	temporal sdkclient.Client // set by the check of the connection
	storeID  string           // that the namespace recorded; set by the check of the namespace
}

// ForClient returns the deployment that a client with this configuration uses. The error is that of the
// TOML profile.
func ForClient(config client.Config) (*Deployment, error) {
	options, err := connect.Temporal{Address: config.Address, Namespace: config.Namespace, Profile: config.Profile}.Options()
	if err != nil {
		return nil, err
	}
	options.Logger = log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	d := &Deployment{
		Address: options.HostPort, Namespace: options.Namespace, TaskQueue: cmp.Or(config.TaskQueue, wire.TaskQueue),
		Dial:     func(ctx context.Context) (sdkclient.Client, error) { return sdkclient.DialContext(ctx, options) },
		IsClient: true,
	}
	if url := connect.NATSURL(config.NATSURL, os.Getenv); url != "" {
		auth := connect.NATSAuth(config.NATSAuth, url, os.Getenv)
		d.NATS = func() (*stream.Conn, error) {
			return stream.Connect(url, stream.Options{Namespace: options.Namespace, Auth: auth, Name: "chronicle doctor"})
		}
	}
	if url := cmp.Or(config.BlobURL, os.Getenv("BLOB_URL"), "none"); url != "none" {
		d.Store = func(ctx context.Context) (*blobs.Store, error) {
			return blobs.OpenExisting(ctx, url, options.Namespace)
		}
	}
	return d, nil
}

// Names of checks that others need, or that callers handle.
const (
	CheckConnection = "temporal.connection"
	checkNamespace  = "temporal.namespace"
	checkPolling    = "workers.polling"
)

// ConnectionChecks returns the checks of the connections of a process.
func (d *Deployment) ConnectionChecks() []Check {
	return []Check{
		{
			Name: CheckConnection, Run: d.connection,
			Why: "contexts are workflows of Temporal: nothing works without it, and older servers lack features that contexts use",
		},
		{
			Name: checkNamespace, Needs: CheckConnection, Run: d.namespace,
			Why: "all contexts are in one namespace; the events of a terminated run are archived when its context receives the next input, " +
				"and lost if the server deletes the run before",
		},
		{
			Name: "clock.skew", Needs: checkNamespace, Run: d.clock,
			Why: "with a wrong clock, receivers reject webhooks, clouds reject signed requests, valid keys and certificates count as expired, and " +
				"polls of workers seem old",
		},
		{
			Name: "nats.roundtrip", Run: d.roundTrip,
			Why: "live deltas and fast interruptions use NATS; without it, answers appear when they are complete",
		},
		{
			Name: "store.access", Run: d.access,
			Why: "logs and large messages are in the blob store, which workers and clients of a namespace share; without it, contexts cannot " +
				"open, close or continue as new",
		},
	}
}

// Checks returns the checks of a client. One of them asks a worker for its own.
func (d *Deployment) Checks() []Check {
	return append(d.ConnectionChecks(),
		Check{
			Name: checkPolling, Needs: checkNamespace, Run: d.polling,
			Why: "without a worker, contexts accept input but do not answer; workers of different versions behave differently",
		},
		Check{
			Name: "workers.report", Needs: checkPolling, Run: d.report, Timeout: reportTimeout,
			Why: "providers and keys are those of the workers, so a worker checks its own",
		})
}

// Close closes the connection to Temporal that the checks opened.
func (d *Deployment) Close() {
	if d.temporal != nil && d.IsClient {
		d.temporal.Close()
	}
}

func (d *Deployment) now() time.Time {
	if d.Now != nil {
		return d.Now()
	}
	return time.Now()
}
