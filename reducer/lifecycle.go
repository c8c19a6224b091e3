package reducer

import (
	"cmp"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// open starts the session. A request left open was lost when the previous run was terminated.
func (d *decision) open(in Opened) {
	lost := d.Request
	d.Options = in.Options
	d.record(event.SessionStarted{LoadedEventCount: d.EventCount, PreviousRunID: in.PreviousRunID, ForkedFrom: in.ForkedFrom})
	if lost != nil {
		d.recordEvents(lost.interruptedResults()...)
		d.record(event.LLMRequestInterrupted{
			RequestID: lost.ID, Reason: event.ReasonCancelled, ThroughEventID: d.LastEventID(),
		})
	}
	d.Trigger, d.TriggerSettings = "", nil
}

// reopen starts the next session for input that arrives after the end of this one, but before the run ends.
func (d *decision) reopen() {
	if d.Ended {
		d.record(event.SessionStarted{LoadedEventCount: d.EventCount})
	}
}

// continued resumes the request in the next run.
func (d *decision) continued(in Continued) {
	d.Options = in.Options
	switch r := d.Request; {
	case r == nil || d.waits():
	case d.Phase() == PhaseCalling:
		d.continueCalls(in.NotStarted)
	case in.Scheduled:
		d.attemptEnded(AttemptEnded{
			At: d.at, RequestID: r.ID, Attempt: r.Attempt, Outcome: HandedBack, Error: "the run continued as new",
		})
	case r.Stop == "":
		d.startAttempt()
	default:
		d.withdrawn(AttemptEnded{Outcome: Withdrawn})
	}
}

// close ends the session once the request has stopped. Earlier input stays unanswered; later input
// starts the next session. The first reason wins.
func (d *decision) close(in CloseAsked) {
	isActive := d.Phase() != PhaseIdle || d.LastEventAt.After(in.InactiveSince)
	if d.Ended || !in.InactiveSince.IsZero() && isActive {
		return
	}
	d.drop()
	d.Closing = cmp.Or(d.Closing, in.Reason, "closed")
	if d.Request == nil {
		d.end()
		return
	}
	d.stop(event.ReasonCancelled)
}

func (d *decision) end() {
	d.answerOpenToolCalls()
	d.record(event.SessionEnded{Reason: d.Closing})
}

// next starts the request for the messages that still require an answer, or ends the session.
func (d *decision) next() {
	if d.Closing != "" {
		d.end()
	}
	if d.Trigger == "" {
		return
	}
	d.reopen()
	d.startRequest()
}
