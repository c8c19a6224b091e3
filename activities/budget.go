package activities

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// LabelBudget limits the daily usage of the requests with a label ([event.RequestSettings]). Days are
// in UTC, by the clock of the Temporal server.
type LabelBudget struct {
	Label string
	Value string       // empty: a budget for each value that no other LabelBudget names
	Limit event.Budget // of the day
}

// maxBudgetedOutput limits an answer under a budget if no setting does, in tokens.
const maxBudgetedOutput = 4096

// reservationRetry is the interval at which a reservation that waits for a lost attempt is retried. The
// lost attempt may settle its reservation at any time.
const reservationRetry = time.Second

// lostGrace is how long after its deadline a lost attempt can still settle its reservation.
const lostGrace = settleTimeout

type exceededError struct{ event.BudgetExceeded }

func (e *exceededError) Error() string {
	advice := `raise the budget with "starter budget"`
	if e.Day != "" {
		advice = "wait until the next day in UTC, or let the worker's operator raise the budget in the --providers or --config file"
	}
	switch isUsedUp := !e.Limit.Allows(e.Used.Plus(event.Amount{Tokens: 1, CostMicros: 1})); {
	case !isUsedUp && e.Day == "":
		advice = "lower maxTokens, or " + advice
	case !isUsedUp:
		advice = "lower maxTokens, " + advice
	}
	return fmt.Sprintf("budget exceeded: %s (%s)", e.BudgetExceeded, advice)
}

func (a *attempt) exceeded(e event.BudgetExceeded) error {
	e.RequestID = a.in.RequestID
	return &ModelError{Kind: "budget", Failure: event.FailureBudgetExceeded, Err: &exceededError{e}}
}

func unpriced(budget string, model Model) error {
	providerID, name := model.ID()
	return &ModelError{Kind: "budget", Failure: event.FailureConfiguration, Err: fmt.Errorf(
		"budget %s: the price of %s %s is unknown (let the worker's operator add it to the --providers or --config file, or limit tokens instead of the cost)",
		budget, providerID, name)}
}

// reservations are the reservations that a request needs.
type reservations struct {
	hasBudget bool // of the context or of a label
	budgets   []LabelBudget
	wanted    event.Amount
}

// reservations returns the reservations that the request needs in the budgets of labels, and limits the
// output of the request. It returns an error if the budget of the context does not allow the request.
func (a *attempt) reservations(ctx context.Context, session reducer.Session, model Model, request *ModelRequest) (r reservations, err error) {
	own, ofLabels := session.Reduced.Config.Budget, budgetsOf(a.options.Budgets, request.Settings.Labels)
	if own == nil && len(ofLabels) == 0 {
		return r, nil
	}
	request.MaxOutput = maxBudgetedOutput
	usage, err := model.Reservation(ctx, *request)
	if err != nil {
		return r, err
	}
	r = reservations{true, ofLabels, event.AmountOf(usage)}
	if own != nil {
		if own.CostMicros != nil && usage.CostMicros == nil {
			return r, unpriced(event.BudgetOfContext, model)
		}
		if a.lost != nil && !session.HasEnd(a.lost.Attempt) {
			session.Usage = session.Usage.Add(a.lost.Usage)
		}
		if exceeded := reducer.Afford(session, r.wanted); exceeded != nil {
			return r, a.exceeded(*exceeded)
		}
	}
	for _, b := range ofLabels {
		if b.Limit.CostMicros != nil && usage.CostMicros == nil {
			return r, unpriced(b.name(), model)
		}
	}
	return r, nil
}

// reserve makes reservations. It returns an error if a budget does not allow one. The caller calls settle
// with the actual usage. While only reservations of lost attempts prevent a reservation, it waits, at
// most maxWait in total.
func (a *attempt) reserve(ctx context.Context, r reservations, maxWait time.Duration) (settle func(event.Usage), err error) {
	waiting, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	reserved := 0
	settle = func(used event.Usage) {
		for _, b := range r.budgets[:reserved] {
			a.ledgers.settle(ctx, b.id(), wire.Settle{Key: a.reservationKey(a.attempted.Attempt, ""), Used: event.AmountOf(used)})
		}
	}
	for _, b := range r.budgets {
		if err := a.reserveOf(ctx, waiting, b, r.wanted); err != nil {
			settle(event.Usage{})
			return nil, err
		}
		reserved++
	}
	a.isBudgeted = r.hasBudget
	return settle, nil
}

// reserveOf reserves the wanted amount. If only reservations of lost attempts prevent that, it retries
// until the context waiting is done.
func (a *attempt) reserveOf(ctx, waiting context.Context, b LabelBudget, wanted event.Amount) error {
	if a.lost != nil {
		lost := wire.Settle{Key: a.reservationKey(a.lost.Attempt, a.lost.RunID), Used: event.AmountOf(a.lost.Usage)}
		if !a.lost.Ended && !a.lost.Deadline.IsZero() {
			lost.LostUntil = a.lost.Deadline.Add(lostGrace)
		}
		a.ledgers.settle(ctx, b.id(), lost)
	}
	for {
		day, answer, err := a.ledgers.reserve(ctx, b.id(), a.info.TaskQueue, reducer.Reservation{
			Key: a.reservationKey(a.attempted.Attempt, ""), Wanted: wanted, Limit: b.Limit,
		})
		switch {
		case err != nil:
			return fmt.Errorf("reserve the budget %s: %w", b.name(), err)
		case answer.Granted:
			return nil
		case answer.IsGrantableLater && pause.For(waiting, reservationRetry):
		case ctx.Err() != nil:
			return context.Cause(ctx)
		default:
			return a.exceeded(event.BudgetExceeded{Budget: b.name(), Day: day, Limit: b.Limit, Used: answer.Used, Wanted: wanted})
		}
	}
}

// reservationKey contains the run, because a reset run sends its requests again.
func (a *attempt) reservationKey(number int, runID string) string {
	return fmt.Sprintf("%s/%d@%s", a.in.RequestID, number, cmp.Or(runID, a.info.WorkflowExecution.RunID))
}

// budgetsOf returns the budgets that apply to labels, each with its value set, in the order of the
// label names.
func budgetsOf(all []LabelBudget, labels map[string]string) (budgets []LabelBudget) {
	if len(all) == 0 {
		return nil
	}
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		value := labels[label]
		i := slices.IndexFunc(all, func(b LabelBudget) bool { return b.Label == label && b.Value == value })
		if i < 0 {
			i = slices.IndexFunc(all, func(b LabelBudget) bool { return b.Label == label && b.Value == "" })
		}
		if i >= 0 {
			budgets = append(budgets, LabelBudget{label, value, all[i].Limit})
		}
	}
	return budgets
}

func (b LabelBudget) name() string { return b.Label + "=" + b.Value }
func (b LabelBudget) id() string   { return wire.BudgetID(b.Label, b.Value) }
