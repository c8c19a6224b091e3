package reducer

import (
	"cmp"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// isOutdated reports whether the attempt lacks the newest message that requires an answer. A summary
// need not contain it: the attempt after it does.
func (d *decision) isOutdated() bool {
	return d.Request.Compaction == nil && d.Phase().IsSent() && event.Counter(d.Trigger) > event.Counter(d.Request.Through)
}

// isBeyondLimit reports whether the newest message waits for the end of the turn.
func (d *decision) isBeyondLimit() bool {
	limit := d.Request.Limit
	return limit != "" && event.Counter(d.Trigger) > event.Counter(limit)
}

func (d *decision) interruptIfOutdated() {
	if d.isOutdated() && d.policy().Interrupts {
		d.stop(event.ReasonNewUserInput)
	}
}

// interrupt cancels the request because a client asked for it. These messages stay unanswered: those that arrived in its
// quiet period, those in its attempt, and those that interrupted it. Queued messages are answered next.
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
