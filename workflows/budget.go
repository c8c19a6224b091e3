package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// maxReserves is the number of updates and signals after which a Budget continues as new. The
// server accepts 2,000 updates per run.
const maxReserves = 1000

// Budget is the single writer of the daily budget of one value of a label. Workers reserve the usage
// of an attempt before they send it, and report its actual usage afterwards. The workflow completes at
// midnight in UTC, by the server's clock, unless the new day already has reservations. Register it as
// [wire.WorkflowBudget].
func Budget(ctx workflow.Context, ledger reducer.Ledger) error {
	b := &budget{ledger: ledger, settled: workflow.GetSignalChannel(ctx, wire.SignalSettle)}
	if err := b.setHandlers(ctx); err != nil {
		return err
	}
	for {
		midnight := b.timer(ctx)
		isFull := func() bool { return b.received >= maxReserves || workflow.GetInfo(ctx).GetContinueAsNewSuggested() }
		for !midnight.IsReady() && !isFull() {
			if err := workflow.Await(ctx, func() bool { return midnight.IsReady() || b.settled.Len() > 0 || isFull() }); err != nil {
				return err
			}
			b.settle(ctx)
			b.ledger = b.ledger.Forget()
		}
		if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
			return err
		}
		b.settle(ctx)
		switch b.ledger = b.ledger.Forget(); {
		case isFull():
			return workflow.NewContinueAsNewError(ctx, wire.WorkflowBudget, b.ledger)
		case b.ledger.IsEmpty():
			return nil
		}
	}
}

type budget struct {
	ledger   reducer.Ledger
	settled  workflow.ReceiveChannel
	received int // updates and signals
}

func (b *budget) setHandlers(ctx workflow.Context) error {
	if err := workflow.SetQueryHandler(ctx, wire.QueryBudget, b.state); err != nil {
		return err
	}
	return workflow.SetUpdateHandlerWithOptions(ctx, wire.UpdateReserve, b.reserve, workflow.UpdateHandlerOptions{
		Validator: validateReserve, Description: "reserves the usage of attempts",
	})
}

func (b *budget) state() (wire.BudgetState, error) {
	state := wire.BudgetState{Day: b.ledger.Day, Limit: b.ledger.Limit, Spent: b.ledger.Spent}
	for _, amount := range b.ledger.Reserved {
		state.Reserved = state.Reserved.Plus(amount)
	}
	return state, nil
}

func validateReserve(in wire.Reserve) error {
	invalid := func(format string, args ...any) error {
		return temporal.NewNonRetryableApplicationError(fmt.Sprintf(format, args...), wire.ErrorInvalid, nil)
	}
	if n := len(in.Reservations); n < 1 || n > wire.MaxReservations {
		return invalid("reservations: want 1 to %d, got %d", wire.MaxReservations, n)
	}
	for _, r := range in.Reservations {
		if r.Key == "" || r.Wanted.Tokens < 0 || r.Wanted.CostMicros < 0 {
			return invalid("reservations: want a key and amounts of 0 or more")
		}
		if err := r.Limit.Validate(); err != nil {
			return invalid("limit: %v", err)
		}
	}
	return nil
}

func (b *budget) reserve(ctx workflow.Context, in wire.Reserve) (wire.Reserved, error) {
	b.received++
	b.settle(ctx) // update handlers run before the workflow function receives the signals of the same task
	out := wire.Reserved{Day: b.ledger.Day}
	for _, r := range in.Reservations {
		answer := wire.ReservationState{Used: b.ledger.Used()}
		b.ledger, answer.Granted = b.ledger.Reserve(r)
		out.Answers = append(out.Answers, answer)
	}
	return out, nil
}

// settle processes the signals received so far.
func (b *budget) settle(ctx workflow.Context) {
	b.ledger = b.ledger.On(today(ctx))
	var released []string
	for {
		var in wire.Settle
		if !b.settled.ReceiveAsync(&in) {
			break
		}
		b.received++
		if in.Release {
			released = append(released, in.Key)
			continue
		}
		b.ledger = b.ledger.Settle(in.Key, event.Amount{Tokens: max(in.Used.Tokens, 0), CostMicros: max(in.Used.CostMicros, 0)})
	}
	b.ledger = b.ledger.Release(released...)
}

func (b *budget) timer(ctx workflow.Context) workflow.Future {
	now := workflow.Now(ctx).UTC()
	midnight := now.Truncate(24 * time.Hour).Add(24 * time.Hour)
	return workflow.NewTimer(ctx, midnight.Sub(now))
}

func today(ctx workflow.Context) string { return workflow.Now(ctx).UTC().Format(time.DateOnly) }
