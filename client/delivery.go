package client

import (
	"context"
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// Delivery reports which sent events are recorded.
type Delivery struct {
	wire.Delivery
	Ended bool // the newest run has ended and records nothing more; Status is closed
}

// Delivery reports the outcome of events. It queries a worker for at most 5 s if the context runs, and
// reads the log if it does not, which fails with ErrStoreUnavailable while the blob store does not respond.
func (c *Context) Delivery(ctx context.Context, clientEventIDs ...string) (Delivery, error) {
	const operation = "get the delivery of events to"
	query, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	d, err := c.client.options.Temporal.DescribeWorkflowExecution(query, wire.WorkflowID(c.name), "")
	if err != nil {
		return Delivery{}, c.explain(ctx, operation, err, ErrBusy)
	}
	if d.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return c.deliveryFromLog(ctx, clientEventIDs)
	}
	value, _, err := c.query(query, wire.QueryDelivery, clientEventIDs)
	if err != nil {
		return Delivery{}, c.explain(ctx, operation, err, ErrNoWorker)
	}
	var delivery Delivery
	if err := value.Get(&delivery.Delivery); err != nil {
		return delivery, fmt.Errorf("%s context %s: %w", operation, c.Name(), err)
	}
	return delivery, nil
}

// deliveryFromLog assumes a closed context; for a running one, callers set Status and Ended. It fails
// with ErrStoreUnavailable while the archive is unavailable.
func (c *Context) deliveryFromLog(ctx context.Context, clientEventIDs []string) (Delivery, error) {
	d := Delivery{Delivery: wire.Delivery{EventIDs: map[string]string{}, Status: wire.StatusClosed}, Ended: true}
	wanted := map[string]bool{}
	for _, id := range clientEventIDs {
		wanted[id] = true
	}
	for e, err := range c.client.log.Registered(ctx, c.name, "") {
		if err = unreachable(ctx, err); errors.Is(err, ErrNoContext) {
			break
		}
		if err != nil {
			return d, err
		}
		d.LastEventID = e.ID
		if wanted[e.ClientEventID] && e.Tag() != event.TagInputRejected {
			d.EventIDs[e.ClientEventID] = e.ID
		}
	}
	return d, nil
}

func (d Delivery) recorded(clientEventIDs []string) (ids []string, all bool) {
	for _, id := range clientEventIDs {
		if eventID, ok := d.EventIDs[id]; ok {
			ids = append(ids, eventID)
		}
	}
	return ids, len(ids) == len(clientEventIDs)
}
