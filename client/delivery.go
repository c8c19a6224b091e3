package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// Delivery is the outcome of events that were sent.
type Delivery struct {
	wire.Delivery
	// Ended says that the newest run of the context has ended, by itself or by
	// a termination: it records no more, and its status is closed.
	Ended bool
}

// deliveryTimeout bounds how long Delivery waits for a worker.
const deliveryTimeout = 5 * time.Second

// Delivery asks for the outcome of events that were sent with client ids. A
// running context needs a worker to answer. The error is ErrNoWorker,
// ErrNoContext or ErrUnreachable as a rule.
func (c *Context) Delivery(ctx context.Context, clientEventIDs ...string) (Delivery, error) {
	const verb = "ask for the delivery of events to"
	ask, cancel := context.WithTimeout(ctx, deliveryTimeout)
	defer cancel()
	d, err := c.client.options.Temporal.DescribeWorkflowExecution(ask, wire.WorkflowID(c.name), "")
	if err != nil {
		return Delivery{}, c.explain(ctx, verb, err, ErrUnreachable)
	}
	if d.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return c.pastDelivery(ctx, clientEventIDs)
	}
	value, err := c.query(ask, wire.QueryDelivery, clientEventIDs)
	if err != nil {
		return Delivery{}, c.explain(ctx, verb, err, ErrNoWorker)
	}
	var delivery Delivery
	if err := value.Get(&delivery.Delivery); err != nil {
		return delivery, fmt.Errorf("%s context %s: %w", verb, c.name, err)
	}
	return delivery, nil
}

// pastDelivery is the outcome of events that were sent to a context whose newest
// run has ended, by its log.
func (c *Context) pastDelivery(ctx context.Context, clientEventIDs []string) (Delivery, error) {
	past := Delivery{Delivery: wire.Delivery{EventIDs: map[string]string{}, Status: wire.StatusClosed}, Ended: true}
	wanted := map[string]bool{}
	for _, id := range clientEventIDs {
		wanted[id] = true
	}
	for e, err := range c.Events(ctx, "") {
		if errors.Is(err, ErrNoContext) {
			break
		}
		if err != nil {
			return past, err
		}
		past.LastEventID = e.ID
		if wanted[e.ClientEventID] && e.Tag() != event.TagInputRejected {
			past.EventIDs[e.ClientEventID] = e.ID
		}
	}
	return past, nil
}
