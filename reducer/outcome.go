package reducer

import (
	"cmp"
	"fmt"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func (d *decision) attemptEnded(in AttemptEnded) {
	r := d.Request
	if r == nil || r.ID != in.RequestID || r.Attempt != in.Attempt || !r.hasAttempt() {
		return
	}
	in = d.normalized(in)
	if in.Outcome != Withdrawn {
		d.correctProvider(in.ProviderID, in.Model)
		d.recordOffered(in.Offered)
		d.recordHooks(in.Hooks)
	}
	switch {
	case in.Outcome == Withdrawn:
		d.withdrawn(in)
	case in.Outcome == Completed && r.Compaction != nil:
		d.summarised(in)
	case in.Outcome == Completed:
		d.complete(in)
	case d.Phase() == PhaseStopping, in.Outcome == Interrupted && in.Reason == event.ReasonTimeout:
		d.recordInterruption(in, cmp.Or(r.Stop, in.Reason))
		d.next()
	case in.Outcome == Called:
		d.called(in)
	case in.Outcome == Failed, in.Outcome == TooLong:
		d.failed(in)
	default: // HandedBack, Lost, or Interrupted by an obsolete stop
		d.returned(in)
	}
}

// normalized makes a report consistent: it depends on the request what some outcomes mean.
func (d *decision) normalized(in AttemptEnded) AttemptEnded {
	r := d.Request
	in = in.bounded()
	if len(in.Suspects) > 0 && r.Retries > 0 {
		in.Retryable = false // a retry has shown that the content is the reason
	}
	if in.Outcome == Called && len(in.Calls) == 0 {
		in.Outcome = Completed
	}
	if r.Compaction != nil {
		in = d.summaryOf(in)
	}
	if in.Outcome == Interrupted && in.Reason == event.ReasonTimeout && d.Phase() == PhaseRunning {
		failed := in.timedOut()
		if d.mayRetry(failed) || d.hasFallback() {
			return failed
		}
	}
	if in.Outcome == TooLong {
		in.Kind, in.Error = event.FailureContextTooLong, cmp.Or(in.Error, "the conversation exceeds the context window")
		if r.Compactions >= MaxCompactions || in.Overflow == nil {
			in.Outcome = Failed
		}
	}
	return in
}

// timedOut returns the failure of an attempt whose partial answer is not kept.
func (in AttemptEnded) timedOut() AttemptEnded {
	in.Outcome, in.Reason, in.Text, in.Reasoning = Failed, "", "", ""
	in.Kind, in.Retryable = event.FailureTimeout, true
	in.Error = cmp.Or(in.Error, "the attempt took longer than the timeout of the context")
	return in
}

func (d *decision) complete(in AttemptEnded) {
	d.record(d.answer(in, false))
	d.recordCompletion(in)
	d.next()
}

func (d *decision) recordCompletion(in AttemptEnded) {
	d.record(event.LLMRequestCompleted{
		RequestID: d.Request.ID, DurationMs: in.DurationMs, Usage: in.Usage, FinishReason: in.FinishReason,
		ThroughEventID: d.dropped(),
	})
}

// recordInterruption ends the request with its partial answer. Models do not receive a partial answer that
// has reasoning but no text. The calls of an answer are not executed.
func (d *decision) recordInterruption(in AttemptEnded, reason event.Reason) {
	if in.Text != "" || in.Reasoning != "" {
		d.record(d.answer(in, true))
	}
	d.record(event.LLMRequestInterrupted{
		RequestID: d.Request.ID, PartialResponse: in.Text, Reason: reason, ThroughEventID: d.dropped(), Usage: in.Usage,
	})
}

func (d *decision) answer(in AttemptEnded, isPartial bool) event.AssistantMessage {
	answer := event.AssistantMessage{
		Content: in.Text, RequestID: d.Request.ID, ThroughEventID: d.Request.Through, Partial: isPartial, Reasoning: in.Reasoning,
	}
	if !isPartial {
		answer.ProviderState = in.ProviderState
	}
	return answer
}

// withdrawn continues the request with the input for which its attempt was stopped, or ends it.
func (d *decision) withdrawn(in AttemptEnded) {
	r := d.Request
	switch {
	case r.Stop == event.ReasonCancelled:
		d.recordInterruption(AttemptEnded{}, r.Stop)
		d.next()
	case r.Stop != "":
		r.Stop, r.Limit = "", ""
		d.requeue()
	case r.Taken != "":
		d.startAttempt()
	default: // an obsolete stop
		d.returned(in)
	}
}

// returned continues a request that its worker did not end, at most MaxReturns times.
func (d *decision) returned(in AttemptEnded) {
	r := d.Request
	if r.Returns >= MaxReturns {
		problem := fmt.Sprintf("%d workers in a row did not complete the request", r.Returns+1)
		if in.Error != "" {
			problem += ": " + in.Error
		}
		d.fail(AttemptEnded{Error: problem, Kind: event.FailureUnavailable, Retryable: true, Usage: in.Usage})
		return
	}
	r.Returns++
	switch in.Outcome {
	case Withdrawn:
	case Lost:
		d.recordAttemptEnd(event.AttemptLost, in)
	default:
		d.recordAttemptEnd(event.AttemptHandedBack, in)
	}
	d.requeue()
}

func (d *decision) failed(in AttemptEnded) {
	switch {
	case d.repairs(in), d.retries(in), d.replacesRefused(in), d.compacts(in):
	case d.hasFallback() && allowsFallback(in.Kind):
		d.fallBack(in)
	default:
		d.recordExceeded(in.Exceeded)
		d.fail(in)
	}
}

func (d *decision) fail(in AttemptEnded) {
	d.record(event.LLMRequestFailed{
		RequestID: d.Request.ID, Error: in.Error, RetriesAttempted: d.Request.Retries, ThroughEventID: d.dropped(),
		Kind: in.Kind, Retryable: in.Retryable, Usage: in.Usage,
	})
	d.next()
}
