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

func settings(body event.Setting) string { return body.Setting() + ": " + body.String() }

func clientTools(body event.SetTools) (tools []event.Tool) {
	for _, t := range body.Tools {
		if t.IsClient() {
			tools = append(tools, t)
		}
	}
	return tools
}
