package show

import (
	"cmp"
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
	subject, text := Words(body)
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

// Words returns the subject and the text of an event. The text may contain control characters;
// to print an event, use [Note].
func Words(body event.Body) (subject, text string) {
	switch b := body.(type) {
	case event.SystemPrompt:
		return "system prompt", cmp.Or(b.Content, "(removed)")
	case event.UserMessage:
		return "user", b.Content
	case event.AssistantMessage:
		if b.Partial {
			return "assistant (partial)", b.Content
		}
		return "assistant", b.Content
	case event.FileAttachment:
		return "attachment", attachment(b)
	case event.ToolCall:
		if b.RequestID != "" {
			return "tool call", fmt.Sprintf("%s %s (%s)", b.ToolName, b.Parameters, b.ToolCallID)
		}
		return "tool call", b.ToolName + " " + string(b.Parameters)
	case event.ToolResult:
		after := ""
		if b.DurationMs > 0 {
			after = " (after " + milliseconds(b.DurationMs) + ")"
		}
		if b.IsError || len(b.Value) == 0 {
			return "tool error", string(b.Error) + string(b.Value) + after
		}
		return "tool result", string(b.Value) + after
	case event.Note:
		return string(b.Kind), b.Content
	case event.SetRetryConfig:
		return "set retry", b.String()
	case event.SetProviderConfig:
		if b.AsFallback {
			return "set fallback", b.String()
		}
		return "set provider", b.String()
	case event.SetTimeout:
		return "set timeout", b.String()
	case event.SetDeliveryPolicy:
		return "set policy", b.String()
	case event.SetRequestSettings:
		return "set request", b.String()
	case event.SetTools:
		return "set tools", b.String()
	case event.BudgetSet:
		return "set budget", b.String()
	case event.SetCompaction:
		return "set compaction", b.String()
	case event.ApprovalDecided:
		return decision(b)
	}
	return lifecycle(body)
}

func lifecycle(body event.Body) (subject, text string) {
	switch b := body.(type) {
	case event.SessionStarted:
		if b.LoadedEventCount == 0 {
			return "session started", ""
		}
		if b.ForkedFrom != "" {
			return "session started", "forked from " + b.ForkedFrom
		}
		return "session started", fmt.Sprintf("continues after %d events", b.LoadedEventCount)
	case event.SessionEnded:
		return "session ended", b.Reason
	case event.LLMRequestStarted:
		if b.Purpose != "" {
			return "summary requested", fmt.Sprintf("%s, attempt %d: %s %s", b.RequestID, b.Attempt, b.ProviderID, b.Model)
		}
		return "request started", fmt.Sprintf("%s, attempt %d: %s %s", b.RequestID, b.Attempt, b.ProviderID, b.Model)
	case event.LLMRequestCompleted:
		return "completed", completed(b)
	case event.LLMRequestInterrupted:
		return "interrupted", strings.ReplaceAll(string(b.Reason), "_", " ") + used(b.Usage)
	case event.LLMRequestFailed:
		return "failed", strings.TrimSuffix(b.Error, ".") + retries(b.RetriesAttempted) + used(b.Usage) + advice(b.Kind, b.Retryable)
	case event.LLMRequestFellBack:
		return "fell back", fmt.Sprintf("from %s to %s: %s%s%s", b.FromProvider, b.ToProvider, b.Error, retries(b.RetriesAttempted), used(b.Usage))
	case event.LLMAttemptEnded:
		outcome := strings.ReplaceAll(string(b.Outcome), "_", " ")
		if b.Outcome == event.AttemptToolCalls {
			outcome = "called tools"
		}
		return fmt.Sprintf("attempt %d %s", b.Attempt, outcome), attemptEnd(b)
	case event.BudgetExceeded:
		return "budget exceeded", b.String()
	case event.ToolsOffered:
		return "tools offered", b.String()
	case event.ApprovalRequested:
		return "approval requested", b.ToolCallID + ", until " + b.ExpiresAt.Local().Format(time.DateTime)
	case event.HookApplied:
		return "hook " + b.Hook, b.String()
	case event.Compacted:
		if b.Summary != "" {
			return "compacted", b.String() + "\n" + b.Summary
		}
		return "compacted", b.String()
	case event.ContentRefused:
		return "content refused", b.String()
	case event.InputRejected:
		return "input rejected", b.Reason
	case event.TextDelta:
		return "delta", b.Delta
	case event.ReasoningDelta:
		return "reasoning delta", b.Delta
	case event.ToolProgress:
		return "tool progress", b.Text
	case nil:
		return "no event", ""
	default:
		return string(body.Tag()), ""
	}
}

func decision(b event.ApprovalDecided) (subject, text string) {
	text = cmp.Or(b.ToolCallID, "all calls that wait")
	if b.DecidedBy != "" {
		text += " by " + b.DecidedBy
	}
	if b.Reason != "" {
		text += ": " + b.Reason
	}
	if len(b.Parameters) > 0 {
		text += ", with " + string(b.Parameters)
	}
	if b.Decision == event.Deny {
		return "denied", text
	}
	return "approved", text
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

func attachment(b event.FileAttachment) string {
	text := cmp.Or(b.FileName, b.Source.String()) + " (" + b.MediaType
	if b.Size > 0 {
		text += fmt.Sprintf(", %d bytes", b.Size)
	}
	return text + ")"
}

func completed(b event.LLMRequestCompleted) string {
	text := "after " + milliseconds(b.DurationMs) + used(b.Usage)
	if b.FinishReason != "" {
		text += ", " + b.FinishReason
	}
	return text
}

// used formats the usage of an attempt as a suffix; "" for none.
func used(u event.Usage) string {
	if u.InputTokens == 0 && u.OutputTokens == 0 && len(u.Quirks) == 0 {
		return ""
	}
	return ", " + event.DescribeUsage(u)
}

func attemptEnd(b event.LLMAttemptEnded) string {
	var parts []string
	if b.Error != "" {
		parts = append(parts, b.Error)
	}
	if b.DurationMs > 0 {
		parts = append(parts, "after "+milliseconds(b.DurationMs))
	}
	return strings.TrimPrefix(strings.Join(parts, ", ")+used(b.Usage), ", ")
}

// advice formats what to do about a failed request as a suffix of its error. Errors of the
// other kinds contain it.
func advice(kind event.FailureKind, isRetryable bool) string {
	switch kind {
	case event.FailureUnauthorized:
		return "; add a valid key for the provider"
	case event.FailureQuota:
		return "; the account at the provider needs more quota"
	case event.FailureContextTooLong:
		return "; send a shorter message, start a new context, or choose a model with a larger context window"
	case event.FailureContentFilter:
		return "; change the message"
	case event.FailureModelNotFound:
		return "; choose another model"
	case event.FailureRefusedByHook:
		return "; change the message: the operator's hook refuses it or its answer"
	}
	switch {
	case isRetryable:
		return "; try again later"
	case kind == event.FailureHookFailed:
		return "; the operator of the worker must repair the hook"
	}
	return ""
}

func retries(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return " (after 1 retry)"
	default:
		return fmt.Sprintf(" (after %d retries)", n)
	}
}

// Count formats a number of things: "1 message", "2 messages".
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func milliseconds(n int64) string { return (time.Duration(n) * time.Millisecond).String() }
