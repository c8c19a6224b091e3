package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"

	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// BudgetState is the usage of a label on a day.
type BudgetState = wire.BudgetState

// LabelBudget returns today's state of the daily budget of a label, in UTC by the clock of this
// machine. Each tenant has its own, except of the label [event.LabelTenant]. The state has no Limit before the first
// reservation of the day. A worker must be running.
func (c *Client) LabelBudget(ctx context.Context, label, value string) (BudgetState, error) {
	today := wire.BudgetState{Day: time.Now().UTC().Format(time.DateOnly)}
	query, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	var state wire.BudgetState
	answer, err := c.options.Temporal.QueryWorkflow(query, wire.BudgetID(c.tenant, label, value), "", wire.QueryBudget)
	if err == nil {
		err = answer.Get(&state)
	}
	switch {
	case errors.As(err, new(*serviceerror.NotFound)), err == nil && state.Day != today.Day:
		return today, nil
	case err != nil && query.Err() != nil && ctx.Err() == nil:
		err = ErrNoWorker
	case err != nil:
		err = unreachable(ctx, err)
	}
	if err != nil {
		return state, fmt.Errorf("get the budget %s=%s: %w", label, value, err)
	}
	return state, nil
}
