package reducer

import (
	"fmt"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Config is how a context asks its model.
type Config struct {
	Primary ProviderConfig `json:"primary"`
	// Fallback takes over when the primary refuses or is exhausted; nil
	// without one.
	Fallback *ProviderConfig `json:"fallback,omitempty"`
	Retry    RetryConfig     `json:"retry"`
	// TimeoutMs bounds one attempt. FirstTokenMs bounds the wait for its first
	// token and StallMs each silence after it; 0 means no bound of their own.
	// See [event.SetTimeout].
	TimeoutMs    int64    `json:"timeoutMs"`
	FirstTokenMs int64    `json:"firstTokenMs,omitempty"`
	StallMs      int64    `json:"stallMs,omitempty"`
	Delivery     Delivery `json:"delivery"`
}

// ProviderConfig is a provider and a model, see [event.SetProviderConfig].
type ProviderConfig struct {
	ProviderID  string   `json:"providerId"`
	Model       string   `json:"model"`
	APIKeyRef   string   `json:"apiKeyRef,omitempty"`
	BaseURL     string   `json:"baseUrl,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"`
	MaxTokens   *int     `json:"maxTokens,omitempty"`
	TextOnly    bool     `json:"textOnly,omitempty"`
	// IsDefault says that no event chose the provider: the default of the
	// worker that makes the request counts, and the other fields are only what
	// it is when the worker has none of its own.
	IsDefault bool `json:"isDefault,omitempty"`
}

// RetryConfig is how often and how fast an attempt is repeated, see
// [event.SetRetryConfig].
type RetryConfig struct {
	MaxRetries     int     `json:"maxRetries"`
	InitialDelayMs int64   `json:"initialDelayMs"`
	BackoffFactor  float64 `json:"backoffFactor"`
	MaxDelayMs     int64   `json:"maxDelayMs"`
	Jitter         bool    `json:"jitter,omitempty"`
}

// Delivery is what new input does to a request, see [event.SetDeliveryPolicy].
type Delivery struct {
	Policy        event.Policy `json:"policy"`
	QuietPeriodMs int64        `json:"quietPeriodMs"`
	MaxWaitMs     int64        `json:"maxWaitMs"`
}

// Initial is the reduced context of a fresh context: no messages, the default
// provider openai with gpt-4o-mini, 3 retries from 100 ms by a factor of 2, a
// timeout of 30 s and no other, interruption by new input after a quiet period of 10 ms.
func Initial() ReducedContext {
	return ReducedContext{
		Messages: []Message{},
		Config: Config{
			Primary:   ProviderConfig{ProviderID: "openai", Model: "gpt-4o-mini", IsDefault: true},
			Retry:     retryConfig(event.SetRetryConfig{MaxRetries: 3, InitialDelayMs: 100}),
			TimeoutMs: 30_000,
			Delivery:  Delivery{Policy: event.PolicyInterrupt, QuietPeriodMs: 10, MaxWaitMs: 500},
		},
	}
}

// apply is the config after an event that sets something, and the same config
// after any other.
func (c Config) apply(body event.Body) Config {
	switch body := body.(type) {
	case event.SetRetryConfig:
		c.Retry = retryConfig(body)
	case event.SetProviderConfig:
		p := ProviderConfig{
			ProviderID:  body.ProviderID,
			Model:       body.Model,
			APIKeyRef:   body.APIKeyRef,
			BaseURL:     body.BaseURL,
			Temperature: body.Temperature,
			MaxTokens:   body.MaxTokens,
			TextOnly:    body.TextOnly,
		}
		if body.AsFallback {
			c.Fallback = &p
		} else {
			c.Primary = p
		}
	case event.SetTimeout:
		c.TimeoutMs, c.FirstTokenMs, c.StallMs = body.TimeoutMs, 0, 0
		if body.FirstTokenMs != nil {
			c.FirstTokenMs = *body.FirstTokenMs
		}
		if body.StallMs != nil {
			c.StallMs = *body.StallMs
		}
	case event.SetDeliveryPolicy:
		if body.Policy != "" {
			c.Delivery.Policy = body.Policy
		}
		if body.QuietPeriodMs != nil {
			c.Delivery.QuietPeriodMs = *body.QuietPeriodMs
			// A quiet period that is asked for is not cut short by a wait that
			// nobody asked for.
			c.Delivery.MaxWaitMs = max(c.Delivery.MaxWaitMs, c.Delivery.QuietPeriodMs)
		}
		if body.MaxWaitMs != nil {
			c.Delivery.MaxWaitMs = *body.MaxWaitMs
		}
	}
	return c
}

func retryConfig(body event.SetRetryConfig) RetryConfig {
	c := RetryConfig{
		MaxRetries:     body.MaxRetries,
		InitialDelayMs: body.InitialDelayMs,
		BackoffFactor:  2,
		MaxDelayMs:     max(60_000, body.InitialDelayMs),
		Jitter:         body.Jitter,
	}
	if body.BackoffFactor != nil {
		c.BackoffFactor = *body.BackoffFactor
	}
	if body.MaxDelayMs != nil {
		c.MaxDelayMs = *body.MaxDelayMs
	}
	return c
}

// Timeouts is the event that would set the timeouts.
func (c Config) Timeouts() event.SetTimeout {
	body := event.SetTimeout{TimeoutMs: c.TimeoutMs}
	if c.FirstTokenMs != 0 {
		body.FirstTokenMs = &c.FirstTokenMs
	}
	if c.StallMs != 0 {
		body.StallMs = &c.StallMs
	}
	return body
}

// event is the event that would set the provider.
func (p ProviderConfig) event() event.Event {
	return event.New(event.SetProviderConfig{
		ProviderID: p.ProviderID, Model: p.Model, APIKeyRef: p.APIKeyRef, BaseURL: p.BaseURL,
		Temperature: p.Temperature, MaxTokens: p.MaxTokens, TextOnly: p.TextOnly,
	})
}

// Validate reports what makes a reduced context unfit for a request: a setting
// that no event could have set, a message without a known role, a system
// message that is not the first one, a tool message that answers no call. A
// context that [Reduce] made from valid events is fit, but for foreign logs
// with a tool result whose call they left out.
func Validate(r ReducedContext) error {
	settings := []event.Event{
		r.Config.Primary.event(),
		event.New(event.SetRetryConfig{
			MaxRetries: r.Config.Retry.MaxRetries, InitialDelayMs: r.Config.Retry.InitialDelayMs,
			BackoffFactor: &r.Config.Retry.BackoffFactor, MaxDelayMs: &r.Config.Retry.MaxDelayMs,
		}),
		event.New(r.Config.Timeouts()),
		event.New(event.SetDeliveryPolicy{
			Policy: r.Config.Delivery.Policy, QuietPeriodMs: &r.Config.Delivery.QuietPeriodMs,
			MaxWaitMs: &r.Config.Delivery.MaxWaitMs,
		}),
	}
	if r.Config.Fallback != nil {
		settings = append(settings, r.Config.Fallback.event())
	}
	for _, s := range settings {
		if err := s.Validate(); err != nil {
			return fmt.Errorf("config: %w", err)
		}
	}
	called := map[string]bool{}
	for i, m := range r.Messages {
		switch m.Role {
		case RoleUser, RoleAssistant:
		case RoleSystem:
			if i > 0 {
				return fmt.Errorf("message %d: a system message stands only in front", i)
			}
		case RoleTool:
			if !called[m.ToolCallID] {
				return fmt.Errorf("message %d: a result of tool call %q, which nobody made before it", i, m.ToolCallID)
			}
		default:
			return fmt.Errorf("message %d: unknown role %q", i, m.Role)
		}
		for _, call := range m.ToolCalls {
			called[call.ID] = true
		}
	}
	return nil
}
