package contexts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	sdkclient "go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/internal/connect"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// Connection is what the workers and the clients of a program share. [Connect] makes it; do not change its fields.
type Connection struct {
	Temporal  sdkclient.Client // for workers and workflows of your own, too
	Namespace string           // of Temporal; empty: "default", without a check of its blob store
	TaskQueue string           // of contexts; empty: "contexts"
	Archive   *archive.Archive // in the blob store
	// StoreID is the identity of the blob store. Workflow tasks of contexts with another store fail. Empty: no check.
	StoreID          string
	SearchAttributes bool         // whether the namespace has those of contexts, except for the title and the labels
	DetailAttributes bool         // whether it has these, too
	Stream           *stream.Conn // live deltas; nil: none
	Tracers          trace.TracerProvider
	Meters           metric.MeterProvider
}

const connectTimeout = 10 * time.Second

// Connect opens the blob store, connects to Temporal and NATS, records the store in the namespace, and registers the
// search attributes of contexts. The error is client.ErrUnreachable if Temporal does not respond within 10 s, and
// client.ErrOtherStore if the namespace has another store; workers may be started concurrently.
//
// Without NATS, only live deltas are missing. Connect logs a warning about that, and if the server does not let it
// record the store or register the attributes.
func Connect(ctx context.Context, config client.Config) (_ *Connection, err error) {
	config.Logger = cmp.Or(config.Logger, slog.Default())
	config, err = config.Resolve()
	if err != nil {
		return nil, err
	}
	if config.BlobURL == "" {
		return nil, errors.New("connect: no blob store (set Config.BlobURL or BLOB_URL, for example to file:///var/lib/chronicle)")
	}
	store, err := blobs.Open(ctx, config.BlobURL, config.Namespace)
	if err != nil {
		return nil, err
	}
	store.Measure(config.Meters)
	c := &Connection{
		Namespace: config.Namespace, TaskQueue: config.TaskQueue, Archive: archive.New(store), Tracers: config.Tracers, Meters: config.Meters,
	}
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	if c.Temporal, err = connect.Dial(ctx, connect.WithStore(*config.Temporal, store), connectTimeout); err != nil {
		return nil, err
	}
	prepare, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if c.StoreID, err = c.bindStore(prepare, config.Logger); err != nil {
		return nil, err
	}
	if c.SearchAttributes, err = c.registerAttributes(prepare, connect.RegisterSearchAttributes, config.Logger); err != nil {
		return nil, err
	}
	if c.DetailAttributes, err = c.registerAttributes(prepare, connect.RegisterDetailAttributes, config.Logger); err != nil {
		return nil, err
	}
	c.Stream, err = connect.NATS(config.NATSURL, stream.Options{Namespace: c.Namespace, Auth: config.NATSAuth, Name: "chronicle worker"}, config.Logger)
	if err != nil {
		return nil, err
	}
	if c.Stream != nil && !c.Stream.Connected() {
		config.Logger.Warn("cannot reach NATS: answers are not streamed until it connects", "url", stream.RedactURL(config.NATSURL), "error", c.Stream.ConnectError())
	}
	return c, nil
}

func (c *Connection) bindStore(ctx context.Context, log *slog.Logger) (id string, err error) {
	if id, err = connect.IdentifyStore(ctx, c.Temporal, c.Namespace, c.Archive.Store()); err != nil {
		return "", err
	}
	err = connect.BindStore(ctx, c.Temporal, c.Namespace, id)
	if errors.Is(err, connect.ErrStoreRefused) {
		log.Warn("cannot record the blob store in the namespace: use the same --blob-url for all workers and clients", "error", err)
		err = nil
	}
	return id, err
}

func (c *Connection) registerAttributes(
	ctx context.Context, register func(context.Context, sdkclient.Client, string) error, log *slog.Logger,
) (areRegistered bool, err error) {
	err = register(ctx, c.Temporal, c.Namespace)
	if errors.Is(err, connect.ErrAttributesRefused) {
		log.Warn("contexts run without some search attributes until an administrator registers them", "error", err,
			"fix", connect.AttributesCommand(c.Namespace))
		return false, nil
	}
	return err == nil, err
}

// Client returns a client of the contexts, without connections of its own.
func (c *Connection) Client() *client.Client {
	return client.New(client.Options{
		Temporal: c.Temporal, Namespace: c.Namespace, Stream: c.Stream, TaskQueue: c.TaskQueue, Archive: c.Archive,
	})
}

// Close closes the connections. Stop the workers first.
func (c *Connection) Close() {
	c.Stream.Close()
	if c.Temporal != nil {
		c.Temporal.Close()
	}
	_ = c.Archive.Store().Close() // workers write nothing any more
}

func (c *Connection) taskQueue() string { return cmp.Or(c.TaskQueue, wire.TaskQueue) }

func (c *Connection) readBlob(ctx context.Context, contextName, ref string) ([]byte, error) {
	parsed, err := blobs.ParseRef(ref)
	if err != nil {
		return nil, fmt.Errorf("read an attachment: %w", err)
	}
	return c.Archive.Blobs(contextName).Get(ctx, parsed)
}
