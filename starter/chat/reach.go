package chat

import (
	"context"
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/seed-9ed7edd4/chronicle/client"
)

const reachTimeout = 2 * time.Second

// checkDue is when the screen checks whether Temporal is reachable, and whether a worker has the answer, while it
// waits for an answer. Following a log cannot distinguish their absence from a log without new events.
type checkDue struct{}

type checkResult struct {
	isUnreachable bool
	heard         time.Time // as in Model when the check began
	unattended    time.Time // since when an answer waits for a worker; zero: none does
	isTerminated  bool      // nothing continues the answer
}

func (m *Model) scheduleCheck() tea.Cmd {
	return tea.Tick(m.config.RecordTimeout/2, func(time.Time) tea.Msg { return checkDue{} })
}

func (m *Model) checkReachable() tea.Cmd {
	if !m.transcript.busy {
		return m.scheduleCheck()
	}
	of, from := m.config.Context, m.transcript.lastID
	result := checkResult{heard: m.heard}
	waitingCall, _ := m.transcript.waitingCall()
	isSilent := waitingCall < 0 && time.Since(m.heard) >= m.config.RecordTimeout
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, reachTimeout)
		defer cancel()
		for _, err := range of.Events(ctx, from) {
			result.isUnreachable = err != nil && !errors.Is(err, client.ErrNoContext)
			return result
		}
		if isSilent {
			var err error
			result.unattended, err = of.UnattendedSince(ctx) // on another error, the next check asks again
			result.isTerminated = errors.Is(err, client.ErrUnanswered)
		}
		return result
	}
}

// takeCheck shows that no worker has the answer if two checks find the same: right after an attempt, the next one
// waits for a moment, too.
func (m *Model) takeCheck(result checkResult) tea.Cmd {
	m.isUnreachable = result.isUnreachable
	if result.heard.Equal(m.heard) {
		// A message that is not in the log yet starts another run.
		if result.isTerminated && len(m.unsent)+len(m.pending) == 0 {
			m.transcript.terminated()
		}
		m.isUnattended = !result.unattended.IsZero() && result.unattended.Equal(m.probed)
		m.probed = result.unattended
	}
	return m.scheduleCheck()
}

// hear receives an event or another context.
func (m *Model) hear() {
	m.heard, m.probed = time.Now(), time.Time{}
	m.isUnreachable, m.isUnattended = false, false
}
