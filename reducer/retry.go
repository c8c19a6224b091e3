package reducer

import (
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// MaxRetryAfter is the longest delay that a provider may ask for; a longer one ends the retries.
const MaxRetryAfter = 5 * time.Minute

func (d *decision) mayRetry(in AttemptEnded) bool {
	return in.Retryable && !in.Final && milliseconds(in.RetryAfterMs) <= MaxRetryAfter && d.Request.Retries < d.Reduced.Config.Retry.MaxRetries
}

// retries continues a request with a retry after a delay. It reports false if no retry may follow.
func (d *decision) retries(in AttemptEnded) bool {
	if in.Outcome != Failed || !d.mayRetry(in) {
		return false
	}
	d.recordAttemptEnd(event.AttemptFailed, in)
	r := d.Request
	r.Retries++
	backoff := d.Reduced.Config.Retry.Delay(r.Retries)
	after := milliseconds(in.RetryAfterMs)
	delay, jitter := max(backoff, after), time.Duration(0)
	if d.Reduced.Config.Retry.Jitter {
		jitter = min(backoff/2, delay-after, maxSleep)
	}
	r.RetryAt, r.JitterMs = d.at.UTC().Add(delay), jitter.Milliseconds()
	d.startAttempt()
	return true
}

// Delay returns the delay before the nth retry, without jitter.
func (c RetryConfig) Delay(n int) time.Duration {
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
	d.recordAttemptEnd(event.AttemptFailed, in)
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
	r.Fallback, r.Repair, r.Compaction, r.Compactions, r.Refusals = true, nil, nil, 0, 0
	d.requeue()
}
