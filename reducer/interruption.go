package reducer

import (
	"cmp"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// isOutdated reports whether the newest attempt lacks the newest message that requires an answer.
func (d *decision) isOutdated() bool {
	return event.Counter(d.Trigger) > event.Counter(d.Request.Through)
}

// isBeyondLimit reports whether the newest message waits for the end of the turn.
func (d *decision) isBeyondLimit() bool {
	limit := d.Request.Limit
	return limit != "" && event.Counter(d.Trigger) > event.Counter(limit)
}

// receivedWhileRunning stops the attempt if the request includes the new message. A summary need not include it:
// the attempt after it does.
func (d *decision) receivedWhileRunning() {
	r := d.Request
	switch {
	case !d.isOutdated() || r.Stop == event.ReasonCancelled:
	case r.Compaction != nil:
		if !d.isBeyondLimit() {
			r.Taken = d.Trigger
		}
	case d.policy().Interrupts:
		r.Taken = d.Trigger
		d.stop(event.ReasonNewUserInput)
	case r.Stop == "" && d.isQuiet() && !d.isBeyondLimit():
		isAsked := r.Taken != ""
		r.Taken = d.Trigger
		if r.hasAttempt() && !isAsked {
			d.perform(StopAttempt{RequestID: r.ID, Attempt: r.Attempt, Reason: event.ReasonNewUserInput, Unsent: true})
		}
	}
}

// interrupt cancels the request because a client asked for it. The messages that its attempt includes, or that it has
// taken, stay unanswered. Queued messages are answered next.
func (d *decision) interrupt() {
	r := d.Request
	if r == nil {
		return
	}
	if hasQueued := event.Counter(d.Trigger) > max(event.Counter(r.Through), event.Counter(r.Taken)); !hasQueued {
		d.drop()
	}
	d.stop(event.ReasonCancelled)
}

// drop leaves the newest message and those before it unanswered.
func (d *decision) drop() {
	if d.Request != nil {
		d.Request.Dropped = cmp.Or(d.Trigger, d.Request.Dropped)
	}
	d.Trigger, d.TriggerSettings = "", nil
}

func (d *decision) stop(reason event.Reason) {
	r := d.Request
	switch {
	case d.Phase() == PhaseCalling:
		d.interruptCalls(reason)
	case d.waits() && reason == event.ReasonNewUserInput:
		r.Limit = ""
		d.requeue()
	case d.waits():
		d.recordInterruption(AttemptEnded{}, reason)
		d.next()
	case r.Stop == "":
		r.Stop = reason
		d.perform(StopAttempt{RequestID: r.ID, Attempt: r.Attempt, Reason: reason})
	case reason == event.ReasonCancelled:
		r.Stop = reason
	}
}

// dropped returns the newest message that a cancellation left unanswered; "" if the attempt includes it.
func (d *decision) dropped() string {
	if r := d.Request; event.Counter(r.Dropped) > event.Counter(r.Through) {
		return r.Dropped
	}
	return ""
}
