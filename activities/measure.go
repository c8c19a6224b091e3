package activities

import (
	"errors"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/metrics"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// measurement measures one attempt. The goroutine of the attempt owns it.
type measurement struct {
	*metrics.Metrics
	providerID, model string
	sentAt, newestAt  time.Time // newestAt is zero before the first delta
}

func (m *measurement) sent(in AttemptInput, p prepared) {
	m.providerID, m.model = p.providerID, p.modelName
	m.sentAt = time.Now()
	previous := in.Previous
	if in.Fallback && (previous == nil || !previous.Fallback) {
		m.Fallbacks.Add(1, m.providerID, m.model)
	}
	switch {
	case previous == nil:
	case previous.Outcome == reducer.Lost && previous.Heartbeat != nil && previous.Heartbeat.Sent:
		lost := previous.Heartbeat
		m.Requests.Add(1, lost.ProviderID, lost.Model, string(event.AttemptLost))
		m.Use(lost.ProviderID, lost.Model, lost.Usage)
	case previous.Outcome == reducer.Failed && previous.Fallback == in.Fallback:
		m.Retries.Add(1, m.providerID, m.model)
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

// streamed is called when the stream of the provider has ended, with the cause of the end of the attempt; nil: none.
func (m *measurement) streamed(cause error) {
	var stop stopped
	if errors.As(cause, &stop) {
		m.Abort.Observe(time.Since(stop.at).Seconds())
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
func (m *measurement) ended(in AttemptInput, result reducer.AttemptEnded) {
	if result.Outcome == reducer.Failed {
		m.Failures.Add(1, result.ProviderID, result.Model, string(result.Kind))
	}
	if result.Exceeded != nil {
		label, _, _ := strings.Cut(result.Exceeded.Budget, "=")
		m.BudgetsExceeded.Add(1, label)
	}
	if result.Overflow != nil {
		m.TooLong.Add(1, result.ProviderID, result.Model)
	}
	isWithdrawn := result.Outcome == reducer.Withdrawn && result.Reason != event.ReasonNewUserInput
	if result.Outcome == reducer.Interrupted || isWithdrawn {
		m.Interruptions.Add(1, string(result.Reason))
	}
	if m.sentAt.IsZero() {
		return
	}
	outcome := outcomeName(result.Outcome)
	m.Requests.Add(1, m.providerID, m.model, outcome)
	m.Duration.Observe(time.Since(m.sentAt).Seconds(), m.providerID, m.model, outcome)
	m.Use(m.providerID, m.model, result.Usage)
	for _, quirk := range result.Usage.Quirks {
		m.Quirks.Add(1, quirk)
	}
	isLost := in.Previous != nil && in.Previous.Outcome == reducer.Lost
	if isLost && (result.Outcome == reducer.Completed || result.Outcome == reducer.Called) {
		m.Recovered.Add(1, m.providerID, m.model)
	}
}
