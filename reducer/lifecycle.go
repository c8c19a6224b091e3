package reducer

import (
	"cmp"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// open starts the session. A request that the log leaves open was lost when the run of the
// previous session was terminated.
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

// reopen starts the next session if input arrives after the end of this one and before its
// workflow completes.
func (d *decision) reopen() {
	if d.Ended {
		d.record(event.SessionStarted{LoadedEventCount: d.EventCount})
	}
}

// continued resumes the running request in the next run. Without a known attempt and its
// worker there is nothing to adopt, and the request is requeued.
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
			AttemptEnd: AttemptEnd{Error: "no worker had announced it when its run continued as new"},
		})
		return
	}
	d.perform(AdoptRequest{RequestID: r.ID, Attempt: r.Attempt, Worker: r.Worker})
	if d.Phase().IsStopping() {
		d.askToStop()
	}
}

// close ends the session, after the running request has stopped. Input received before the
// close stays unanswered; later input starts the next session. The first reason wins.
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
