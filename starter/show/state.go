package show

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

const shortMessage = 100

func State(w io.Writer, s wire.State) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(table, "%s\t%s\n", name, terminal.Line(fmt.Sprintf(format, args...)))
	}
	row("context", "%s", s.ContextName)
	row("status", "%s", s.Status)
	detailRows(s.Details, row)
	row("events", "%d", s.EventCount)
	row("turns", "%d", s.Turns)
	if s.Usage.Attempts > 0 {
		row("usage", "%s", Usage(s.Usage))
	}
	if s.ContextTokens > 0 {
		row("tokens", "%s", contextTokens(s))
	}
	if s.Config.Budget != nil {
		row("budget", "%s", Spent(*s.Config.Budget, s.Usage.Amount()))
	}
	if !s.UpdatedAt.IsZero() {
		row("updated", "%s", s.UpdatedAt.Local().Format(time.DateTime))
	}
	row("provider", "%s", providerConfig(s.Config.Primary))
	if s.Model != "" && s.Model != s.Config.Primary.Model {
		row("model", "%s (last answer)", s.Model)
	}
	if s.Config.Fallback != nil {
		row("fallback", "%s", providerConfig(*s.Config.Fallback))
	}
	row("retry", "%s", event.SetRetryConfig{
		MaxRetries: s.Config.Retry.MaxRetries, InitialDelayMs: s.Config.Retry.InitialDelayMs,
		BackoffFactor: &s.Config.Retry.BackoffFactor, MaxDelayMs: &s.Config.Retry.MaxDelayMs, Jitter: s.Config.Retry.Jitter,
	})
	row("timeout", "%s", s.Config.Timeouts())
	row("policy", "%s", event.SetDeliveryPolicy{
		Policy: s.Config.Delivery.Policy, QuietPeriodMs: &s.Config.Delivery.QuietPeriodMs, MaxWaitMs: &s.Config.Delivery.MaxWaitMs,
	})
	if !s.Config.Request.IsZero() {
		row("settings", "%s", s.Config.Request)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Metadata)) {
		row("metadata", "%s %q", name, s.Metadata[name])
	}
	if s.Config.Compaction != nil {
		row("compaction", "%s", *s.Config.Compaction)
	}
	if s.Config.Tools != nil {
		row("tools", "%s", *s.Config.Tools)
	}
	if s.Request != nil {
		text := ""
		if s.Request.Compaction != nil {
			text = ", which writes a summary"
		}
		row("request", "%s, attempt %d%s", s.Request.ID, s.Request.Attempt, text)
		for _, c := range s.Request.Calls {
			row(string(c.State), "%s", Call(c))
		}
	}
	for _, a := range s.PendingAttachments {
		_, text := event.FileAttachment(a).Words()
		row("attached", "%s", text)
	}
	if earlier := s.MessageCount - len(s.Messages); earlier > 0 {
		row("messages", "%s omitted", Count(earlier, "earlier one", "earlier ones"))
	}
	for _, m := range s.Messages {
		fmt.Fprintf(table, "%s\t%s\n", m.Role, Message(m))
	}
	return table.Flush()
}

func contextTokens(s wire.State) string {
	if s.ContextWindow > 0 {
		return fmt.Sprintf("%d of a window of %d", s.ContextTokens, s.ContextWindow)
	}
	return fmt.Sprint(s.ContextTokens)
}

// Usage formats a sum of attempts: "3 attempts, ~12 tokens in, 3 out, $0.0042".
func Usage(u reducer.Usage) string {
	text := fmt.Sprintf("%d attempts, ", u.Attempts)
	if u.Attempts == 1 {
		text = "1 attempt, "
	}
	text += event.DescribeUsage(event.Usage{
		InputTokens: u.InputTokens, CachedTokens: u.CachedTokens, OutputTokens: u.OutputTokens, ReasoningTokens: u.ReasoningTokens,
		Estimated: u.Estimated,
	})
	if cost := Cost(u); cost != "" {
		text += ", " + cost
	}
	return text
}

// Cost formats the cost of attempts: "$0.0042"; with a + if the price of some attempts is
// unknown, and "" if no price is known.
func Cost(u reducer.Usage) string {
	switch {
	case u.Unpriced == 0:
		return event.FormatCost(u.CostMicros)
	case u.CostMicros > 0:
		return event.FormatCost(u.CostMicros) + "+"
	default:
		return ""
	}
}

func Message(m reducer.Message) string {
	text := Excerpt(m.Content, shortMessage)
	for _, a := range m.Attachments {
		text += " [" + Short(a.Name(), shortMessage) + "]"
	}
	for _, call := range m.ToolCalls {
		text += " [calls " + Short(call.Name, shortMessage) + "]"
	}
	if m.Partial {
		text += " [partial]"
	}
	if m.Summary {
		text = "[summary] " + Excerpt(strings.TrimPrefix(m.Content, event.SummaryIntroduction), shortMessage)
	}
	return text
}

func providerConfig(p reducer.ProviderConfig) string {
	text := event.SetProviderConfig{
		ProviderID: p.ProviderID, Model: p.Model, APIKeyRef: p.APIKeyRef, BaseURL: p.BaseURL,
		Temperature: p.Temperature, MaxTokens: p.MaxTokens, TextOnly: p.TextOnly,
	}.String()
	if p.IsDefault {
		return "the worker's default; " + text + " if the worker has none"
	}
	return text
}
