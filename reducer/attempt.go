package reducer

import (
	"cmp"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func (d *decision) attemptStarted(in RequestStarted) {
	isNew := d.recordAttempt(in.Attempted, in.Lost)
	if in.Attempt == d.Request.Attempt {
		d.recordHooks(in.Hooks, in.Attempt, "")
	}
	if in.Ended != nil && in.Attempt == d.Request.Attempt {
		d.recordAttemptEnd(event.AttemptFailed, *in.Ended)
	}
	if !isNew {
		return
	}
	if d.Phase().IsStopping() {
		d.askToStop()
		return
	}
	d.interruptIfOutdated()
}

// recordAttempt records an attempt once, and reports whether it is new. Attempts from before the
// request was last enqueued are ignored. lost is an earlier attempt that was lost; nil for none.
func (d *decision) recordAttempt(a Attempted, lost *LostAttempt) bool {
	if !d.isPlausible(a) {
		return false
	}
	d.recordLost(a.Attempt, lost)
	d.recordStart(a)
	return true
}

func (d *decision) recordStart(a Attempted) {
	started := event.LLMRequestStarted{
		RequestID: d.Request.ID, ProviderID: a.ProviderID, Model: a.Model,
		ThroughEventID: a.Through, Attempt: a.Attempt,
	}
	if d.Request.Compaction != nil {
		started.Purpose = event.PurposeCompaction
	}
	d.record(started)
	d.Request.Worker = a.Worker
	if d.Phase() == PhaseInterrupting && !d.isOutdated() {
		// This attempt includes the input for which the previous one was stopped.
		d.Request.Stop = ""
	}
}

// recordLost records the end of earlier attempts that did not report it. lost is one of them, or nil.
func (d *decision) recordLost(attempt int, lost *LostAttempt) {
	if d.Rules < Rules2 {
		return
	}
	if lost != nil && lost.Attempt < attempt {
		d.recordAttempt(lost.Attempted, nil)
		if lost.Attempt == d.Request.Attempt {
			d.recordAttemptEnd(event.AttemptLost, AttemptEnd{Usage: lost.Usage})
		}
	}
	if d.Request.Attempt < attempt {
		d.recordAttemptEnd(event.AttemptLost, AttemptEnd{})
	}
}

func (d *decision) recordAttemptEnd(outcome event.AttemptOutcome, end AttemptEnd) {
	if d.Rules < Rules2 || !d.hasOpenAttempt() {
		return
	}
	end = end.bounded()
	d.record(event.LLMAttemptEnded{
		RequestID: d.Request.ID, Attempt: d.Request.Attempt, Outcome: outcome, Kind: end.Kind, Retryable: end.Retryable,
		Error: end.Error, DurationMs: end.Duration.Milliseconds(), Usage: end.Usage,
	})
}

func (d *decision) hasOpenAttempt() bool { return d.Request.Attempt > 0 && !d.Request.AttemptEnded }

// reconcile records the attempt of a result if the log has none, or another one: the signal that reports
// attempts can be lost or forged, or come from the run before a reset, whose requests have the same ids.
func (d *decision) reconcile(in RequestEnded) {
	r, a := d.Request, in.Attempted
	if d.recordAttempt(a, in.Lost) {
		return
	}
	if a.Attempt > r.Attempt {
		d.recordLost(a.Attempt, in.Lost)
	}
	// With Lost, the attempt is that of the last heartbeat, and newer ones can exist. The same is
	// possible with Failed, if the server ended the activity.
	isOther := a.Through != r.Through || r.AttemptEnded && in.Outcome != Failed && d.Rules >= Rules2
	if in.Outcome == Lost || a.Attempt < r.FirstAttempt || !isOther {
		return
	}
	// The newest attempt is recorded again under its number, with the data of the result.
	a.Attempt = r.Attempt
	r.Attempt--
	isPlausible := d.isPlausible(a)
	r.Attempt++
	if isPlausible {
		d.recordAttemptEnd(event.AttemptLost, AttemptEnd{})
		d.recordStart(a)
	}
}

// isPlausible reports whether an attempt is new and possible: any client can send the report.
func (d *decision) isPlausible(a Attempted) bool {
	r, through := d.Request, event.Counter(a.Through)
	last := r.FirstAttempt + event.MaxMaxRetries + SpareAttempts
	newest := cmp.Or(event.Counter(r.Limit), d.EventCount)
	return a.Attempt > r.Attempt && a.Attempt >= r.FirstAttempt && a.Attempt <= last &&
		a.Through == event.FormatID(d.ContextName, through) && through >= event.Counter(r.Asked) && through <= newest &&
		len(a.ProviderID) <= event.MaxNameBytes && len(a.Model) <= event.MaxNameBytes
}
