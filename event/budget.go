package event

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"
)

// Budget limits a sum of usage. An unset field means no limit.
type Budget struct {
	// Tokens of input and output.
	Tokens *int64 `json:"tokens,omitempty" schema:"min=0,max=MaxBudgetTokens"`
	// The cost in millionths of a US dollar.
	CostMicros *int64 `json:"costMicros,omitempty" schema:"min=0,max=MaxCostMicros"`
}

// IsZero reports whether the budget has no limit.
func (b Budget) IsZero() bool { return b == Budget{} }

// Allows reports whether a sum of usage is within the limits.
func (b Budget) Allows(sum Amount) bool {
	return (b.Tokens == nil || sum.Tokens <= *b.Tokens) && (b.CostMicros == nil || sum.CostMicros <= *b.CostMicros)
}

// Validate returns a [*FieldError] for the first invalid field.
func (b Budget) Validate() error {
	if b.Tokens != nil {
		if err := between("tokens", *b.Tokens, 0, MaxBudgetTokens); err != nil {
			return err
		}
	}
	if b.CostMicros != nil {
		return between("costMicros", *b.CostMicros, 0, MaxCostMicros)
	}
	return nil
}

// String describes the limits: "at most 5000 tokens, at most $1.50".
func (b Budget) String() string {
	var parts []string
	if b.Tokens != nil {
		parts = append(parts, fmt.Sprintf("at most %d tokens", *b.Tokens))
	}
	if b.CostMicros != nil {
		parts = append(parts, "at most "+FormatCost(*b.CostMicros))
	}
	return cmp.Or(strings.Join(parts, ", "), "no limit")
}

// MaxBudgetTokens is the maximum of Budget.Tokens.
const MaxBudgetTokens = 1_000_000_000_000

// BudgetSet replaces the budget of the context, which limits the usage of all its attempts; in a
// fork, of those since the fork. Without fields, it removes the budget.
//
//doc:effect none; replaces the [budget](#budgets) of the context; without fields, removes it
type BudgetSet Budget

const TagBudgetSet Tag = "BudgetSetEvent"

func (BudgetSet) Tag() Tag { return TagBudgetSet }

func (b BudgetSet) validate() error { return Budget(b).Validate() }

// String describes the limits as [Budget.String] does.
func (b BudgetSet) String() string { return Budget(b).String() }

func (b BudgetSet) Words() (subject, text string) { return "set budget", b.String() }
func (BudgetSet) Setting() string                 { return "Budget" }

func (BudgetSet) example() Body {
	return BudgetSet{Tokens: new(int64(100_000)), CostMicros: new(int64(2_500_000))}
}

// BudgetExceeded records that an attempt of a request was not sent, because its usage could have
// exceeded a budget. The request fails.
//
//doc:effect when a request fails because its next attempt could exceed a [budget](#budgets)
type BudgetExceeded struct {
	RequestID string `json:"requestId" schema:"id,min=1"`
	Budget    string `json:"budget" schema:"min=1"` // `context`, or the label as LABEL=VALUE
	// The day of the budget of a label, in UTC.
	Day    string `json:"day,omitempty" schema:"format=date"`
	Limit  Budget `json:"limit"`
	Used   Amount `json:"used"`   // including the reservations of running attempts
	Wanted Amount `json:"wanted"` // the estimated input and the maximum output of the attempt
}

const TagBudgetExceeded Tag = "BudgetExceededEvent"

func (BudgetExceeded) Tag() Tag          { return TagBudgetExceeded }
func (b BudgetExceeded) Request() string { return b.RequestID }

func (b BudgetExceeded) validate() error {
	if err := cmp.Or(requestID(b.RequestID), text("budget", b.Budget), within("limit", b.Limit.Validate())); err != nil {
		return err
	}
	if b.Budget == "" || len(b.Budget) > maxBudgetName {
		return fieldf("budget", "want 1 to %d bytes, got %d", maxBudgetName, len(b.Budget))
	}
	if _, err := time.Parse(time.DateOnly, b.Day); b.Day != "" && err != nil {
		return fieldf("day", "want a day like 2026-01-02, got %s", quote(b.Day))
	}
	return cmp.Or(within("used", b.Used.validate()), within("wanted", b.Wanted.validate()))
}

// String describes the exceeded limits: "context: limit 5000 tokens, used 4100, wanted 1200".
func (b BudgetExceeded) String() string {
	text := b.Budget
	if b.Day != "" {
		text += " on " + b.Day
	}
	var parts []string
	sum := b.Used.Plus(b.Wanted)
	if limit := b.Limit.Tokens; limit != nil && sum.Tokens > *limit {
		parts = append(parts, fmt.Sprintf("limit %d tokens, used %d, wanted %d", *limit, b.Used.Tokens, b.Wanted.Tokens))
	}
	if limit := b.Limit.CostMicros; limit != nil && sum.CostMicros > *limit {
		parts = append(parts, fmt.Sprintf("limit %s, used %s, wanted %s",
			FormatCost(*limit), FormatCost(b.Used.CostMicros), FormatCost(b.Wanted.CostMicros)))
	}
	return strings.TrimSuffix(text+": "+strings.Join(parts, "; "), ": ")
}

func (b BudgetExceeded) Words() (subject, text string) { return "budget exceeded", b.String() }

// Line has level info, because that of the [LLMRequestFailed] that follows is a warning.
func (b BudgetExceeded) Line() Line {
	return Line{slog.LevelInfo, "budget denied the request", []any{
		"budget", LoggedName(b.Budget), "day", b.Day, "used_tokens", b.Used.Tokens, "wanted_tokens", b.Wanted.Tokens,
		"used_micros", b.Used.CostMicros, "wanted_micros", b.Wanted.CostMicros,
	}}
}

func (BudgetExceeded) example() Body {
	return BudgetExceeded{
		RequestID: "demo:r0001", Budget: "team=support", Day: "2026-01-02", Limit: Budget{Tokens: new(int64(100_000))},
		Used: Amount{Tokens: 98_200, CostMicros: 42}, Wanted: Amount{Tokens: 4_800, CostMicros: 7},
	}
}

// BudgetOfContext names the budget of the context. Names of other budgets contain "=".
const BudgetOfContext = "context"

const maxBudgetName = maxLabelName + 1 + MaxLabelBytes

// Amount is a usage as budgets count it.
type Amount struct {
	Tokens     int64 `json:"tokens,omitempty" schema:"min=0"`     // tokens of input and output
	CostMicros int64 `json:"costMicros,omitempty" schema:"min=0"` // the cost in millionths of a US dollar
}

func (a Amount) validate() error {
	return cmp.Or(between("tokens", a.Tokens, 0, math.MaxInt64), between("costMicros", a.CostMicros, 0, math.MaxInt64))
}

// Plus returns the sum. Neither amount may be negative. It saturates instead of overflowing.
func (a Amount) Plus(other Amount) Amount {
	plus := func(a, b int64) int64 {
		if a > math.MaxInt64-b {
			return math.MaxInt64
		}
		return a + b
	}
	return Amount{plus(a.Tokens, other.Tokens), plus(a.CostMicros, other.CostMicros)}
}

// AmountOf returns the amount of a usage.
func AmountOf(u Usage) Amount {
	a := Amount{Tokens: int64(u.InputTokens) + int64(u.OutputTokens)}
	if u.CostMicros != nil {
		a.CostMicros = *u.CostMicros
	}
	return a
}

// MicrosOf returns an amount of US dollars in millionths. ok is false if the amount is negative, above
// [MaxCostMicros], or positive but less than a millionth.
func MicrosOf(usd float64) (micros int64, ok bool) {
	if !(usd >= 0 && usd <= MaxCostMicros/1e6) {
		return 0, false
	}
	micros = int64(math.Round(usd * 1e6))
	return micros, usd == 0 || usd >= 1e-6
}
