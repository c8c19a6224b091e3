package chat

import (
	"cmp"
	"context"
	"errors"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/seed-9ed7edd4/chronicle/session"
)

// reachTimeout is how long Temporal may take to answer at all.
const reachTimeout = 2 * time.Second

// reach finds out whether Temporal is away while the screen waits for an answer:
// who follows a log cannot tell that from a log to which nothing is added.
type reach struct {
	// looking says that the next look is on its way.
	looking bool
	// heard says that the log has told something since the last look.
	heard bool
	away  bool
}

// look is due.
type look struct{}

// looked is what a look found.
type looked struct{ away bool }

// lookLater asks for a look.
func (m *Model) lookLater() tea.Cmd {
	m.reach.looking = true
	return tea.Tick(cmp.Or(m.config.Patience, patience)/2, func(time.Time) tea.Msg { return look{} })
}

// look looks, unless there is no need to.
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
			return looked{away: err != nil && !errors.Is(err, session.ErrNoContext)}
		}
		return looked{}
	}
}
