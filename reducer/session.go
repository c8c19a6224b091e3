package reducer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Session is everything that a session decides from. Most of it follows from
// the log; the rest, what was asked of a running request, does not outlive the
// session. It is an immutable value.
type Session struct {
	ContextName string `json:"contextName"`
	// EventCount is the number of events in the log, which is the counter in
	// the id of the newest one.
	EventCount int            `json:"eventCount"`
	Reduced    ReducedContext `json:"reduced"`
	// Trigger is the newest event that wants an answer and has none yet; ""
	// when nothing does. TriggerAt is when it was recorded.
	Trigger   string    `json:"trigger,omitempty"`
	TriggerAt time.Time `json:"triggerAt,omitzero"`
	// Request is the running request; nil when the session is idle.
	Request *Request `json:"request,omitempty"`
	// Requests counts the requests of the context so far, Turns those that
	// ended.
	Requests int `json:"requests"`
	Turns    int `json:"turns"`
	// Model is the model of the newest request that started; "" before.
	Model string `json:"model,omitempty"`
	// OpenToolCalls are the ids of the calls without a result.
	OpenToolCalls []string `json:"openToolCalls,omitempty"`
	// Started and Ended say where in its life the session is. An ended session
	// starts again when input comes before its workflow could complete.
	Started bool `json:"started,omitempty"`
	Ended   bool `json:"ended,omitempty"`
	// Closing is the reason for which the session ends as soon as its request
	// has; "" when it is not closing.
	Closing string `json:"closing,omitempty"`
}

// Request is a running request.
type Request struct {
	ID string `json:"id"`
	// Asked is the newest event when the request was made: every attempt sees
	// at least that much.
	Asked string `json:"asked,omitempty"`
	// Through is the newest event that the provider was shown in the newest
	// attempt that the session has heard of; "" before any. The request is then
	// in its quiet period, or was sent a moment ago.
	Through string `json:"through,omitempty"`
	// Attempt is the newest attempt heard of, from 1; 0 before any was sent.
	Attempt int `json:"attempt,omitempty"`
	// FirstAttempt is the number of the first attempt with the current
	// provider.
	FirstAttempt int    `json:"firstAttempt"`
	ProviderID   string `json:"providerId,omitempty"`
	Model        string `json:"model,omitempty"`
	// Fallback says that the fallback has taken over.
	Fallback bool `json:"fallback,omitempty"`
	// Stop is why the request was asked to stop; "" when it was not.
	Stop event.Reason `json:"stop,omitempty"`
	// Returns counts how often a worker gave the request back unfinished.
	Returns int `json:"returns,omitempty"`
}

// MaxReturns is how often workers may give a request back, by a shutdown or by
// dying, before it counts as failed. It keeps a request that kills its worker
// from doing so for ever.
const MaxReturns = 10

// Bounds of what waits in a session. They are far beyond what providers take,
// and keep each decision short.
const (
	MaxPendingAttachments = 100
	MaxOpenToolCalls      = 1000
)

// NewSession is a session of a context without a log.
func NewSession(contextName string) Session {
	return Session{ContextName: contextName, Reduced: Initial()}
}

// LastEventID is the id of the newest event; "" when there is none.
func (s Session) LastEventID() string {
	if s.EventCount == 0 {
		return ""
	}
	return event.FormatID(s.ContextName, s.EventCount)
}

// Input is something that happened to a session. The inputs are the struct
// types of this file; every one carries the time at which the session learns
// of it.
type Input interface{ at() time.Time }

type (
	// Opened is the first input of a session. The session it is given to holds
	// the log so far, see [Load].
	Opened struct {
		At time.Time
		// PreviousRunID is the Temporal run with the session before; "" for the
		// first session.
		PreviousRunID string
	}
	// Received is input that was understood: one event, or several that are
	// taken or refused as a whole.
	Received struct {
		At     time.Time
		Events []event.Event
	}
	// Refused is input that was not understood.
	Refused struct {
		At     time.Time
		Reason string
		// Input is what came, fit for a log.
		Input string
	}
	// RequestStarted says that an attempt was sent to a provider. It may be
	// lost, late, or come twice.
	RequestStarted struct {
		At time.Time
		Attempted
	}
	// RequestEnded is the result of a request.
	RequestEnded struct {
		At time.Time
		Attempted
		Outcome Outcome
		// Text is the answer, or what there is of it.
		Text string
		// Reason is why an interrupted request stopped, when nobody asked it to.
		Reason event.Reason
		// Error is why a request failed, fit for a log.
		Error        string
		Duration     time.Duration
		InputTokens  int
		OutputTokens int
		FinishReason string
	}
	// InterruptAsked asks to stop the running answer.
	InterruptAsked struct{ At time.Time }
	// CloseAsked asks to end the session.
	CloseAsked struct {
		At time.Time
		// Reason goes into the [event.SessionEnded]; "" means "closed".
		Reason string
	}
)

// Attempted says which attempt of which request some news is about. All but
// the request id are zero when nothing was sent.
type Attempted struct {
	RequestID  string
	Attempt    int
	Through    string
	ProviderID string
	Model      string
}

// Outcome is how a request ended.
type Outcome string

// The outcomes.
const (
	// Completed: the answer is whole.
	Completed Outcome = "completed"
	// Interrupted: it was stopped, and Text is what was said until then.
	Interrupted Outcome = "interrupted"
	// Failed: the provider refused or the attempts are used up.
	Failed Outcome = "failed"
	// Returned: the worker shut down or died; nobody is to blame and the
	// request is to be made again.
	Returned Outcome = "returned"
)

func (in Opened) at() time.Time         { return in.At }
func (in Received) at() time.Time       { return in.At }
func (in Refused) at() time.Time        { return in.At }
func (in RequestStarted) at() time.Time { return in.At }
func (in RequestEnded) at() time.Time   { return in.At }
func (in InterruptAsked) at() time.Time { return in.At }
func (in CloseAsked) at() time.Time     { return in.At }

// Effect is something that the workflow has to do, in the order given.
type Effect interface{ effect() }

type (
	// Record adds events to the log. It stands before what follows from them.
	Record struct{ Events []event.Event }
	// StartRequest asks a model. The request takes what it needs to know from
	// the session when it is sent, so that input of its quiet period counts.
	StartRequest struct {
		RequestID string
		// Turn counts the requests of the context from 1.
		Turn     int
		Fallback bool
		// FirstAttempt is the number that its first attempt has.
		FirstAttempt int
		// Through is the newest event of the log now.
		Through   string
		Retry     RetryConfig
		TimeoutMs int64
		MaxWaitMs int64
		// Model and Messages describe the request to people. The model is ""
		// when it is the worker's default.
		Model    string
		Messages int
	}
	// TellRequest tells the running request of new input, when the session has
	// not heard whether it was sent. If it was, without that input, it stops as
	// by an InterruptRequest. It need not be heard: what the request was shown
	// comes with the news that it was sent.
	TellRequest struct {
		RequestID string
		// Through is the newest event that wants an answer.
		Through string
	}
	// InterruptRequest stops the running request.
	InterruptRequest struct {
		RequestID string
		Reason    event.Reason
		// Through is the newest event that wants an answer: an attempt that
		// was shown it need not stop for new input.
		Through string
	}
)

func (Record) effect()           {}
func (StartRequest) effect()     {}
func (TellRequest) effect()      {}
func (InterruptRequest) effect() {}

// Stepper is the signature of [Step].
type Stepper func(Session, Input) (Session, []Effect)

// Step decides what an input means for a session, folding with [Reduce].
func Step(s Session, in Input) (Session, []Effect) { return NewStepper(Reduce)(s, in) }

// NewStepper returns a [Step] that folds with another reducer.
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

// Load returns the session after a log: what [Step] had made of the same
// events, as far as it outlives a session. The events must be those of one
// context, from the first on.
func Load(contextName string, reduce Reducer, events ...event.Event) Session {
	d := decision{Session: NewSession(contextName), reduce: reduce}
	for _, e := range events {
		d.follow(e)
	}
	d.Reduced = reduce(d.Reduced, events...) // in one call, which is faster
	return d.Session
}

// decision is one step at work.
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
		d.reopen()
		d.receive(in.Events)
	case Refused:
		d.reopen()
		d.record(event.InputRejected{Reason: in.Reason, Input: in.Input})
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
	case CloseAsked:
		d.close(in.Reason)
	}
}

// open begins the session. A request that an earlier session left open, because
// its run was terminated, ends here.
func (d *decision) open(in Opened) {
	left := d.Request
	d.record(event.SessionStarted{LoadedEventCount: d.EventCount, PreviousRunID: in.PreviousRunID})
	if left != nil {
		d.record(event.LLMRequestInterrupted{
			RequestID: left.ID, Reason: event.ReasonCancelled, ThroughEventID: d.LastEventID(),
		})
	}
	d.Trigger = ""
}

// reopen begins the next session when input comes after the end of this one,
// before its workflow could complete.
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
		// It waits for its turn.
	case d.isOutdated(r):
		d.stop(event.ReasonNewUserInput)
	case r.Through == "" && r.Stop == "" && d.Trigger != before:
		d.effects = append(d.effects, TellRequest{RequestID: r.ID, Through: d.Trigger})
	}
}

// refuse says why understood input cannot be taken all the same; "" when it
// can.
func (d *decision) refuse(events []event.Event) string {
	attachments := len(d.Reduced.PendingAttachments)
	calls := len(d.OpenToolCalls)
	called := map[string]bool{}
	for _, e := range events {
		if e.ContextName != "" && e.ContextName != d.ContextName {
			return fmt.Sprintf("%s.contextName: the event is for another context than %s", e.Tag(), d.ContextName)
		}
		switch body := e.Body.(type) {
		case event.FileAttachment:
			if attachments++; attachments > MaxPendingAttachments {
				return fmt.Sprintf("%s: %d attachments wait for a message already", e.Tag(), MaxPendingAttachments)
			}
		case event.ToolCall:
			if calls++; calls > MaxOpenToolCalls {
				return fmt.Sprintf("%s: %d tool calls wait for their results already", e.Tag(), MaxOpenToolCalls)
			}
			called[body.ToolCallID] = true
		case event.ToolResult:
			if !called[body.ToolCallID] && !d.knowsToolCall(body.ToolCallID) {
				return fmt.Sprintf("%s.toolCallId: no tool call of this context has the id, and providers refuse such a result", e.Tag())
			}
		case event.UserMessage:
			if strings.TrimSpace(body.Content) == "" && attachments == 0 {
				return fmt.Sprintf("%s.content: empty, and no attachment waits for it", e.Tag())
			}
			attachments = 0
			if body.Triggers() && d.isAnswering() && d.Reduced.Config.Delivery.Policy == event.PolicyReject {
				return fmt.Sprintf("busy: request %s is being answered and the delivery policy is reject", d.Request.ID)
			}
		}
	}
	return ""
}

// knowsToolCall reports whether there was a call with the id. It may have a
// result already: the true one may come after one that stood in for it.
func (d *decision) knowsToolCall(id string) bool {
	if slices.Contains(d.OpenToolCalls, id) {
		return true
	}
	for _, m := range slices.Backward(d.Reduced.Messages) {
		if m.calls(id) {
			return true
		}
	}
	return false
}

// isAnswering reports whether an answer is on its way, the quiet period
// excluded.
func (d *decision) isAnswering() bool { return d.Request != nil && d.Request.Through != "" }

// isOutdated reports whether the request was sent without the newest event that
// wants an answer.
func (d *decision) isOutdated(r *Request) bool {
	return r.Through != "" && event.Counter(d.Trigger) > event.Counter(r.Through)
}

func (d *decision) isRunning(a Attempted) bool {
	return d.Request != nil && d.Request.ID == a.RequestID
}

// start makes a request for all that wants an answer.
func (d *decision) start() {
	d.Requests++
	d.Request = &Request{ID: event.FormatRequestID(d.ContextName, d.Requests), FirstAttempt: 1}
	d.send()
}

// send makes the running request, from the start or once more.
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

// started takes the news of an attempt and asks it to stop when it comes too
// late.
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

// sent notes that an attempt was sent and reports whether that is news: each
// attempt is recorded once, and one from before the request was last made not
// at all.
func (d *decision) sent(a Attempted) bool {
	if !d.isCredible(a) {
		return false
	}
	d.record(event.LLMRequestStarted{
		RequestID: a.RequestID, ProviderID: a.ProviderID, Model: a.Model,
		ThroughEventID: a.Through, Attempt: a.Attempt,
	})
	if r := d.Request; r.Stop == event.ReasonNewUserInput && !d.isOutdated(r) {
		// This attempt has seen the input for which the one before was stopped.
		r.Stop = ""
	}
	return true
}

// isCredible reports whether there can have been such an attempt, and it is news.
// The news comes by signal, which anyone may send.
func (d *decision) isCredible(a Attempted) bool {
	r, through := d.Request, event.Counter(a.Through)
	return a.Attempt > r.Attempt && a.Attempt >= r.FirstAttempt && a.Attempt <= r.FirstAttempt+event.MaxMaxRetries &&
		a.Through == event.FormatID(d.ContextName, through) && through >= event.Counter(r.Asked) && through <= d.EventCount &&
		len(a.ProviderID) <= event.MaxNameBytes && len(a.Model) <= event.MaxNameBytes
}

// stop asks the request to stop, unless it was asked for as good a reason.
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
	d.sent(in.Attempted) // when no signal has said so
	r := d.Request
	if in.Reason == event.ReasonNewUserInput && r.Stop == "" && d.isOutdated(r) {
		// It was told of the input, see TellRequest.
		r.Stop = in.Reason
	}
	switch in.Outcome {
	case Completed:
		d.say(in.Text, false)
		d.record(event.LLMRequestCompleted{
			RequestID: r.ID, DurationMs: in.Duration.Milliseconds(),
			InputTokens: in.InputTokens, OutputTokens: in.OutputTokens, FinishReason: in.FinishReason,
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
		// Nobody wants it to stop. It was stopped for the sake of input that its
		// newest attempt has seen: the stop was overtaken by a retry.
		if r.Stop == "" && in.Reason != event.ReasonTimeout && d.again(in) {
			return
		}
	}
	if d.Request != nil {
		d.interrupted(in)
	}
	d.next()
}

// interrupted ends the request with what was said of its answer.
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

// unanswered is the newest event that goes without an answer because the
// request ends; "" when that is the newest one that it was shown.
func (d *decision) unanswered() string {
	r, trigger := d.Request, event.Counter(d.Trigger)
	waits := d.Trigger != "" && (r.Stop != "" || trigger > max(event.Counter(r.Asked), event.Counter(r.Through)))
	switch {
	case waits && trigger > event.Counter(r.Through) && r.Through != "" && d.Closing == "":
		return ""
	case waits:
		return event.FormatID(d.ContextName, trigger-1)
	case r.Through != "" && d.Closing == "":
		return ""
	default:
		return d.LastEventID()
	}
}

func (d *decision) say(text string, partial bool) {
	d.record(event.AssistantMessage{
		Content: text, RequestID: d.Request.ID, ThroughEventID: d.Request.Through, Partial: partial,
	})
}

// fail lets the fallback take over, and reports true, or ends the request.
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

// again makes the request once more, and reports true, or ends it.
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

// sendAgain makes the request once more after its attempts so far, of the last
// of which the session may not have heard. The request is as in its first quiet
// period then: what comes before it is sent, it will see.
func (d *decision) sendAgain(attempt int) {
	r := d.Request
	r.FirstAttempt = max(attempt, r.Attempt, r.FirstAttempt) + 1
	r.Through = ""
	d.send()
}

// next goes on after a request has ended.
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

// interrupt stops the answer, and with it what was about to be answered: the
// input of a quiet period, and the input that made way for itself. What waits in
// a queue is answered next.
func (d *decision) interrupt() {
	if d.Request == nil {
		return
	}
	if r := d.Request; r.Through == "" || r.Stop == event.ReasonNewUserInput || !d.isOutdated(r) {
		d.Trigger = ""
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
	// What waits for an answer goes without; what comes from here on does not.
	d.Trigger = ""
	d.Closing = cmp.Or(d.Closing, reason) // the first to ask says why
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

// answerOpenToolCalls gives every call a result, since providers refuse a
// conversation with one that has none.
func (d *decision) answerOpenToolCalls() {
	var results []event.Event
	for _, id := range d.OpenToolCalls {
		results = append(results, event.New(event.ToolResult{
			ToolCallID: id, Error: []byte(`"interrupted, outcome unknown"`), IsError: true,
		}))
	}
	d.recordEvents(results...)
}

func (d *decision) record(body event.Body) { d.recordEvents(event.New(body)) }

// recordEvents gives events their place in the log. They are folded in one
// call of the reducer: some events copy the list of messages, once per call.
func (d *decision) recordEvents(events ...event.Event) {
	if len(events) == 0 {
		return
	}
	placed := make([]event.Event, len(events))
	for i, e := range events {
		e.ParentID = d.LastEventID()
		e.ID = event.FormatID(d.ContextName, d.EventCount+1)
		e.ContextName = d.ContextName
		e.Timestamp = d.at.UTC()
		placed[i] = e
		d.follow(e)
	}
	d.Reduced = d.reduce(d.Reduced, placed...)
	if n := len(d.effects); n > 0 {
		if last, ok := d.effects[n-1].(Record); ok {
			d.effects[n-1] = Record{Events: append(last.Events, placed...)}
			return
		}
	}
	d.effects = append(d.effects, Record{Events: placed})
}

// follow is what a recorded event means for the session, but for the reduced
// context. Together with the log it is all that the next session has to go by.
func (d *decision) follow(e event.Event) {
	d.EventCount = max(d.EventCount+1, event.Counter(e.ID))
	switch body := e.Body.(type) {
	case event.UserMessage:
		if body.Triggers() {
			d.Trigger, d.TriggerAt = e.ID, e.Timestamp
		}
	case event.ToolCall:
		if !slices.Contains(d.OpenToolCalls, body.ToolCallID) {
			d.OpenToolCalls = appendCopy(d.OpenToolCalls, body.ToolCallID)
		}
	case event.ToolResult:
		d.OpenToolCalls = slices.DeleteFunc(slices.Clone(d.OpenToolCalls), func(id string) bool { return id == body.ToolCallID })
		if len(d.OpenToolCalls) == 0 {
			d.OpenToolCalls = nil
		}
	case event.SessionStarted:
		d.Started, d.Ended, d.Closing = true, false, ""
	case event.SessionEnded:
		d.Ended, d.Closing = true, ""
	case event.LLMRequestStarted:
		d.rememberStarted(body)
	case event.LLMRequestFellBack:
		d.rememberOpen(body.RequestID)
	case event.LLMRequestCompleted:
		d.rememberEnded(body.RequestID, true)
	case event.LLMRequestFailed:
		d.rememberEnded(body.RequestID, true)
	case event.LLMRequestInterrupted:
		d.rememberEnded(body.RequestID, d.Request != nil && d.Request.Stop == "")
	}
}

func (d *decision) rememberStarted(body event.LLMRequestStarted) {
	r := d.rememberOpen(body.RequestID)
	r.Attempt, r.Through = body.Attempt, body.ThroughEventID
	r.ProviderID, r.Model = body.ProviderID, body.Model
	d.Model = body.Model
}

// rememberOpen returns the running request, which may be known from the log
// alone.
func (d *decision) rememberOpen(requestID string) *Request {
	if d.Request == nil || d.Request.ID != requestID {
		d.Request = &Request{ID: requestID, FirstAttempt: 1}
	}
	d.rememberNumber(requestID)
	return d.Request
}

// rememberEnded ends a request, and with it the wait of all that it was shown if
// that is settled. It is not when the request was asked to stop: what was to go
// without an answer went when that was asked, and what came since got none, even
// if the request was shown it on its way down.
func (d *decision) rememberEnded(requestID string, settled bool) {
	if r := d.Request; settled && r != nil && event.Counter(d.Trigger) <= max(event.Counter(r.Asked), event.Counter(r.Through)) {
		d.Trigger = ""
	}
	d.Request = nil
	d.Turns++
	d.rememberNumber(requestID)
}

// rememberNumber keeps request ids unique in a log: a request that ended before
// any attempt was sent has left no start there.
func (d *decision) rememberNumber(requestID string) {
	d.Requests = max(d.Requests, event.RequestNumber(requestID))
}
