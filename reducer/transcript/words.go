package transcript

import (
	"fmt"

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

func settings(body event.Body) string {
	switch body := body.(type) {
	case event.SetProviderConfig:
		if body.AsFallback {
			return "Fallback: " + body.String()
		}
		return "Model: " + body.String()
	case event.SetRetryConfig:
		return "Retries: " + body.String()
	case event.SetTimeout:
		return "Timeout: " + body.String()
	case event.SetDeliveryPolicy:
		return "Delivery: " + body.String()
	case event.SetRequestSettings:
		return "Requests: " + body.String()
	case event.SetTools:
		return "Tools: " + body.String()
	case event.BudgetSet:
		return "Budget: " + body.String()
	case event.SetCompaction:
		return "Compaction: " + body.String()
	}
	return ""
}

func clientTools(body event.SetTools) (tools []event.Tool) {
	for _, t := range body.Tools {
		if t.IsClient() {
			tools = append(tools, t)
		}
	}
	return tools
}
