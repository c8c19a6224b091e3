package event

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

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

// String describes the model: "openai gpt-4o-mini, temperature 0.3".
func (s SetProviderConfig) String() string {
	text := s.ProviderID + " " + s.Model
	if s.BaseURL != "" {
		text += " at " + s.BaseURL
	}
	if s.APIKeyRef != "" {
		text += ", key " + s.APIKeyRef
	}
	if s.Temperature != nil {
		text += fmt.Sprintf(", temperature %g", *s.Temperature)
	}
	if s.MaxTokens != nil {
		text += fmt.Sprintf(", at most %d tokens", *s.MaxTokens)
	}
	if s.TextOnly {
		text += ", text only"
	}
	return text
}

// String describes the timeouts: "1m0s, first token within 10s".
func (s SetTimeout) String() string {
	text := milliseconds(s.TimeoutMs)
	if s.FirstTokenMs != nil {
		text += ", first token within " + milliseconds(*s.FirstTokenMs)
	}
	if s.StallMs != nil {
		text += ", stall timeout " + milliseconds(*s.StallMs)
	}
	return text
}

// String describes the fields that are set: "queue, quiet period 300ms".
func (s SetDeliveryPolicy) String() string {
	var parts []string
	if s.Policy != "" {
		parts = append(parts, string(s.Policy))
	}
	if s.QuietPeriodMs != nil {
		parts = append(parts, "quiet period "+milliseconds(*s.QuietPeriodMs))
	}
	if s.MaxWaitMs != nil {
		parts = append(parts, "maximum wait "+milliseconds(*s.MaxWaitMs))
	}
	return strings.Join(parts, ", ")
}

// String describes the fields that are set: "temperature 0.3, top_p 0.9, seed 7".
func (s RequestSettings) String() string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if s.Temperature != nil {
		add("temperature %g", *s.Temperature)
	}
	if s.MaxTokens != nil {
		add("at most %d tokens", *s.MaxTokens)
	}
	if s.TopP != nil {
		add("top_p %g", *s.TopP)
	}
	for _, stop := range s.Stop {
		add("stop at %q", stop)
	}
	if s.Seed != nil {
		add("seed %d", *s.Seed)
	}
	if s.FrequencyPenalty != nil {
		add("frequency penalty %g", *s.FrequencyPenalty)
	}
	if s.PresencePenalty != nil {
		add("presence penalty %g", *s.PresencePenalty)
	}
	if s.ReasoningEffort != "" {
		add("reasoning effort %s", s.ReasoningEffort)
	}
	if s.Reasoning != "" {
		add("reasoning kept: %s", s.Reasoning)
	}
	if s.ToolChoice != nil {
		add("tool choice %s", s.ToolChoice)
	}
	if s.ParallelToolCalls != nil {
		add("parallel tool calls %t", *s.ParallelToolCalls)
	}
	if f := s.ResponseFormat; f != nil {
		add("%s", strings.TrimSpace("answers in "+f.Type+" "+f.Name))
	}
	if names := sortedNames(s.Extra.Fields()); len(names) > 0 {
		add("with the fields %s", strings.Join(names, " "))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Labels)) {
		add("label %s %q", name, s.Labels[name])
	}
	return cmp.Or(strings.Join(parts, ", "), "the defaults of the provider")
}

// String describes the tools: "mcp:files/*, client tool ask; approve mcp:files/write_*; at most 8 steps".
func (b SetTools) String() string {
	var names []string
	for _, tool := range b.Tools {
		if tool.IsClient() {
			names = append(names, "client tool "+tool.Name)
		} else {
			names = append(names, tool.Pattern)
		}
	}
	parts := []string{cmp.Or(strings.Join(names, ", "), "none")}
	var rules []string
	for _, rule := range b.Approve {
		words := rule.Tool
		if rule.When != nil {
			words += " (conditionally)"
		}
		if b.IsIdle(rule) {
			words += " (matches none of the tools)"
		}
		rules = append(rules, words)
	}
	if len(rules) > 0 {
		parts = append(parts, "approve "+strings.Join(rules, ", "))
	}
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if b.MaxSteps != nil {
		add("at most %d steps", *b.MaxSteps)
	}
	if b.Parallel != nil {
		add("%d calls in parallel", *b.Parallel)
	}
	if b.MaxRepeats != nil {
		add("identical calls: at most %d per turn", *b.MaxRepeats-1)
	}
	if b.ExpiryMs != nil {
		add("expiry %s", milliseconds(*b.ExpiryMs))
	}
	return strings.Join(parts, "; ")
}

// String describes the settings as [RequestSettings.String] does.
func (s SetRequestSettings) String() string { return RequestSettings(s).String() }

// DescribeUsage describes usage: "~12 tokens in (4 cached), 3 out, $0.0042". A ~ means estimated.
func DescribeUsage(u Usage) string {
	text := fmt.Sprintf("%d tokens in", u.InputTokens)
	if u.Estimated {
		text = "~" + text
	}
	if u.CachedTokens > 0 {
		text += fmt.Sprintf(" (%d cached)", u.CachedTokens)
	}
	text += fmt.Sprintf(", %d out", u.OutputTokens)
	if u.ReasoningTokens > 0 {
		text += fmt.Sprintf(" (%d reasoning)", u.ReasoningTokens)
	}
	if u.CostMicros != nil {
		text += ", " + FormatCost(*u.CostMicros)
	}
	if len(u.Quirks) > 0 {
		text += ", quirks: " + strings.Join(u.Quirks, " ")
	}
	return text
}

// FormatCost formats millionths of a US dollar with at least two decimal places: "$0.0042".
func FormatCost(micros int64) string {
	text := strings.TrimRight(fmt.Sprintf("$%d.%06d", micros/1_000_000, micros%1_000_000), "0")
	for len(text)-strings.IndexByte(text, '.') <= 2 {
		text += "0"
	}
	return text
}

func milliseconds(n int64) string { return (time.Duration(n) * time.Millisecond).String() }
