package reducer

import (
	"cmp"
	"fmt"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Stepper is the signature of [Step].
type Stepper func(Session, Input) (Session, []Effect)

// Step applies an input to a session, folding events with [Reduce].
func Step(s Session, in Input) (Session, []Effect) { return NewStepper(Reduce)(s, in) }

// NewStepper returns a [Step] with another reducer.
func NewStepper(reduce Reducer) Stepper {
	return func(s Session, in Input) (Session, []Effect) {
		d := decision{Session: s, at: in.at(), reduce: reduce}
		if s.Request != nil {
			own := *s.Request
			d.Request = &own
		}
		d.take(in)
		return d.Session, d.effects
	}
}

// decision is the working state of one step.
type decision struct {
	Session
	at      time.Time
	reduce  Reducer
	effects []Effect
}

func (d *decision) take(in Input) {
	switch in := in.(type) {
	case Opened:
		d.open(in)
	case Received:
		if events := d.unrepeated(in.Events); len(events) > 0 {
			d.reopen()
			d.receive(events)
		}
	case Refused:
		d.reopen()
		rejected := event.New(event.InputRejected{Reason: in.Reason, Input: in.Input})
		rejected.ClientEventID = in.ClientEventID
		d.recordEvents(rejected)
	case RequestStarted:
		if d.isRunning(in.Attempted) {
			d.started(in.Attempted)
		}
	case RequestEnded:
		if d.isRunning(in.Attempted) {
			d.ended(in)
		}
	case InterruptAsked:
		d.interrupt()
	case Continued:
		d.goOn()
	case CloseAsked:
		d.close(in.Reason)
	}
}

// open starts the session. It ends a request that the previous session left open because its
// run was terminated.
func (d *decision) open(in Opened) {
	left := d.Request
	d.record(event.SessionStarted{LoadedEventCount: d.EventCount, PreviousRunID: in.PreviousRunID, ForkedFrom: in.ForkedFrom})
	if left != nil {
		d.record(event.LLMRequestInterrupted{
			RequestID: left.ID, Reason: event.ReasonCancelled, ThroughEventID: d.LastEventID(),
		})
	}
	d.Trigger = ""
}

// goOn continues the running request in the next run. A request without a known attempt and
// worker is sent again.
func (d *decision) goOn() {
	r := d.Request
	switch {
	case r == nil:
	case r.Through == "" || r.Worker == "":
		d.ended(RequestEnded{
			At: d.at, Attempted: Attempted{RequestID: r.ID}, Outcome: Returned,
			Error: "no worker had announced it when its run continued as new",
		})
	default:
		d.effects = append(d.effects, AdoptRequest{RequestID: r.ID, Attempt: r.Attempt, Worker: r.Worker})
		if r.Stop != "" {
			d.askToStop()
		}
	}
}

// reopen starts the next session if input arrives after the end of this one and before its
// workflow completes.
func (d *decision) reopen() {
	if d.Ended {
		d.record(event.SessionStarted{LoadedEventCount: d.EventCount})
	}
}

func (d *decision) receive(events []event.Event) {
	if problem := d.refuse(events); problem != "" {
		rejected := event.New(event.InputRejected{Reason: problem, Input: event.RedactEvents(events)})
		rejected.ClientEventID = events[0].ClientEventID
		d.recordEvents(rejected)
		return
	}
	before := d.Trigger
	d.recordEvents(events...)
	if d.Trigger == "" {
		return
	}
	switch r := d.Request; {
	case r == nil:
		d.start()
	case d.Reduced.Config.Delivery.Policy != event.PolicyInterrupt:
		// The input waits for the end of the running request.
	case d.isOutdated(r):
		d.stop(event.ReasonNewUserInput)
	case r.Through == "" && r.Stop == "" && d.Trigger != before:
		d.effects = append(d.effects, TellRequest{RequestID: r.ID, Through: d.Trigger})
	}
}

// isAnswering reports whether an attempt was sent, so the quiet period is over.
func (d *decision) isAnswering() bool { return d.Request != nil && d.Request.Through != "" }

// isOutdated reports whether the request was sent without the newest event to be answered.
func (d *decision) isOutdated(r *Request) bool {
	return r.Through != "" && event.Counter(d.Trigger) > event.Counter(r.Through)
}

func (d *decision) isRunning(a Attempted) bool {
	return d.Request != nil && d.Request.ID == a.RequestID
}

// start starts a request for everything to be answered.
func (d *decision) start() {
	d.Requests++
	d.Request = &Request{ID: event.FormatRequestID(d.ContextName, d.Requests), FirstAttempt: 1}
	d.send()
}

// send sends the running request for the first time or again.
func (d *decision) send() {
	d.answerOpenToolCalls()
	d.Request.Asked = d.LastEventID()
	config := d.Reduced.Config
	provider := config.Primary
	if d.Request.Fallback && config.Fallback != nil {
		provider = *config.Fallback
	}
	model := provider.Model
	if provider.IsDefault {
		model = ""
	}
	d.effects = append(d.effects, StartRequest{
		RequestID:    d.Request.ID,
		Turn:         d.Requests,
		Fallback:     d.Request.Fallback,
		FirstAttempt: d.Request.FirstAttempt,
		Through:      d.LastEventID(),
		Retry:        config.Retry,
		TimeoutMs:    config.TimeoutMs,
		MaxWaitMs:    config.Delivery.MaxWaitMs,
		Model:        model,
		Messages:     len(d.Reduced.Messages),
	})
}

// started handles the report of an attempt and stops the attempt if it is outdated.
func (d *decision) started(a Attempted) {
	if !d.sent(a) {
		return
	}
	switch r := d.Request; {
	case r.Stop != "":
		d.askToStop()
	case d.isOutdated(r) && d.Reduced.Config.Delivery.Policy == event.PolicyInterrupt:
		d.stop(event.ReasonNewUserInput)
	}
}

// sent records an attempt and reports whether it is new. Each attempt is recorded once;
// attempts from before the request was last sent are ignored.
func (d *decision) sent(a Attempted) bool {
	if !d.isCredible(a) {
		return false
	}
	d.record(event.LLMRequestStarted{
		RequestID: a.RequestID, ProviderID: a.ProviderID, Model: a.Model,
		ThroughEventID: a.Through, Attempt: a.Attempt,
	})
	d.Request.Worker = a.Worker
	if r := d.Request; r.Stop == event.ReasonNewUserInput && !d.isOutdated(r) {
		// This attempt has seen the input for which the previous one was stopped.
		r.Stop = ""
	}
	return true
}

// reported takes the report of an attempt in its result. It records the attempt if its
// signal was lost, and corrects a signal that said otherwise: one that was forged, or that
// Temporal delivered again after a reset, from a branch in which the ids were the same.
func (d *decision) reported(a Attempted) {
	r := d.Request
	if d.sent(a) || a.Attempt < r.FirstAttempt || a.Through == r.Through {
		return
	}
	// The newest attempt goes on under its number, with what it was shown.
	number := r.Attempt
	r.Attempt = number - 1
	a.Attempt = number
	if !d.sent(a) {
		r.Attempt = number
	}
}

// isCredible reports whether an attempt is plausible and new. Reports arrive by signal,
// which any client can send.
func (d *decision) isCredible(a Attempted) bool {
	r, through := d.Request, event.Counter(a.Through)
	return a.Attempt > r.Attempt && a.Attempt >= r.FirstAttempt && a.Attempt <= r.FirstAttempt+event.MaxMaxRetries+SpareAttempts &&
		a.Through == event.FormatID(d.ContextName, through) && through >= event.Counter(r.Asked) && through <= d.EventCount &&
		len(a.ProviderID) <= event.MaxNameBytes && len(a.Model) <= event.MaxNameBytes
}

// stop asks the request to stop, unless it was asked for the same or a stronger reason.
func (d *decision) stop(reason event.Reason) {
	r := d.Request
	if r.Stop == event.ReasonCancelled || r.Stop == reason {
		return
	}
	r.Stop = reason
	d.askToStop()
}

func (d *decision) askToStop() {
	d.effects = append(d.effects, InterruptRequest{
		RequestID: d.Request.ID, Reason: d.Request.Stop, Through: d.Trigger,
	})
}

func (d *decision) ended(in RequestEnded) {
	d.reported(in.Attempted)
	r := d.Request
	if in.Reason == event.ReasonNewUserInput && r.Stop == "" && d.isOutdated(r) {
		// The request stopped after TellRequest.
		r.Stop = in.Reason
	}
	switch in.Outcome {
	case Completed:
		d.say(in.Text, false)
		d.record(event.LLMRequestCompleted{
			RequestID: r.ID, DurationMs: in.Duration.Milliseconds(),
			InputTokens: in.InputTokens, OutputTokens: in.OutputTokens, FinishReason: in.FinishReason,
			ThroughEventID: d.dropped(),
		})
	case Failed:
		if r.Stop == "" && d.fail(in) {
			return
		}
	case Returned:
		if r.Stop == "" && d.again(in) {
			return
		}
	case Interrupted:
		// The stop is obsolete: it was for input that the newest attempt has seen, because a
		// retry overtook it.
		if r.Stop == "" && in.Reason != event.ReasonTimeout && d.again(in) {
			return
		}
	}
	if d.Request != nil {
		d.interrupted(in)
	}
	d.next()
}

// interrupted ends the request with its partial answer.
func (d *decision) interrupted(in RequestEnded) {
	reason := d.Request.Stop
	if reason == "" {
		reason = event.ReasonCancelled
		if in.Reason == event.ReasonTimeout {
			reason = in.Reason
		}
	}
	if in.Text != "" {
		d.say(in.Text, true)
	}
	d.record(event.LLMRequestInterrupted{
		RequestID: d.Request.ID, PartialResponse: in.Text, Reason: reason, ThroughEventID: d.unanswered(),
	})
}

// unanswered returns the newest event that remains unanswered when the request ends; "" if
// that is the newest one it was shown.
func (d *decision) unanswered() string {
	r, trigger := d.Request, event.Counter(d.Trigger)
	waits := d.Trigger != "" && (r.Stop != "" || trigger > max(event.Counter(r.Asked), event.Counter(r.Through)))
	switch {
	case waits && trigger > event.Counter(r.Through) && r.Through != "" && d.Closing == "":
		return d.dropped()
	case waits:
		return event.FormatID(d.ContextName, trigger-1)
	case r.Through != "" && d.Closing == "":
		return d.dropped()
	default:
		return d.LastEventID()
	}
}

// dropped returns the newest event to be answered when the request was asked to stop, if the
// request was not shown it.
func (d *decision) dropped() string {
	if r := d.Request; event.Counter(r.Dropped) > event.Counter(r.Through) {
		return r.Dropped
	}
	return ""
}

func (d *decision) say(text string, partial bool) {
	d.record(event.AssistantMessage{
		Content: text, RequestID: d.Request.ID, ThroughEventID: d.Request.Through, Partial: partial,
	})
}

// fail switches to the fallback and reports true, or ends the request.
func (d *decision) fail(in RequestEnded) bool {
	r, config := d.Request, d.Reduced.Config
	retries := max(0, max(in.Attempt, r.Attempt)-r.FirstAttempt)
	if r.Fallback || config.Fallback == nil {
		d.record(event.LLMRequestFailed{
			RequestID: r.ID, Error: in.Error, RetriesAttempted: retries, ThroughEventID: d.unanswered(),
		})
		return false
	}
	from := cmp.Or(in.ProviderID, r.ProviderID, config.Primary.ProviderID)
	d.record(event.LLMRequestFellBack{
		RequestID: r.ID, FromProvider: from, ToProvider: config.Fallback.ProviderID,
		Error: in.Error, RetriesAttempted: retries,
	})
	r.Fallback = true
	d.sendAgain(in.Attempt)
	return true
}

// again sends the request again and reports true, or ends it.
func (d *decision) again(in RequestEnded) bool {
	r := d.Request
	r.Returns++
	if r.Returns > MaxReturns {
		d.record(event.LLMRequestFailed{
			RequestID: r.ID, RetriesAttempted: max(0, r.Attempt-r.FirstAttempt), ThroughEventID: d.unanswered(),
			Error: fmt.Sprintf("%d workers in a row did not get to the end of it; the last one: %s", r.Returns, in.Error),
		})
		return false
	}
	d.sendAgain(in.Attempt)
	return true
}

// sendAgain sends the request again, numbering attempts after all earlier ones, including a
// last one that the session may not know of. The request is debounced as at first: it
// includes input received before it is sent.
func (d *decision) sendAgain(attempt int) {
	r := d.Request
	r.FirstAttempt = max(attempt, r.Attempt, r.FirstAttempt) + 1
	r.Through = ""
	d.send()
}

// next continues after a request has ended.
func (d *decision) next() {
	if d.Closing != "" {
		d.finish()
	}
	if d.Trigger == "" {
		return
	}
	d.reopen()
	d.start()
}

// interrupt stops the answer and drops what it would have answered: the input of its quiet
// period, and input that interrupted it. Queued input is answered next.
func (d *decision) interrupt() {
	if d.Request == nil {
		return
	}
	if r := d.Request; r.Through == "" || r.Stop == event.ReasonNewUserInput || !d.isOutdated(r) {
		r.Dropped, d.Trigger = cmp.Or(d.Trigger, r.Dropped), ""
	}
	d.stop(event.ReasonCancelled)
}

func (d *decision) close(reason string) {
	if d.Ended {
		return
	}
	if reason == "" {
		reason = "closed"
	}
	// Input received before the close stays unanswered; later input does not.
	d.Trigger = ""
	d.Closing = cmp.Or(d.Closing, reason) // the first reason wins
	if d.Request == nil {
		d.finish()
		return
	}
	d.stop(event.ReasonCancelled)
}

func (d *decision) finish() {
	d.answerOpenToolCalls()
	d.record(event.SessionEnded{Reason: d.Closing})
}
