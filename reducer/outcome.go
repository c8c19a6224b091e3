package reducer

import (
	"cmp"
	"fmt"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func (d *decision) requestEnded(in RequestEnded) {
	if event.Counter(in.Through) > d.EventCount {
		// The attempt read a session of a lost workflow task, so it may answer unrecorded input.
		in = RequestEnded{
			At: in.At, Attempted: Attempted{RequestID: in.RequestID, Attempt: in.Attempt}, Outcome: HandedBack,
			AttemptEnd: AttemptEnd{Error: "the log lacks input that the attempt included", Usage: in.Usage}, Lost: in.Lost,
		}
	}
	if in.Outcome == Called && (len(in.Calls) == 0 || d.Rules < Rules2) {
		in.Outcome = Completed
	}
	if in.Outcome == Lost && d.Rules < Rules2 {
		in.Attempted = Attempted{RequestID: in.RequestID}
	}
	in.AttemptEnd = in.AttemptEnd.bounded()
	d.reconcile(in)
	if !d.hasOpenAttempt() || in.Outcome == Lost && in.Attempt != d.Request.Attempt {
		in.Usage = event.Usage{} // it belongs to another attempt
	}
	d.recordOffered(in.Offered)
	d.recordHooks(in.Hooks, in.Attempt, in.Kind)
	if in.Reason == event.ReasonNewUserInput && d.Phase() == PhaseAnswering && d.isOutdated() {
		// The request stopped by itself after TellRequest.
		d.Request.Stop = in.Reason
	}
	r := d.Request
	if r.Compaction != nil {
		in = d.summaryOf(in)
	}
	if in.Outcome == TooLong && (r.Compactions >= MaxCompactions || in.Overflow == nil || d.Rules < Rules2) {
		in.Outcome, in.Kind, in.Error = Failed, event.FailureContextTooLong, "the conversation exceeds the context window"
	}
	switch {
	case in.Outcome == Completed && r.Compaction != nil:
		d.summarised(in)
		return
	case in.Outcome == Completed:
		d.complete(in)
	case in.Outcome == Called && !d.Phase().IsStopping() && !(d.isOutdated() && d.policy().Interrupts):
		if d.called(in) {
			return
		}
	case in.Outcome == Called:
		// The calls are not executed, so only the text of the answer counts.
		r.Stop = cmp.Or(r.Stop, event.ReasonNewUserInput)
		d.recordInterruption(in, r.Stop)
	case d.Phase().IsStopping():
		d.recordInterruption(in, r.Stop)
	case d.replacesRefused(in), d.compacts(in):
		return
	case in.Outcome == Failed && d.hasFallback() && allowsFallback(in.Kind):
		d.fallBack(in)
		return
	case in.Outcome == Failed:
		d.recordExceeded(in.Exceeded)
		d.fail(in.AttemptEnd, d.retries(max(in.Attempt, r.Attempt)))
	case in.Outcome == HandedBack || in.Outcome == Lost || in.Outcome == Interrupted && in.Reason != event.ReasonTimeout:
		// The worker handed the request back, or an obsolete stop reached the newest attempt.
		if r.Returns < MaxReturns {
			r.Returns++
			d.recordAttemptEnd(returnedBy(in.Outcome), in.AttemptEnd)
			d.requeue(in.Attempt)
			return
		}
		problem := fmt.Sprintf("%d workers in a row did not complete the request", r.Returns+1)
		if in.Error != "" {
			problem += ": " + in.Error
		}
		d.fail(AttemptEnd{Error: problem, Kind: event.FailureUnavailable, Retryable: true, Usage: in.Usage}, d.retries(r.Attempt))
	case in.Reason == event.ReasonTimeout:
		d.recordInterruption(in, in.Reason)
	default:
		d.recordInterruption(in, event.ReasonCancelled)
	}
	d.next()
}

func returnedBy(outcome Outcome) event.AttemptOutcome {
	if outcome == Lost {
		return event.AttemptLost
	}
	return event.AttemptHandedBack
}

func (d *decision) complete(in RequestEnded) {
	d.recordAnswer(in, false)
	d.recordCompletion(in)
}

func (d *decision) recordCompletion(in RequestEnded) {
	d.record(event.LLMRequestCompleted{
		RequestID: d.Request.ID, DurationMs: in.Duration.Milliseconds(), Usage: in.Usage, FinishReason: in.FinishReason,
		ThroughEventID: d.dropped(),
	})
}

// recordInterruption ends the request with its partial answer. Models do not receive a partial answer that
// has reasoning but no text.
func (d *decision) recordInterruption(in RequestEnded, reason event.Reason) {
	if in.Text != "" || in.Reasoning != "" && d.Rules >= Rules2 {
		d.recordAnswer(in, true)
	}
	d.record(event.LLMRequestInterrupted{
		RequestID: d.Request.ID, PartialResponse: in.Text, Reason: reason, ThroughEventID: d.unanswered(),
		Usage: in.Usage,
	})
}

func (d *decision) recordAnswer(in RequestEnded, isPartial bool) {
	d.record(d.answer(in, isPartial))
}

func (d *decision) answer(in RequestEnded, isPartial bool) event.AssistantMessage {
	answer := event.AssistantMessage{
		Content: in.Text, RequestID: d.Request.ID, ThroughEventID: d.Request.Through, Partial: isPartial, Reasoning: in.Reasoning,
	}
	if !isPartial {
		answer.ProviderState = in.ProviderState
	}
	return answer
}

func (d *decision) fail(end AttemptEnd, retries int) {
	d.record(event.LLMRequestFailed{
		RequestID: d.Request.ID, Error: end.Error, RetriesAttempted: retries, ThroughEventID: d.unanswered(),
		Kind: end.Kind, Retryable: end.Retryable, Usage: end.Usage,
	})
}

// retries returns how many attempts precede the given one since the request was last enqueued: 0 if it is the first.
func (d *decision) retries(attempt int) int { return max(0, attempt-d.Request.FirstAttempt) }

func (d *decision) hasFallback() bool {
	return !d.Request.Fallback && d.Reduced.Config.Fallback != nil
}

func (d *decision) fallBack(in RequestEnded) {
	r, config := d.Request, d.Reduced.Config
	d.record(event.LLMRequestFellBack{
		RequestID:    r.ID,
		FromProvider: cmp.Or(in.ProviderID, r.ProviderID, config.Primary.ProviderID),
		ToProvider:   config.Fallback.ProviderID,
		Error:        in.Error, RetriesAttempted: d.retries(max(in.Attempt, r.Attempt)),
		Kind: in.Kind, Retryable: in.Retryable, Usage: in.Usage,
	})
	r.Fallback, r.Compaction, r.Compactions, r.Refusals = true, nil, 0, 0
	d.requeue(in.Attempt)
}

// unanswered returns the newest event that stays unanswered, for ThroughEventID; "" if it is the newest in the
// attempt. Events that the next request answers do not count.
func (d *decision) unanswered() string {
	r, phase, trigger := d.Request, d.Phase(), event.Counter(d.Trigger)
	asked, through := event.Counter(r.Asked), event.Counter(r.Through)
	// isNext: the next request answers the trigger.
	isNext := d.Trigger != "" && (phase.IsStopping() || trigger > max(asked, through))
	isIncluded := trigger <= through
	switch {
	case phase.IsSent() && d.Closing == "" && !(isNext && isIncluded):
		return d.dropped()
	case isNext:
		return event.FormatID(d.ContextName, trigger-1)
	default:
		return d.LastEventID()
	}
}

// dropped returns the newest message that an interrupt dropped; "" if the attempt includes it.
func (d *decision) dropped() string {
	if r := d.Request; event.Counter(r.Dropped) > event.Counter(r.Through) {
		return r.Dropped
	}
	return ""
}
