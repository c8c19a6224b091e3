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
	r.Retries, r.RetryAt, r.JitterMs = 0, time.Time{}, 0
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
	return d.Primary()
}

// Primary returns the primary provider, which is the worker's default if no event set one.
func (s Session) Primary() ProviderConfig {
	primary := s.Reduced.Config.Primary
	if primary.IsDefault && s.Options.DefaultModel != "" {
		primary.ProviderID, primary.Model = s.Options.DefaultProviderID, s.Options.DefaultModel
	}
	return primary
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
// has changed. The next attempts are recorded with that default.
func (d *decision) correctProvider(providerID, model string) {
	r := d.Request
	isSame := providerID == r.ProviderID && model == r.Model
	if isSame || event.ValidateName("providerId", providerID) != nil || event.ValidateName("model", model) != nil {
		return
	}
	d.recordStart(r.Attempt, r.Through, providerID, model)
	if config := d.Reduced.Config; config.Primary.IsDefault && !(r.Fallback && config.Fallback != nil) {
		d.Options.DefaultProviderID, d.Options.DefaultModel = providerID, model
	}
}

// Maximum bytes of errors of attempts; a truncated error has up to 100 more.
const (
	MaxAttemptError = 2000
	truncation      = 100
)

// bounded makes the fields valid.
func (e AttemptEnded) bounded() AttemptEnded {
	if !e.Kind.IsKnown() {
		e.Kind = ""
	}
	if limit := MaxAttemptError + truncation; len(e.Error) > limit {
		e.Error = strings.ToValidUTF8(e.Error[:limit], "")
	}
	e.DurationMs = max(e.DurationMs, 0)
	e.Usage = e.Usage.Bounded()
	return e
}

func (d *decision) recordAttemptEnd(outcome event.AttemptOutcome, end AttemptEnded) {
	d.record(event.LLMAttemptEnded{
		RequestID: d.Request.ID, Attempt: d.Request.Attempt, Outcome: outcome, Kind: end.Kind, Retryable: end.Retryable,
		Error: end.Error, DurationMs: end.DurationMs, Usage: end.Usage,
	})
}

// hasAttempt reports whether an attempt is scheduled or runs.
func (r *Request) hasAttempt() bool { return r.Attempt > 0 && !r.AttemptEnded }

// waits reports whether a retry waits for its time.
func (d *decision) waits() bool { return d.Phase() == PhaseRunning && !d.Request.hasAttempt() }

// isQuiet reports whether the next attempt is to be sent later, so that it can include new input.
func (d *decision) isQuiet() bool { return d.waits() || d.at.Before(d.Request.SendAt) }
