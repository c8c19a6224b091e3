package activities

import (
	"context"
	"fmt"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// maxBudgetedOutput limits an answer under a budget if no setting does, in tokens.
const maxBudgetedOutput = 4096

type exceededError struct{ event.BudgetExceeded }

func (e *exceededError) Error() string {
	advice := `lower maxTokens, or raise the budget with "starter budget"`
	if e.Day != "" {
		advice = "lower maxTokens, wait until the next day in UTC, or let the worker's operator raise the budget in the file of --providers"
	}
	return fmt.Sprintf("budget exceeded: %s (%s)", e.BudgetExceeded, advice)
}

func (e *exceededError) asModelError() error {
	return &ModelError{Kind: "budget", Failure: event.FailureBudgetExceeded, Err: e}
}

// reserve returns an error unless all budgets of the attempt allow the request, which it limits. The
// caller settles the actual usage.
func (a *attempt) reserve(ctx context.Context, session reducer.Session, model Model, request *ModelRequest) (settle func(event.Usage), err error) {
	own := session.Reduced.Config.Budget
	if own == nil {
		return func(event.Usage) {}, nil
	}
	request.MaxOutput = maxBudgetedOutput
	usage, err := model.Reservation(ctx, *request)
	if err != nil {
		return nil, err
	}
	if own.CostMicros != nil && usage.CostMicros == nil {
		return nil, unpriced(event.BudgetOfContext, model)
	}
	if a.lost != nil && !session.HasEnd(a.lost.Attempt) {
		session.Usage = session.Usage.Add(a.lost.Usage)
	}
	if exceeded := reducer.Afford(session, event.AmountOf(usage)); exceeded != nil {
		exceeded.RequestID = a.in.RequestID
		return nil, (&exceededError{*exceeded}).asModelError()
	}
	a.isBudgeted = true
	return func(event.Usage) {}, nil
}

func unpriced(budget string, model Model) error {
	providerID, name := model.ID()
	return &ModelError{Kind: "budget", Failure: event.FailureConfiguration, Err: fmt.Errorf(
		"budget %s: the price of %s %s is unknown (let the worker's operator add it to the file of --providers, or limit tokens instead of the cost)",
		budget, providerID, name)}
}
