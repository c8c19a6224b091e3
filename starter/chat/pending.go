package chat

import (
	"cmp"
	"crypto/rand"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/starter/show"
)

// defaultRecordTimeout is how long an input may take to be recorded before the screen shows why.
const defaultRecordTimeout = 5 * time.Second

// pending is an input that is not in the log yet.
type pending struct {
	// ids are the client event ids of its events.
	ids  []string
	text string
	// stored: Temporal has accepted it. overdue: it is taking too long.
	stored, overdue bool
}

type overdue struct{ id string }

// await assigns client event ids by which the input is found in the log.
func (m *Model) await(input []event.Event, text string) tea.Cmd {
	p := pending{text: text}
	for i := range input {
		input[i].ClientEventID = cmp.Or(input[i].ClientEventID, rand.Text())
		p.ids = append(p.ids, input[i].ClientEventID)
	}
	m.pending = append(m.pending, p)
	return tea.Tick(m.config.RecordTimeout, func(time.Time) tea.Msg { return overdue{p.ids[0]} })
}

func (m *Model) awaited(id string) int {
	return slices.IndexFunc(m.pending, func(p pending) bool { return slices.Contains(p.ids, id) })
}

// resolvePending removes an input when the log has its last event or its rejection.
func (m *Model) resolvePending(e event.Event) {
	i := m.awaited(e.ClientEventID)
	if i < 0 {
		return
	}
	ids := m.pending[i].ids
	if e.Tag() == event.TagInputRejected || e.ClientEventID == ids[len(ids)-1] {
		m.pending = slices.Delete(m.pending, i, i+1)
	}
}

func (m *Model) pendingRows() []string {
	var rows []string
	late, stored := false, true
	for _, p := range m.pending[max(0, len(m.pending)-maxWaiting):] {
		rows = append(rows, prompt+show.Excerpt(p.text, m.width))
		if p.overdue {
			late, stored = true, stored && p.stored
		}
	}
	switch {
	case late && stored:
		rows = append(rows, m.transcript.wrap(show.NoWorkerYet(m.config.TaskQueue)+" (Ctrl-D exits)")...)
	case late:
		rows = append(rows, m.transcript.wrap("Temporal has not accepted it yet; retrying (Ctrl-D exits)")...)
	}
	return rows
}
