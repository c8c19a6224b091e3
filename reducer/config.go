package reducer

import (
	"cmp"
	"fmt"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Config is the settings of a context.
type Config struct {
	Primary  ProviderConfig  `json:"primary"`
	Fallback *ProviderConfig `json:"fallback,omitempty"` // after the last attempt or a rejection; nil: none
	Retry    RetryConfig     `json:"retry"`
	// For FirstTokenMs and StallMs, 0 means TimeoutMs.
	TimeoutMs    int64                 `json:"timeoutMs"`
	FirstTokenMs int64                 `json:"firstTokenMs,omitempty"`
	StallMs      int64                 `json:"stallMs,omitempty"`
	Delivery     Delivery              `json:"delivery"`
	Request      event.RequestSettings `json:"request,omitzero"`
	Tools        *event.SetTools       `json:"tools,omitempty"`      // nil: none
	Budget       *event.Budget         `json:"budget,omitempty"`     // limits [Session].Usage; nil: none
	Compaction   *event.SetCompaction  `json:"compaction,omitempty"` // nil: the defaults
}

// ProviderConfig is a provider and a model ([event.SetProviderConfig]).
type ProviderConfig struct {
	ProviderID  string   `json:"providerId"`
	Model       string   `json:"model"`
	APIKeyRef   string   `json:"apiKeyRef,omitempty"`
	BaseURL     string   `json:"baseUrl,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"`
	MaxTokens   *int     `json:"maxTokens,omitempty"`
	TextOnly    bool     `json:"textOnly,omitempty"`
	// IsDefault means that no event set the provider: the worker's default, if any, applies.
	IsDefault bool `json:"isDefault,omitempty"`
}

// RetryConfig is a retry policy ([event.SetRetryConfig]).
type RetryConfig struct {
	MaxRetries     int     `json:"maxRetries"`
	InitialDelayMs int64   `json:"initialDelayMs"`
	BackoffFactor  float64 `json:"backoffFactor"`
	MaxDelayMs     int64   `json:"maxDelayMs"`
	Jitter         bool    `json:"jitter,omitempty"`
}

// Delivery is a delivery policy and the debouncing of requests ([event.SetDeliveryPolicy]).
type Delivery struct {
	Policy        event.Policy `json:"policy"`
	QuietPeriodMs int64        `json:"quietPeriodMs"`
	MaxWaitMs     int64        `json:"maxWaitMs"`
}

// Initial returns an empty context with the default settings.
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

func (c Config) apply(body event.Body) Config {
	switch body := body.(type) {
	case event.SetRetryConfig:
		c.Retry = retryConfig(body)
	case event.SetProviderConfig:
		c.setProvider(body)
	case event.SetTimeout:
		c.TimeoutMs, c.FirstTokenMs, c.StallMs = body.TimeoutMs, valueOf(body.FirstTokenMs), valueOf(body.StallMs)
	case event.SetDeliveryPolicy:
		c.Delivery = c.Delivery.with(body)
	case event.SetRequestSettings:
		c.Request = event.RequestSettings(body)
	case event.SetTools:
		c.Tools = nil
		if len(body.Tools) > 0 {
			c.Tools = &body
		}
	case event.BudgetSet:
		c.Budget = nil
		if budget := event.Budget(body); !budget.IsZero() {
			c.Budget = &budget
		}
	case event.SetCompaction:
		c.Compaction = nil
		if !body.IsZero() {
			c.Compaction = &body
		}
	}
	return c
}

func valueOf(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

func (c *Config) setProvider(body event.SetProviderConfig) {
	p := ProviderConfig{
		ProviderID:  body.ProviderID,
		Model:       body.Model,
		APIKeyRef:   body.APIKeyRef,
		BaseURL:     body.BaseURL,
		Temperature: body.Temperature,
		MaxTokens:   body.MaxTokens,
		TextOnly:    body.TextOnly,
	}
	switch {
	case body.UseDefault && body.AsFallback:
		c.Fallback = nil
	case body.UseDefault:
		c.Primary = Initial().Config.Primary
	case body.AsFallback:
		c.Fallback = &p
	default:
		c.Primary = p
	}
}

func (d Delivery) with(body event.SetDeliveryPolicy) Delivery {
	d.Policy = cmp.Or(body.Policy, d.Policy)
	if body.QuietPeriodMs != nil {
		d.QuietPeriodMs = *body.QuietPeriodMs
		// An earlier or default maximum wait does not shorten a new quiet period.
		d.MaxWaitMs = max(d.MaxWaitMs, d.QuietPeriodMs)
	}
	if body.MaxWaitMs != nil {
		d.MaxWaitMs = *body.MaxWaitMs
	}
	return d
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

// Timeouts returns the event that sets the timeouts.
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

func (p ProviderConfig) event() event.Event {
	return event.New(event.SetProviderConfig{
		ProviderID: p.ProviderID, Model: p.Model, APIKeyRef: p.APIKeyRef, BaseURL: p.BaseURL,
		Temperature: p.Temperature, MaxTokens: p.MaxTokens, TextOnly: p.TextOnly,
	})
}

// Validate reports an invalid setting or role, a system message that is not first, or a tool message
// without its call. [Reduce] returns valid contexts, unless an imported log lacks a call.
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
		event.New(event.SetRequestSettings(r.Config.Request)),
	}
	if r.Config.Tools != nil {
		settings = append(settings, event.New(*r.Config.Tools))
	}
	if r.Config.Budget != nil {
		settings = append(settings, event.New(event.BudgetSet(*r.Config.Budget)))
	}
	if r.Config.Compaction != nil {
		settings = append(settings, event.New(*r.Config.Compaction))
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
				return fmt.Errorf("message %d: a system message must be the first", i)
			}
		case RoleTool:
			if !called[m.ToolCallID] {
				return fmt.Errorf("message %d: no message before it has the tool call %q", i, m.ToolCallID)
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
