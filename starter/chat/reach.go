package chat

import (
	"cmp"
	"context"
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/seed-9ed7edd4/chronicle/client"
)

const reachTimeout = 2 * time.Second

// reach tracks whether Temporal is reachable while the screen waits for an answer. Following
// a log cannot distinguish an unreachable server from a log without new events.
type reach struct {
	// isScheduled is set while the next check is scheduled.
	isScheduled bool
	// gotEvents is set if the log had events since the last check.
	gotEvents     bool
	isUnreachable bool
}

type checkDue struct{}

type checkResult struct{ isUnreachable bool }

func (m *Model) scheduleCheck() tea.Cmd {
	m.reach.isScheduled = true
	return tea.Tick(cmp.Or(m.config.RecordTimeout, defaultRecordTimeout)/2, func(time.Time) tea.Msg { return checkDue{} })
}

// New events show that Temporal is reachable.
func (m *Model) checkReachable() tea.Cmd {
	if !m.transcript.busy {
		m.reach = reach{}
		return nil
	}
	if m.reach.gotEvents {
		m.reach.gotEvents = false
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
