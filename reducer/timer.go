package reducer

import "time"

// wake continues what has waited for its time. The timer may fire before that.
func (d *decision) wake() {
	switch {
	case d.Phase() == PhaseCalling:
		d.expireCalls()
	case d.waits():
		d.startAttempt()
	case d.Phase() == PhaseIdle && d.Options.IdleCloseMs > 0 && !d.at.Before(d.nextWake()):
		d.close(CloseAsked{Reason: "idle"})
	}
}

// setTimer sets the timer, unless one fires before the time. A timer is never removed: one that fires without need is
// cheaper, because a session needs one for each call but sets it at most once per idle period.
func (d *decision) setTimer(in Input) {
	switch in.(type) {
	case Opened, Continued, Woken:
		d.Timer = time.Time{}
	}
	next := d.nextWake()
	if next.IsZero() || !d.Timer.IsZero() && !next.Before(d.Timer) {
		return
	}
	d.Timer = next
	d.perform(WakeAt{At: next})
}

// nextWake returns when the session acts without input; zero: never.
func (d *decision) nextWake() (next time.Time) {
	switch {
	case d.Phase() == PhaseCalling:
		for _, c := range d.Request.Calls {
			if !c.Deadline.IsZero() && (next.IsZero() || c.Deadline.Before(next)) {
				next = c.Deadline
			}
		}
	case d.waits():
		next = d.Request.RetryAt.Add(-milliseconds(d.Request.JitterMs))
	case d.Phase() == PhaseIdle && d.Options.IdleCloseMs > 0:
		next = d.LastEventAt.Add(milliseconds(d.Options.IdleCloseMs))
	}
	return next
}
