package event

import (
	"cmp"
	"fmt"
	"log/slog"
)

// Compacted records that the session shortened the messages for the model, because a request was too
// long. It covers the messages up to that of ThroughEventID, except the system message. Tool
// results directly after that message are covered, too.
//
//schema:rules {"properties":{"throughEventId":{"anyOf":[{"$ref":"EventID"},{"const":""}]}}}
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

const TagCompacted Tag = "CompactedEvent"

func (Compacted) Tag() Tag          { return TagCompacted }
func (b Compacted) Request() string { return b.RequestID }

func (b Compacted) validate() error {
	if err := known("strategy", b.Strategy); err != nil {
		return err
	}
	switch {
	case b.ThroughEventID != "" && Counter(b.ThroughEventID) == 0:
		return fieldf("throughEventId", "want the id of an event, like %s, got %s", FormatID("demo", 7), quote(b.ThroughEventID))
	case (b.Strategy == StrategySummarise) != (b.Summary != ""):
		return fieldf("summary", "want a text if the strategy is %s, and none otherwise", StrategySummarise)
	case len(b.Summary) > MaxSummaryBytes:
		return fieldf("summary", "%d bytes (at most %d)", len(b.Summary), MaxSummaryBytes)
	}
	return cmp.Or(
		knownOrNone("windowSource", b.WindowSource), requestID(b.RequestID), text("summary", b.Summary),
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

func (b Compacted) Words() (subject, text string) {
	if b.Summary != "" {
		return "compacted", b.String() + "\n" + b.Summary
	}
	return "compacted", b.String()
}

func (b Compacted) Line() Line {
	return Line{slog.LevelInfo, "conversation compacted", []any{
		"strategy", string(b.Strategy), "messages", b.Messages, "tokens_before", b.TokensBefore, "window", b.Window,
	}}
}

func (Compacted) example() Body {
	return Compacted{
		RequestID: "demo:r0001", Strategy: StrategySummarise, ThroughEventID: "demo:0001", Messages: 1, Summary: "The user greets.", Omitted: 1,
		TokensBefore: 7012, Window: 8192, WindowSource: WindowLearned, ProviderID: "openai", Model: "gpt-4o-mini",
	}
}

// MaxSummaryBytes bounds the summary of a [Compacted].
const MaxSummaryBytes = 32 << 10

// WindowSource is where the size of a context window comes from.
type WindowSource string

const (
	WindowConfigured WindowSource = "configured" // by the operator
	WindowLearned    WindowSource = "learned"    // from a rejection by the provider
)

// Values returns all values.
func (WindowSource) Values() []WindowSource {
	return []WindowSource{WindowConfigured, WindowLearned}
}

// DroppedResult replaces the content of a tool result under [StrategyDropToolResults].
const DroppedResult = "(removed to shorten the conversation; the log contains it)"

// SummaryIntroduction precedes a summary in the message that models receive.
const SummaryIntroduction = "The beginning of this conversation was removed to shorten it. Summary of it:\n\n"
