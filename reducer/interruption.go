package reducer

import (
	"cmp"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// isOutdated reports whether the attempt does not include the newest message that wants an
// answer.
func (d *decision) isOutdated() bool {
	return d.Phase().IsSent() && event.Counter(d.Trigger) > event.Counter(d.Request.Through)
}

// isBeyondLimit reports whether the newest message that wants an answer waits for the end of the
// turn.
func (d *decision) isBeyondLimit() bool {
	limit := d.Request.Limit
	return limit != "" && event.Counter(d.Trigger) > event.Counter(limit)
}

// interruptIfOutdated stops an outdated attempt if the delivery policy interrupts.
func (d *decision) interruptIfOutdated() {
	if d.isOutdated() && d.policy().Interrupts {
		d.stop(event.ReasonNewUserInput)
	}
}

// interrupt cancels the request when a person asks for it. The messages that it would have
// answered stay unanswered: those of its quiet period, those that its attempt includes, and
// those that interrupted it. Messages queued behind a running attempt or turn are answered next.
func (d *decision) interrupt() {
	if d.Request == nil {
		return
	}
	hasQueued := d.isOutdated() && d.Phase() != PhaseInterrupting || d.isBeyondLimit()
	if !hasQueued {
		d.Request.Dropped = cmp.Or(d.Trigger, d.Request.Dropped)
		d.Trigger, d.TriggerSettings = "", nil
	}
	d.stop(event.ReasonCancelled)
}

// stop asks the request to stop, unless it was asked for the same or a stronger reason.
func (d *decision) stop(reason event.Reason) {
	if d.Phase() == PhaseCalling {
		d.interruptCalls(reason)
		return
	}
	r := d.Request
	if r.Stop == event.ReasonCancelled || r.Stop == reason {
		return
	}
	r.Stop = reason
	d.askToStop()
}

func (d *decision) askToStop() {
	d.perform(InterruptRequest{RequestID: d.Request.ID, Reason: d.Request.Stop, Through: d.Trigger})
}
