package client

import (
	"context"
	"crypto/rand"

	sdkclient "go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// Offered is what a worker has of the tools of a setting.
type Offered = wire.Offered

// CheckTools asks a worker which tools of a setting it has, and changes nothing. The error is ErrNoWorker if none responds
// within 5 s, or that of a server of tools.
func (c *Context) CheckTools(ctx context.Context, tools event.SetTools) (Offered, error) {
	const operation = "look for the tools of"
	var asked event.SetTools // without the rest, which may be as large as a payload that is stored as a reference
	for _, t := range tools.Tools {
		if !t.IsClient() {
			asked.Tools = append(asked.Tools, t)
		}
	}
	if len(asked.Tools) == 0 {
		return Offered{}, nil
	}
	limited, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	run, err := c.client.options.Temporal.ExecuteWorkflow(limited, sdkclient.StartWorkflowOptions{
		ID: wire.OfferID(c.name, rand.Text()), TaskQueue: c.client.options.TaskQueue, WorkflowExecutionTimeout: queryTimeout,
	}, wire.WorkflowOffer, wire.Offer{ContextName: c.name, Tools: asked})
	var out Offered
	if err == nil {
		err = run.Get(limited, &out)
	}
	if err != nil && limited.Err() != nil {
		return out, c.explain(ctx, operation, context.DeadlineExceeded, ErrNoWorker)
	}
	return out, c.explain(ctx, operation, err, ErrNoWorker)
}
