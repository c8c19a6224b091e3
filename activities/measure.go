package activities

import (
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/metrics"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// measurement measures one attempt. The goroutine of the attempt owns it, except stoppedAt.
type measurement struct {
	*metrics.Metrics
	providerID, model string
	sentAt, newestAt  time.Time    // newestAt is zero before the first delta
	stoppedAt         atomic.Int64 // of the first stop message, in nanoseconds; 0: none
}

func (m *measurement) sent(a *attempt) {
	m.providerID, m.model = a.attempted.ProviderID, a.attempted.Model
	m.sentAt = time.Now()
	isFirst := a.attempted.Attempt == a.in.FirstAttempt
	switch lost := a.lost; {
	case lost != nil && !lost.Ended:
		m.Requests.Add(1, lost.ProviderID, lost.Model, string(event.AttemptLost))
		m.use(lost.ProviderID, lost.Model, lost.Usage)
	case !isFirst:
		m.Retries.Add(1, m.providerID, m.model)
	case a.in.Fallback:
		m.Fallbacks.Add(1, m.providerID, m.model)
	}
}

func (m *measurement) delta() {
	now := time.Now()
	if m.newestAt.IsZero() {
		m.FirstToken.Observe(now.Sub(m.sentAt).Seconds(), m.providerID, m.model)
	} else {
		m.TokenGap.Observe(now.Sub(m.newestAt).Seconds(), m.providerID, m.model)
	}
	m.newestAt = now
	m.Deltas.Add(1)
}

func (m *measurement) stopped() { m.stoppedAt.CompareAndSwap(0, time.Now().UnixNano()) }

// streamed is called when the stream of the provider has ended.
func (m *measurement) streamed() {
	if at := m.stoppedAt.Load(); at != 0 {
		m.Abort.Observe(time.Since(time.Unix(0, at)).Seconds())
	}
}

func (m *measurement) use(providerID, model string, u event.Usage) {
	m.Tokens.Add(float64(u.InputTokens), providerID, model, "input")
	m.Tokens.Add(float64(u.CachedTokens), providerID, model, "cached")
	m.Tokens.Add(float64(u.OutputTokens), providerID, model, "output")
	m.Tokens.Add(float64(u.ReasoningTokens), providerID, model, "reasoning")
	if u.CostMicros != nil {
		m.Cost.Add(float64(*u.CostMicros)/1e6, providerID, model)
	}
}

// outcomeNames are the values of the label "outcome" that differ from the outcome.
var outcomeNames = map[reducer.Outcome]string{
	reducer.Called: string(event.AttemptToolCalls), reducer.HandedBack: string(event.AttemptHandedBack),
}

func outcomeName(outcome reducer.Outcome) string {
	if name, ok := outcomeNames[outcome]; ok {
		return name
	}
	return string(outcome)
}

// ended records the end of the attempt, which may not have been sent.
func (m *measurement) ended(a *attempt, result GenerateResult, err error) {
	outcome, usage := outcomeName(result.Outcome), result.Usage
	var failure Failure
	if err != nil {
		failed := new(temporal.ApplicationError)
		if errors.As(err, &failed) && failed.HasDetails() {
			_ = failed.Details(&failure) // they are a [Failure]
		}
		outcome, usage = string(reducer.Failed), failure.Usage
		m.Failures.Add(1, failure.ProviderID, failure.Model, string(failure.Kind))
		if failure.Exceeded != nil {
			label, _, _ := strings.Cut(failure.Exceeded.Budget, "=")
			m.BudgetsExceeded.Add(1, label)
		}
	}
	if result.Outcome == reducer.TooLong || failure.Overflow != nil {
		m.TooLong.Add(1, a.attempted.ProviderID, a.attempted.Model)
	}
	if result.Outcome == reducer.Interrupted {
		m.Interruptions.Add(1, string(result.Reason))
	}
	if m.sentAt.IsZero() {
		return
	}
	m.Requests.Add(1, m.providerID, m.model, outcome)
	m.Duration.Observe(time.Since(m.sentAt).Seconds(), m.providerID, m.model, outcome)
	m.use(m.providerID, m.model, usage)
	for _, quirk := range usage.Quirks {
		m.Quirks.Add(1, quirk)
	}
	if a.lost != nil && !a.lost.Ended && (result.Outcome == reducer.Completed || result.Outcome == reducer.Called) {
		m.Recovered.Add(1, m.providerID, m.model)
	}
}
