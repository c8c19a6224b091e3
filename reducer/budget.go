package reducer

import "github.com/seed-9ed7edd4/chronicle/event"

// Afford returns nil if the budget of the context allows an attempt that uses up to the wanted amount,
// and otherwise the exceeded budget. The usage of the session includes all earlier attempts, and there are no
// concurrent ones, because a session runs one attempt at a time.
func Afford(s Session, wanted event.Amount) *event.BudgetExceeded {
	limit, used := s.Reduced.Config.Budget, s.Usage.Amount()
	if limit == nil || limit.Allows(used.Plus(wanted)) {
		return nil
	}
	return &event.BudgetExceeded{Budget: event.BudgetOfContext, Limit: *limit, Used: used, Wanted: wanted}
}

// recordExceeded records the exceeded budget of a failing request; nil: it fails for another reason.
func (d *decision) recordExceeded(exceeded *event.BudgetExceeded) {
	if exceeded == nil {
		return
	}
	body := *exceeded
	body.RequestID = d.Request.ID
	if e := event.New(body); e.Validate() == nil {
		d.recordEvents(e)
	}
}
