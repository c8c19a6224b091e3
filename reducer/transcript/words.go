package transcript

import (
	"fmt"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func interruption(reason event.Reason) string {
	switch reason {
	case event.ReasonNewUserInput:
		return "Interrupted by new input"
	case event.ReasonTimeout:
		return "Interrupted by a timeout"
	}
	return "Interrupted"
}

func afterRetries(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return " after a retry"
	}
	return fmt.Sprintf(" after %d retries", n)
}

// settings says in words what was set; "" for what is no setting.
func settings(body event.Body) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	switch body := body.(type) {
	case event.SetProviderConfig:
		role := "Model"
		if body.AsFallback {
			role = "Fallback"
		}
		add("%s: %s of %s", role, body.Model, body.ProviderID)
		if body.BaseURL != "" {
			add("at %s", body.BaseURL)
		}
		if body.Temperature != nil {
			add("temperature %v", *body.Temperature)
		}
		if body.MaxTokens != nil {
			add("at most %d tokens", *body.MaxTokens)
		}
		if body.TextOnly {
			add("text only")
		}
	case event.SetRetryConfig:
		add("Retries: %d, the first after %d ms", body.MaxRetries, body.InitialDelayMs)
	case event.SetTimeout:
		add("Timeout: %d ms", body.TimeoutMs)
		if body.FirstTokenMs != nil {
			add("%d ms for the first token", *body.FirstTokenMs)
		}
		if body.StallMs != nil {
			add("%d ms for each silence", *body.StallMs)
		}
	case event.SetDeliveryPolicy:
		if body.Policy != "" {
			add("New input while answering: %s", body.Policy)
		}
		if body.QuietPeriodMs != nil {
			add("quiet period %d ms", *body.QuietPeriodMs)
		}
		if body.MaxWaitMs != nil {
			add("at most %d ms of it", *body.MaxWaitMs)
		}
	}
	return strings.Join(parts, ", ")
}
