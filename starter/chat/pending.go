package chat

import (
	"cmp"
	"crypto/rand"
	"slices"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/starter/show"
)

// patience is how long an input may take to be in the log before the screen
// says what it waits for.
const patience = 5 * time.Second

// pending is an input from Enter until it is in the log.
type pending struct {
	// ids are the client ids of its events.
	ids  []string
	text string
	// stored says that Temporal has it, overdue that it takes long.
	stored, overdue bool
}

// overdue says that an input with a client id should be in the log by now.
type overdue struct{ id string }

// await adds an input to what is pending. Each of its events gets a client id
// by which the log is searched for it.
func (m *Model) await(input []event.Event, text string) tea.Cmd {
	p := pending{text: text}
	for i := range input {
		input[i].ClientEventID = cmp.Or(input[i].ClientEventID, rand.Text())
		p.ids = append(p.ids, input[i].ClientEventID)
	}
	m.pending = append(m.pending, p)
	return tea.Tick(cmp.Or(m.config.Patience, patience), func(time.Time) tea.Msg { return overdue{p.ids[0]} })
}

// awaited is the index of the pending input with a client id, or -1.
func (m *Model) awaited(id string) int {
	return slices.IndexFunc(m.pending, func(p pending) bool { return slices.Contains(p.ids, id) })
}

// settlePending strikes an input off when its last event was recorded, or all
// of it was refused.
func (m *Model) settlePending(e event.Event) {
	i := m.awaited(e.ClientEventID)
	if i < 0 {
		return
	}
	ids := m.pending[i].ids
	if e.Tag() == event.TagInputRejected || e.ClientEventID == ids[len(ids)-1] {
		m.pending = slices.Delete(m.pending, i, i+1)
	}
}

// pendingRows are the newest inputs that are not in the log, and what they wait
// for.
func (m *Model) pendingRows() []string {
	var rows []string
	late, stored := false, true
	for _, p := range m.pending[max(0, len(m.pending)-maxWaiting):] {
		rows = append(rows, m.fit(prompt+show.Short(p.text, m.width)))
		if p.overdue {
			late, stored = true, stored && p.stored
		}
	}
	switch {
	case late && stored:
		rows = append(rows, m.transcript.wrap(show.NoWorkerYet(m.config.TaskQueue))...)
	case late:
		rows = append(rows, m.transcript.wrap("Temporal has not stored it yet; still trying, Ctrl-D leaves")...)
	}
	return rows
}
