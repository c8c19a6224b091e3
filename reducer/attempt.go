package reducer

import "github.com/seed-9ed7edd4/chronicle/event"

// attemptStarted handles the report of an attempt and stops an attempt that is not wanted.
func (d *decision) attemptStarted(a Attempted) {
	if !d.recordAttempt(a) {
		return
	}
	if d.Phase().IsStopping() {
		d.askToStop()
		return
	}
	d.interruptIfOutdated()
}

// recordAttempt records an attempt and reports whether it is new. Each attempt is recorded
// once; attempts from before the request was last enqueued are ignored.
func (d *decision) recordAttempt(a Attempted) bool {
	if !d.isPlausible(a) {
		return false
	}
	d.record(event.LLMRequestStarted{
		RequestID: a.RequestID, ProviderID: a.ProviderID, Model: a.Model,
		ThroughEventID: a.Through, Attempt: a.Attempt,
	})
	d.Request.Worker = a.Worker
	if d.Phase() == PhaseInterrupting && !d.isOutdated() {
		// This attempt includes the input for which the previous one was stopped.
		d.Request.Stop = ""
	}
	return true
}

// reconcile takes the attempt that a result names. It records the attempt if its signal was
// lost, and corrects a signal with other data: a forged one, or one of another branch that
// Temporal delivered again after a reset, with the same ids.
func (d *decision) reconcile(a Attempted) {
	r := d.Request
	if d.recordAttempt(a) || a.Attempt < r.FirstAttempt || a.Through == r.Through {
		return
	}
	// The newest attempt is recorded again under its number, with the data of the result.
	newest := r.Attempt
	r.Attempt = newest - 1
	a.Attempt = newest
	if !d.recordAttempt(a) {
		r.Attempt = newest
	}
}

// isPlausible reports whether an attempt is new and possible. Reports arrive by signal,
// which any client can send.
func (d *decision) isPlausible(a Attempted) bool {
	r, through := d.Request, event.Counter(a.Through)
	last := r.FirstAttempt + event.MaxMaxRetries + SpareAttempts
	return a.Attempt > r.Attempt && a.Attempt >= r.FirstAttempt && a.Attempt <= last &&
		a.Through == event.FormatID(d.ContextName, through) && through >= event.Counter(r.Asked) && through <= d.EventCount &&
		len(a.ProviderID) <= event.MaxNameBytes && len(a.Model) <= event.MaxNameBytes
}
