package event

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// SetCompaction replaces the settings of compaction, which shortens the messages when a request fills
// too much of the context window of its model. Without fields, it restores the defaults.
//
//doc:effect none; replaces the settings of [compaction](#compaction); without fields, restores the defaults
type SetCompaction struct {
	// Tried in order; absent: `drop_tool_results`, then `summarise`; empty: the context is never compacted.
	Strategies []Strategy `json:"strategies,omitzero" schema:"unique"`
	// The part of the window that a request may fill.
	TriggerPercent *int `json:"triggerPercent,omitempty" schema:"min=minTriggerPercent,max=100,default=80"`
	// TargetPercent is the part that a compacted request fills at most, 1 to less than
	// TriggerPercent; unset: five eighths of TriggerPercent.
	TargetPercent *int `json:"targetPercent,omitempty" schema:"min=1,max=99"`
}

// Strategy is a way to shorten the messages for the model. The log keeps all events.
type Strategy string

const (
	StrategyDropToolResults Strategy = "drop_tool_results" // replaces the oldest tool results by a short text
	StrategySummarise       Strategy = "summarise"         // replaces the oldest messages by a summary that the model writes
	StrategyTruncate        Strategy = "truncate"          // removes the oldest messages
)

// Strategies returns all strategies.
func Strategies() []Strategy {
	return []Strategy{StrategyDropToolResults, StrategySummarise, StrategyTruncate}
}

// CompactionLimits are the values of a [SetCompaction]. Trigger and Target are in percent.
type CompactionLimits struct {
	Strategies      []Strategy
	Trigger, Target int
}

const minTriggerPercent = 10

// Limits returns the values of the event, with defaults for unset fields; b may be nil.
func (b *SetCompaction) Limits() CompactionLimits {
	limits := CompactionLimits{Strategies: []Strategy{StrategyDropToolResults, StrategySummarise}, Trigger: 80}
	if b != nil && b.Strategies != nil {
		limits.Strategies = b.Strategies
	}
	if b != nil && b.TriggerPercent != nil {
		limits.Trigger = *b.TriggerPercent
	}
	limits.Target = limits.Trigger * 5 / 8
	if b != nil && b.TargetPercent != nil {
		limits.Target = *b.TargetPercent
	}
	return limits
}

// IsZero reports whether the event restores the defaults.
func (b SetCompaction) IsZero() bool {
	return b.Strategies == nil && b.TriggerPercent == nil && b.TargetPercent == nil
}

func (b SetCompaction) validate() error {
	for i, s := range b.Strategies {
		if !slices.Contains(Strategies(), s) {
			return fieldf("strategies", "want %s, got %s", oneOf(Strategies()), quote(string(s)))
		}
		if slices.Contains(b.Strategies[:i], s) {
			return fieldf("strategies", "%s is repeated", s)
		}
	}
	limits := b.Limits()
	return cmp.Or(
		between("triggerPercent", int64(limits.Trigger), minTriggerPercent, 100),
		between("targetPercent", int64(limits.Target), 1, int64(limits.Trigger)-1),
	)
}

// String describes the values: "drop_tool_results, summarise; from 80% to 50% of the window".
func (b SetCompaction) String() string {
	limits := b.Limits()
	if len(limits.Strategies) == 0 {
		return "off"
	}
	var names []string
	for _, s := range limits.Strategies {
		names = append(names, string(s))
	}
	return fmt.Sprintf("%s; from %d%% to %d%% of the window", strings.Join(names, ", "), limits.Trigger, limits.Target)
}

// Compacted records that the session shortened the messages for the model, because a request was too
// long. It covers the messages up to that of ThroughEventID, except the system message. Tool
// results directly after that message are covered, too.
//
//schema:rules {"properties":{"throughEventId":{"$ref":"EventID"}}}
//doc:effect when the messages for the model were shortened by [compaction](#compaction)
type Compacted struct {
	RequestID string   `json:"requestId" schema:"id,min=1"`
	Strategy  Strategy `json:"strategy"`
	// ThroughEventID is the newest message covered, apart from tool results. It is "" in an import that
	// lacks this message and all earlier events.
	ThroughEventID string `json:"throughEventId" schema:"id"`
	Messages       int    `json:"messages" schema:"min=1"` // the number of messages covered
	// Summary replaces the covered messages. If they end in the middle of a turn, the user message of that turn
	// stays. The summary has at most [MaxSummaryBytes], and is set for the strategy summarise.
	Summary string `json:"summary,omitempty" schema:"max=MaxSummaryBytes"`
	// Omitted counts the oldest covered messages that the request for the summary lacked. If even the
	// newest one did not fit, the request contained its beginning, and Omitted equals Messages.
	Omitted      int `json:"omitted,omitempty" schema:"min=0"`
	TokensBefore int `json:"tokensBefore" schema:"min=0"` // the tokens of the request that was too long
	Window       int `json:"window" schema:"min=1"`       // the context window of the model in tokens
	// `configured`: by the operator; `learned`: from a rejection by the provider.
	WindowSource WindowSource `json:"windowSource,omitempty"`
	ProviderID   string       `json:"providerId"` // the provider of the request that was too long
	Model        string       `json:"model"`      // of the request that was too long
}

// MaxSummaryBytes bounds the summary of a [Compacted].
const MaxSummaryBytes = 32 << 10

// WindowSource is where the size of a context window comes from.
type WindowSource string

const (
	WindowConfigured WindowSource = "configured" // by the operator
	WindowLearned    WindowSource = "learned"    // from a rejection by the provider
)

var windowSources = []WindowSource{WindowConfigured, WindowLearned}

// DroppedResult replaces the content of a tool result under [StrategyDropToolResults].
const DroppedResult = "(removed to shorten the conversation; the log contains it)"

// SummaryIntroduction precedes a summary in the message that models receive.
const SummaryIntroduction = "The beginning of this conversation was removed to shorten it. Summary of it:\n\n"

func (b Compacted) validate() error {
	switch {
	case !slices.Contains(Strategies(), b.Strategy):
		return fieldf("strategy", "want %s, got %s", oneOf(Strategies()), quote(string(b.Strategy)))
	case b.ThroughEventID != "" && Counter(b.ThroughEventID) == 0:
		return fieldf("throughEventId", "want the id of an event, like %s, got %s", FormatID("demo", 7), quote(b.ThroughEventID))
	case (b.Strategy == StrategySummarise) != (b.Summary != ""):
		return fieldf("summary", "want a text if the strategy is %s, and none otherwise", StrategySummarise)
	case len(b.Summary) > MaxSummaryBytes:
		return fieldf("summary", "%d bytes (at most %d)", len(b.Summary), MaxSummaryBytes)
	case b.WindowSource != "" && !slices.Contains(windowSources, b.WindowSource):
		return fieldf("windowSource", "want %s, got %s", oneOf(windowSources), quote(string(b.WindowSource)))
	}
	return cmp.Or(
		requestID(b.RequestID), text("summary", b.Summary),
		between("messages", int64(b.Messages), 1, MaxTokens), between("omitted", int64(b.Omitted), 0, int64(b.Messages)),
		between("tokensBefore", int64(b.TokensBefore), 0, MaxTokens), between("window", int64(b.Window), 1, MaxTokens),
		ValidateName("providerId", b.ProviderID), ValidateName("model", b.Model),
	)
}

// String describes the compaction: "removed 12 messages through demo:0031; the request had 9000
// tokens, the window of gpt-4o has 8192 (learned)".
func (b Compacted) String() string {
	words := map[Strategy]string{
		StrategyDropToolResults: "dropped the tool results of", StrategySummarise: "summarised", StrategyTruncate: "removed",
	}[b.Strategy]
	messages := "1 message"
	if b.Messages != 1 {
		messages = fmt.Sprintf("%d messages", b.Messages)
	}
	text := words + " " + messages
	if b.ThroughEventID != "" {
		text += " through " + b.ThroughEventID
	}
	text += fmt.Sprintf("; the request had %d tokens, the window of %s has %d", b.TokensBefore, b.Model, b.Window)
	if b.WindowSource != "" {
		text += fmt.Sprintf(" (%s)", b.WindowSource)
	}
	if b.Omitted > 0 {
		text += fmt.Sprintf("; the summary omits the first %d", b.Omitted)
		if b.Omitted == b.Messages {
			text += ", except for the beginning of the newest"
		}
	}
	return text
}

func (SetCompaction) Tag() Tag      { return TagSetCompaction }
func (Compacted) Tag() Tag          { return TagCompacted }
func (b Compacted) Request() string { return b.RequestID }
