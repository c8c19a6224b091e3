package reducer

import (
	"cmp"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// open starts the session. A request left open was lost when the previous run was terminated.
func (d *decision) open(in Opened) {
	lost := d.Request
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

// continued resumes the request in the next run; without a known worker, it is requeued.
func (d *decision) continued(in Continued) {
	r := d.Request
	if r == nil {
		return
	}
	if d.Phase() == PhaseCalling {
		d.continueCalls(in.NotStarted)
		return
	}
	if !d.Phase().IsSent() || r.Worker == "" {
		d.requestEnded(RequestEnded{
			At: d.at, Attempted: Attempted{RequestID: r.ID}, Outcome: HandedBack,
			AttemptEnd: AttemptEnd{Error: "its worker was not known when the run continued as new"},
		})
		return
	}
	d.perform(AdoptRequest{RequestID: r.ID, Attempt: r.Attempt, Worker: r.Worker})
	if d.Phase().IsStopping() {
		d.askToStop()
	}
}

// close ends the session once the request has stopped. Earlier input stays unanswered; later input
// starts the next session. The first reason wins.
func (d *decision) close(reason string) {
	if d.Ended {
		return
	}
	d.Trigger, d.TriggerSettings = "", nil
	d.Closing = cmp.Or(d.Closing, reason, "closed")
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
