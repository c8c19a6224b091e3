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

const TagSetCompaction Tag = "SetCompactionEvent"

func (SetCompaction) Tag() Tag { return TagSetCompaction }

func (b SetCompaction) validate() error {
	for i, s := range b.Strategies {
		if err := known("strategies", s); err != nil {
			return err
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

func (b SetCompaction) Words() (subject, text string) { return "set compaction", b.String() }
func (SetCompaction) Setting() string                 { return "Compaction" }

func (SetCompaction) example() Body {
	return SetCompaction{Strategies: []Strategy{StrategyDropToolResults, StrategyTruncate}, TriggerPercent: new(90), TargetPercent: new(60)}
}

// Strategy is a way to shorten the messages for the model. The log keeps all events.
type Strategy string

const (
	StrategyDropToolResults Strategy = "drop_tool_results" // replaces the oldest tool results by a short text
	StrategySummarise       Strategy = "summarise"         // replaces the oldest messages by a summary that the model writes
	StrategyTruncate        Strategy = "truncate"          // removes the oldest messages
)

// Values returns all values.
func (Strategy) Values() []Strategy {
	return []Strategy{StrategyDropToolResults, StrategySummarise, StrategyTruncate}
}

// Effect returns how the strategy shortens the messages, for the help of commands.
func (s Strategy) Effect() string {
	switch s {
	case StrategyDropToolResults:
		return "replace the oldest tool results by a short text"
	case StrategySummarise:
		return "replace the oldest messages by a summary that the model writes"
	case StrategyTruncate:
		return "remove the oldest messages"
	}
	return ""
}

// CompactionLimits are the values of a [SetCompaction]. Trigger and Target are in percent.
type CompactionLimits struct {
	Strategies      []Strategy
	Trigger, Target int
}

const minTriggerPercent = 10
