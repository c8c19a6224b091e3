package reducer

import "github.com/seed-9ed7edd4/chronicle/event"

// Usage is a sum over attempts. It is comparable.
type Usage struct {
	Attempts        int   `json:"attempts"` // that ended; withdrawn ones do not count
	InputTokens     int   `json:"inputTokens,omitempty"`
	CachedTokens    int   `json:"cachedTokens,omitempty"`
	OutputTokens    int   `json:"outputTokens,omitempty"`
	ReasoningTokens int   `json:"reasoningTokens,omitempty"`
	Estimated       bool  `json:"estimated,omitempty"`
	CostMicros      int64 `json:"costMicros,omitempty"` // of priced attempts, in millionths of a US dollar
	Unpriced        int   `json:"unpriced,omitempty"`   // attempts that used tokens without a known price
}

// Add returns the sum with an attempt.
func (u Usage) Add(attempt event.Usage) Usage {
	one := Usage{
		Attempts: 1, InputTokens: attempt.InputTokens, CachedTokens: attempt.CachedTokens,
		OutputTokens: attempt.OutputTokens, ReasoningTokens: attempt.ReasoningTokens, Estimated: attempt.Estimated,
	}
	switch {
	case attempt.CostMicros != nil:
		one.CostMicros = *attempt.CostMicros
	case attempt.InputTokens+attempt.OutputTokens > 0:
		one.Unpriced = 1
	}
	return u.Plus(one)
}

// Amount returns the sum as budgets count it. Attempts without a known price cost nothing.
func (u Usage) Amount() event.Amount {
	return event.Amount{Tokens: int64(u.InputTokens) + int64(u.OutputTokens), CostMicros: u.CostMicros}
}

// Plus returns the sum of two sums.
func (u Usage) Plus(other Usage) Usage {
	return Usage{
		Attempts:        u.Attempts + other.Attempts,
		InputTokens:     u.InputTokens + other.InputTokens,
		CachedTokens:    u.CachedTokens + other.CachedTokens,
		OutputTokens:    u.OutputTokens + other.OutputTokens,
		ReasoningTokens: u.ReasoningTokens + other.ReasoningTokens,
		Estimated:       u.Estimated || other.Estimated,
		CostMicros:      u.Amount().Plus(other.Amount()).CostMicros,
		Unpriced:        u.Unpriced + other.Unpriced,
	}
}
