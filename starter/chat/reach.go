package chat

import (
	"cmp"
	"context"
	"errors"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/seed-9ed7edd4/chronicle/client"
)

const reachTimeout = 2 * time.Second

// reach tracks whether Temporal is reachable while the screen waits for an answer. Following
// a log cannot distinguish an unreachable server from a log without new events.
type reach struct {
	// looking is set while the next check is scheduled.
	looking bool
	// heard is set if the log had events since the last check.
	heard bool
	away  bool
}

type look struct{}

type looked struct{ away bool }

func (m *Model) lookLater() tea.Cmd {
	m.reach.looking = true
	return tea.Tick(cmp.Or(m.config.Patience, patience)/2, func(time.Time) tea.Msg { return look{} })
}

// look checks whether Temporal is reachable, if that is not known anyway.
func (m *Model) look() tea.Cmd {
	if !m.transcript.busy {
		m.reach = reach{}
		return nil
	}
	if m.reach.heard {
		m.reach.heard = false
		return m.lookLater()
	}
	from := m.transcript.lastID
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, reachTimeout)
		defer cancel()
		for _, err := range m.config.Context.Events(ctx, from) {
			return looked{away: err != nil && !errors.Is(err, client.ErrNoContext)}
		}
		return looked{}
	}
}
