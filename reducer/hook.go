package reducer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// MaxHookReports bounds the recorded reports of hooks about an attempt: any client can send reports.
const MaxHookReports = 32

// recordHooks records each report about the newest attempt once: the signal and the result of an
// attempt both contain them. For an attempt that was not sent, it records reports only if a hook
// refused the request.
func (d *decision) recordHooks(hooks []event.HookApplied, attempt int, kind event.FailureKind) {
	switch {
	case d.Rules < Rules2:
		return
	case d.hasOpenAttempt():
		attempt = d.Request.Attempt
	case kind != event.FailureRefusedByHook:
		return
	}
	for _, h := range hooks {
		h.RequestID, h.Attempt = d.Request.ID, max(1, attempt)
		isKnown := slices.Contains(d.Request.Hooks, hookKey(h))
		if !isKnown && len(d.Request.Hooks) < MaxHookReports && event.New(h).Validate() == nil {
			d.record(h)
		}
	}
}

func (d *decision) followHook(body event.HookApplied) {
	r := d.openRequest(body.RequestID)
	isOfAttempt := func(key string) bool { return strings.HasPrefix(key, fmt.Sprintf("%d ", body.Attempt)) }
	r.Hooks = slices.DeleteFunc(slices.Clone(r.Hooks), func(key string) bool { return !isOfAttempt(key) })
	r.Hooks = append(r.Hooks, hookKey(body))
}

func hookKey(h event.HookApplied) string { return fmt.Sprintf("%d %s %s", h.Attempt, h.Stage, h.Hook) }

// allowsFallback is false for failures that another provider must not or cannot bypass.
func allowsFallback(kind event.FailureKind) bool {
	return kind != event.FailureRefusedByHook && kind != event.FailureHookFailed && kind != event.FailureBudgetExceeded
}
