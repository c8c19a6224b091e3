package show

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
)

// Line formats an event as a line of a log: local time, id and text. Further lines of the text
// are indented.
func Line(e event.Event) string {
	return fmt.Sprintf("%s  %s  %s", e.Timestamp.Local().Format(time.TimeOnly), terminal.Line(e.ID),
		strings.ReplaceAll(Note(e.Body), "\n", "\n    "))
}

// Note formats an event as "subject: text", or the subject alone. Only messages keep joiners and variation selectors.
func Note(body event.Body) string {
	subject, text := body.Words()
	shown := terminal.Value
	switch body.(type) {
	case event.SystemPrompt, event.UserMessage, event.AssistantMessage, event.TextDelta, event.ReasoningDelta, event.Note, event.Compacted:
		shown = terminal.Clean
	}
	subject = terminal.Value(subject)
	if text != "" {
		subject += ": " + shown(text)
	}
	return subject
}

// Incomplete says why a completed answer is not whole; "": it is.
func Incomplete(b event.LLMRequestCompleted) string {
	switch b.FinishReason {
	case "length":
		return "the answer was cut off at the maximum length (raise maxTokens)"
	case "content_filter":
		return "the provider's content filter stopped the answer"
	}
	return ""
}

// NoWorkerYet is the notice for an input that no worker of the task queue has recorded yet.
func NoWorkerYet(taskQueue string) string {
	return "stored in Temporal; waiting for a worker on task queue " + taskQueue
}

// Unattended is the notice for a turn whose answer or tool call waits for a worker.
const Unattended = "waiting for a worker; the turn continues when one takes it"

// Count formats a number of things: "1 message", "2 messages".
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
