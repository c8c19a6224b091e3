package retention

import (
	"context"
	"iter"

	sdkclient "go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// NewContexts returns the contexts of a namespace. Its list is that of the blob store: Temporal lists no session that ended
// before the retention period of the namespace.
func NewContexts(temporal sdkclient.Client, namespace string, logs *archive.Archive, c *client.Client) Contexts {
	return contexts{eventlog.New(temporal, namespace, logs), logs, c}
}

type contexts struct {
	*eventlog.Log
	archive *archive.Archive
	client  *client.Client
}

func (c contexts) Stored(ctx context.Context) iter.Seq2[archive.Stored, error] {
	return c.archive.Contexts(ctx)
}

func (c contexts) Details(ctx context.Context, contextName string) (d reducer.Details, err error) {
	for e, err := range c.Events(ctx, contextName, "") {
		if err != nil {
			return d, err
		}
		d = d.With(e.Body)
	}
	return d, nil
}

func (c contexts) StartDeletion(ctx context.Context, contextName string, options client.DeleteOptions) error {
	of, err := c.client.Open(contextName)
	if err != nil {
		return err
	}
	return of.StartDeletion(ctx, options)
}
