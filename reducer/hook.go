package reducer

import "github.com/seed-9ed7edd4/chronicle/event"

// recordHooks records what hooks did to the running attempt.
func (d *decision) recordHooks(hooks []event.HookApplied) {
	for _, h := range hooks {
		h.RequestID, h.Attempt = d.Request.ID, d.Request.Attempt
		if event.New(h).Validate() == nil {
			d.record(h)
		}
	}
}

// allowsFallback is false for failures that another provider must not or cannot bypass.
func allowsFallback(kind event.FailureKind) bool {
	return kind != event.FailureRefusedByHook && kind != event.FailureHookFailed && kind != event.FailureBudgetExceeded
}
