package doctor

import (
	"cmp"
	"context"
	"log/slog"
	"os"

	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/connect"
	"github.com/seed-9ed7edd4/chronicle/stream"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

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
		OwnsNATS: true, OwnsStore: true,
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
		if folder, ok := StoreFolder(url); ok {
			d.Folders = append(d.Folders, folder)
		}
	}
	return d, nil
}
