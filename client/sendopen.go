package client

import (
	"context"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// SendOpen is [Context.Send] for what is only of use to an open context: it neither creates a context nor starts another
// run. A worker records the event before SendOpen returns. The error is ErrNoContext if the context is closed or deleted,
// and ErrNoWorker if none responds before ctx ends; a worker may still record the event.
func (c *Context) SendOpen(ctx context.Context, e event.Event) error {
	const operation = "send to"
	defer c.client.notifier.notify(c.name)
	if err := c.checkStore(ctx, operation); err != nil {
		return err
	}
	_, data, err := c.encode([]event.Event{e})
	if err != nil {
		return err
	}
	handle, err := c.client.options.Temporal.UpdateWorkflow(ctx, c.update(wire.Payload(data)))
	if err == nil {
		_, err = c.appended(ctx, handle)
	}
	return c.explain(ctx, operation, err, ErrNoWorker)
}
