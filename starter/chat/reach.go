package chat

import (
	"context"
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/seed-9ed7edd4/chronicle/client"
)

const reachTimeout = 2 * time.Second

// checkDue is when the screen checks whether Temporal is reachable while it waits for an answer. Following
// a log cannot distinguish an unreachable server from a log without new events.
type checkDue struct{}

type checkResult struct{ isUnreachable bool }

func (m *Model) scheduleCheck() tea.Cmd {
	return tea.Tick(m.config.RecordTimeout/2, func(time.Time) tea.Msg { return checkDue{} })
}

func (m *Model) checkReachable() tea.Cmd {
	if !m.transcript.busy {
		return m.scheduleCheck()
	}
	of, from := m.config.Context, m.transcript.lastID
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, reachTimeout)
		defer cancel()
		for _, err := range of.Events(ctx, from) {
			return checkResult{isUnreachable: err != nil && !errors.Is(err, client.ErrNoContext)}
		}
		return checkResult{}
	}
}
