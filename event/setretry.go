package event

import "fmt"

// SetRetryConfig sets how failed attempts are retried. It replaces all settings: absent ones return to their defaults. A new
// context has 3 retries from 100 ms.
//
//doc:effect none; sets retries
type SetRetryConfig struct {
	// The number of attempts after the first, for each provider.
	MaxRetries int `json:"maxRetries" schema:"min=0,max=MaxMaxRetries"`
	// The delay before the first retry, in milliseconds.
	InitialDelayMs int64 `json:"initialDelayMs" schema:"min=1,max=MaxDelayMs"`
	// The factor from one delay to the next.
	BackoffFactor *float64 `json:"backoffFactor,omitempty" schema:"min=1,max=MaxBackoffFactor,default=2"`
	// MaxDelayMs is between InitialDelayMs and [MaxDelayMs]; unset: 60,000, or InitialDelayMs if greater.
	MaxDelayMs *int64 `json:"maxDelayMs,omitempty" schema:"min=1,max=MaxDelayMs,default=60_000"`
	// Whether each delay is drawn at random from its upper half.
	Jitter bool `json:"jitter,omitempty"`
}

// Bounds of a [SetRetryConfig], far beyond useful values, to detect wrong units.
const (
	MaxMaxRetries    = 100
	MaxDelayMs       = 60 * 60 * 1000 // an hour
	MaxBackoffFactor = 100
)

const TagSetRetryConfig Tag = "SetRetryConfigEvent"

func (SetRetryConfig) Tag() Tag { return TagSetRetryConfig }

func (b SetRetryConfig) validate() error {
	if b.MaxRetries < 0 || b.MaxRetries > MaxMaxRetries {
		return fieldf("maxRetries", "want 0 (a single attempt) to %d, got %d", MaxMaxRetries, b.MaxRetries)
	}
	if err := between("initialDelayMs", b.InitialDelayMs, 1, MaxDelayMs); err != nil {
		return err
	}
	if f := b.BackoffFactor; f != nil && !(*f >= 1 && *f <= MaxBackoffFactor) {
		return fieldf("backoffFactor", "want 1 to %d, got %v", MaxBackoffFactor, *f)
	}
	if b.MaxDelayMs != nil {
		return between("maxDelayMs", *b.MaxDelayMs, b.InitialDelayMs, MaxDelayMs)
	}
	return nil
}

// String describes the retry policy: "at most 3, first after 500ms".
func (s SetRetryConfig) String() string {
	text := fmt.Sprintf("at most %d, first after %s", s.MaxRetries, milliseconds(s.InitialDelayMs))
	if s.BackoffFactor != nil {
		text += fmt.Sprintf(", backoff factor %g", *s.BackoffFactor)
	}
	if s.MaxDelayMs != nil {
		text += ", max delay " + milliseconds(*s.MaxDelayMs)
	}
	if s.Jitter {
		text += ", with jitter"
	}
	return text
}

func (b SetRetryConfig) Words() (subject, text string) { return "set retry", b.String() }
func (SetRetryConfig) Setting() string                 { return "Retries" }

func (SetRetryConfig) example() Body {
	return SetRetryConfig{MaxRetries: 5, InitialDelayMs: 200, BackoffFactor: new(1.5), MaxDelayMs: new(int64(10_000)), Jitter: true}
}
