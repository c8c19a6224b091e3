package reducer

import (
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func (d *decision) startRequest() {
	d.Requests++
	d.Request = &Request{ID: event.FormatRequestID(d.ContextName, d.Requests)}
	d.requeue()
}

// requeue continues the request with an attempt that is no retry. A withdrawn attempt does not prolong the maximum wait.
func (d *decision) requeue() {
	r := d.Request
	if !r.hasAttempt() {
		r.Since = d.TriggerAt
	}
	r.Retries, r.RetryAt, r.JitterMs, r.Repair = 0, time.Time{}, 0, nil
	d.startAttempt()
}

// maxSleep is the longest time that a retry waits in its activity. A longer one waits for a timer.
const maxSleep = 5 * time.Second

// startAttempt schedules the next attempt, unless it is a retry that must wait for its time first.
func (d *decision) startAttempt() {
	r := d.Request
	if r.RetryAt.Sub(d.at) > maxSleep {
		return
	}
	d.answerOpenToolCalls()
	if r.Compaction != nil {
		asked := *r.Compaction
		asked.Asked = d.LastEventID()
		r.Compaction = &asked
	}
	messages := len(MessagesOf(d.Session))
	if messages != r.Messages {
		r.Repair = nil
	}
	r.Messages, r.SendAt, r.Taken = messages, d.sendAt(), ""
	provider := d.provider()
	d.recordStart(r.Attempt+1, ThroughOf(d.Session), provider.ProviderID, provider.Model)
	jitter := int64(0)
	if !r.SendAt.IsZero() && r.SendAt.Equal(r.RetryAt) {
		jitter = r.JitterMs
	}
	config := d.Reduced.Config
	d.perform(StartAttempt{
		RequestID:  r.ID,
		Turn:       d.Requests,
		Attempt:    r.Attempt,
		Through:    d.LastEventID(),
		ThroughAt:  d.LastEventAt,
		SendAt:     r.SendAt,
		JitterMs:   jitter,
		Fallback:   r.Fallback,
		Retry:      config.Retry,
		TimeoutMs:  config.TimeoutMs,
		Model:      provider.Model,
		Messages:   len(d.Reduced.Messages),
		Steps:      r.Steps,
		Limit:      r.Limit,
		MayCompact: d.mayCompact(),
		Compaction: r.Compaction,
		Repair:     r.Repair,
	})
}

// sendAt returns the later one of the end of the quiet period and the time of a retry; zero if it has come.
func (d *decision) sendAt() time.Time {
	r, delivery := d.Request, d.Reduced.Config.Delivery
	at := r.RetryAt
	if !d.isBeyondLimit() {
		quiet, bound := d.TriggerAt.Add(milliseconds(delivery.QuietPeriodMs)), r.Since.Add(milliseconds(delivery.MaxWaitMs))
		if bound.Before(quiet) {
			quiet = bound
		}
		if quiet.After(at) {
			at = quiet
		}
	}
	if !at.After(d.at) {
		return time.Time{}
	}
	return at
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// provider returns that of the next attempt.
func (d *decision) provider() ProviderConfig {
	config := d.Reduced.Config
	if d.Request.Fallback && config.Fallback != nil {
		return *config.Fallback
	}
	provider := config.Primary
	if provider.IsDefault && d.Options.DefaultModel != "" {
		provider.ProviderID, provider.Model = d.Options.DefaultProviderID, d.Options.DefaultModel
	}
	return provider
}

func (d *decision) recordStart(attempt int, through, providerID, model string) {
	started := event.LLMRequestStarted{
		RequestID: d.Request.ID, ProviderID: providerID, Model: model, ThroughEventID: through, Attempt: attempt,
	}
	if d.Request.Compaction != nil {
		started.Purpose = event.PurposeCompaction
	}
	d.record(started)
}

// correctProvider records the attempt again if the worker used another provider or model, because its default
// has changed.
func (d *decision) correctProvider(providerID, model string) {
	r := d.Request
	isSame := providerID == r.ProviderID && model == r.Model
	if isSame || event.ValidateName("providerId", providerID) != nil || event.ValidateName("model", model) != nil {
		return
	}
	d.recordStart(r.Attempt, r.Through, providerID, model)
}

// Maximum bytes of errors of attempts; a truncated error has up to 100 more.
const (
	MaxAttemptError = 2000
	truncation      = 100
)

// bounded makes the fields valid.
func (e AttemptEnd) bounded() AttemptEnd {
	if !e.Kind.IsKnown() {
		e.Kind = ""
	}
	if limit := MaxAttemptError + truncation; len(e.Error) > limit {
		e.Error = strings.ToValidUTF8(e.Error[:limit], "")
	}
	e.Duration = max(e.Duration, 0)
	e.Usage = e.Usage.Bounded()
	return e
}

func (d *decision) recordAttemptEnd(outcome event.AttemptOutcome, end AttemptEnd) {
	d.record(event.LLMAttemptEnded{
		RequestID: d.Request.ID, Attempt: d.Request.Attempt, Outcome: outcome, Kind: end.Kind, Retryable: end.Retryable,
		Error: end.Error, DurationMs: end.Duration.Milliseconds(), Usage: end.Usage,
	})
}

// hasAttempt reports whether an attempt is scheduled or runs.
func (r *Request) hasAttempt() bool { return r.Attempt > 0 && !r.AttemptEnded }

// waits reports whether a retry waits for its time.
func (d *decision) waits() bool { return d.Phase() == PhaseRunning && !d.Request.hasAttempt() }

// isQuiet reports whether the next attempt is to be sent later, so that it can include new input.
func (d *decision) isQuiet() bool { return d.waits() || d.at.Before(d.Request.SendAt) }

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

// MaxRetryAfter is the longest delay that a provider may ask for; a longer one ends the retries.
const MaxRetryAfter = 5 * time.Minute

func (d *decision) mayRetry(in AttemptEnded) bool {
	return in.Retryable && !in.Final && in.RetryAfter <= MaxRetryAfter && d.Request.Retries < d.Reduced.Config.Retry.MaxRetries
}

// retries continues a request with the same attempt after a delay. It reports false if it must not.
func (d *decision) retries(in AttemptEnded) bool {
	if in.Outcome != Failed || !d.mayRetry(in) {
		return false
	}
	d.recordAttemptEnd(event.AttemptFailed, in.AttemptEnd)
	r := d.Request
	r.Retries++
	backoff := d.Reduced.Config.Retry.delay(r.Retries)
	delay, jitter := max(backoff, in.RetryAfter), time.Duration(0)
	if d.Reduced.Config.Retry.Jitter {
		jitter = min(backoff/2, delay-in.RetryAfter, maxSleep)
	}
	r.RetryAt, r.JitterMs = d.at.UTC().Add(delay), jitter.Milliseconds()
	d.startAttempt()
	return true
}

// delay returns the delay before the nth retry.
func (c RetryConfig) delay(n int) time.Duration {
	delay := float64(c.InitialDelayMs)
	for range n - 1 {
		delay = min(delay*c.BackoffFactor, float64(c.MaxDelayMs))
	}
	return time.Duration(delay * float64(time.Millisecond))
}

// repairs continues a request whose answer is invalid. It reports false if the attempt was a repair already.
func (d *decision) repairs(in AttemptEnded) bool {
	r := d.Request
	if in.Outcome != Failed || in.Repair == nil || r.Repair != nil {
		return false
	}
	in.Retryable = true
	d.recordAttemptEnd(event.AttemptFailed, in.AttemptEnd)
	r.Repair, r.RetryAt = in.Repair, time.Time{}
	d.startAttempt()
	return true
}

func (d *decision) hasFallback() bool {
	return !d.Request.Fallback && d.Reduced.Config.Fallback != nil
}

func (d *decision) fallBack(in AttemptEnded) {
	r := d.Request
	d.record(event.LLMRequestFellBack{
		RequestID: r.ID, FromProvider: r.ProviderID, ToProvider: d.Reduced.Config.Fallback.ProviderID,
		Error: in.Error, RetriesAttempted: r.Retries, Kind: in.Kind, Retryable: in.Retryable, Usage: in.Usage,
	})
	r.Fallback, r.Compaction, r.Compactions, r.Refusals = true, nil, 0, 0
	d.requeue()
}

// dropped returns the newest message that a cancellation left unanswered; "" if the attempt includes it.
func (d *decision) dropped() string {
	if r := d.Request; event.Counter(r.Dropped) > event.Counter(r.Through) {
		return r.Dropped
	}
	return ""
}
