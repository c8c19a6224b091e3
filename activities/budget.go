package activities

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
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

func exceeded(e event.BudgetExceeded) error {
	return &ModelError{Kind: "budget", Failure: event.FailureBudgetExceeded, Err: &exceededError{e}}
}

func (p *prepared) unpriced(budget string) error {
	return &ModelError{Kind: "budget", Failure: event.FailureConfiguration, Err: fmt.Errorf(
		"budget %s: the price of %s %s is unknown (let the worker's operator add it to the --providers or --config file, or limit tokens instead of the cost)",
		budget, p.providerID, p.modelName)}
}

// reservations are what a request needs in the budgets of labels.
type reservations struct {
	budgets []LabelBudget
	wanted  event.Amount
}

// reservations returns what the request needs in the budgets of labels, and limits the output of the request. It
// returns an error if the budget of the context does not allow the request.
func (g *generation) reservations(ctx context.Context, p *prepared) (r reservations, err error) {
	own := p.session.Reduced.Config.Budget
	r.budgets = budgetsOf(g.options.Budgets, labelsOf(g.in.ContextName, p.request.Settings))
	if own == nil && len(r.budgets) == 0 {
		return r, nil
	}
	p.request.MaxOutput = maxBudgetedOutput
	usage, err := p.model.Reservation(ctx, p.request)
	if err != nil {
		return r, err
	}
	r.wanted = event.AmountOf(usage)
	if own != nil {
		if own.CostMicros != nil && usage.CostMicros == nil {
			return r, p.unpriced(event.BudgetOfContext)
		}
		if e := reducer.Afford(p.session, r.wanted); e != nil {
			e.RequestID = g.in.RequestID
			return r, exceeded(*e)
		}
	}
	for _, b := range r.budgets {
		if b.Limit.CostMicros != nil && usage.CostMicros == nil {
			return r, p.unpriced(b.name())
		}
	}
	return r, nil
}

// reserve makes reservations, or returns an error if a budget does not allow one. The result settles them with the
// actual usage. The wait for the answers does not count towards the deadline.
func (g *generation) reserve(ctx context.Context, p prepared, r reservations) (prepared, error) {
	if len(r.budgets) == 0 {
		return p, nil
	}
	key, reserved := g.reservationKey(), 0
	p.settle = func(used event.Usage) {
		for _, b := range r.budgets[:reserved] {
			g.ledgers.settle(ctx, g.ledgerOf(b), wire.Settle{Key: key, Used: event.AmountOf(used)})
		}
	}
	began := time.Now()
	g.life.reserve(key)
	for _, b := range r.budgets {
		g.settleLost(ctx, b)
		day, answer, err := g.ledgers.reserve(ctx, g.ledgerOf(b), g.info.TaskQueue, reducer.Reservation{Key: key, Wanted: r.wanted, Limit: b.Limit})
		switch {
		case err != nil:
			return p, fmt.Errorf("reserve the budget %s: %w", b.name(), err)
		case !answer.Granted:
			return p, exceeded(event.BudgetExceeded{
				RequestID: g.in.RequestID, Budget: b.name(), Day: day, Limit: b.Limit, Used: answer.Used, Wanted: r.wanted,
			})
		}
		reserved++
	}
	p.deadline = p.deadline.Add(time.Since(began))
	return p, nil
}

// settleLost settles the reservation of the attempt before this one, if it was lost, with its usage at its last
// heartbeat. Without a heartbeat that names it, it counts in full for the rest of the day.
func (g *generation) settleLost(ctx context.Context, b LabelBudget) {
	if before := g.in.Previous; before != nil && before.Heartbeat != nil && before.Heartbeat.Reservation != "" {
		g.ledgers.settle(ctx, g.ledgerOf(b), wire.Settle{Key: before.Heartbeat.Reservation, Used: event.AmountOf(before.Heartbeat.Usage)})
	}
}

// reservationKey contains the run, because a reset run sends its requests again, and the attempt of the activity,
// because a reservation that an attempt has released stays denied.
func (g *generation) reservationKey() string {
	return fmt.Sprintf("%s/%d.%d@%s", g.in.RequestID, g.in.Attempt, g.info.Attempt, g.info.WorkflowExecution.RunID)
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

// labelsOf returns the labels of a request. That of the tenant is not a setting.
func labelsOf(contextName string, settings event.RequestSettings) map[string]string {
	tenant, _ := event.CutTenant(contextName)
	if tenant == "" {
		return settings.Labels
	}
	labels := maps.Clone(settings.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[event.LabelTenant] = tenant
	return labels
}

func (b LabelBudget) name() string { return b.Label + "=" + b.Value }

// ledgerOf returns the id of the workflow that keeps a budget.
func (g *generation) ledgerOf(b LabelBudget) string {
	tenant, _ := event.CutTenant(g.in.ContextName)
	return wire.BudgetID(tenant, b.Label, b.Value)
}
