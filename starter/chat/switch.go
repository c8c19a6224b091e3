package chat

import (
	"fmt"

	tea "charm.land/bubbletea/v2"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// switched is the outcome of /switch or /new.
type switched struct {
	command string
	to      Context
	past    []event.Event
	err     error
}

func (m *Model) switchTo(command Command) tea.Cmd {
	return func() tea.Msg {
		to, past, err := m.config.Switch(m.ctx, command)
		return switched{command.Name, to, past, err}
	}
}

// takeSwitched shows another context. A running answer in the previous one continues.
func (m *Model) takeSwitched(msg switched) tea.Cmd {
	if msg.err == nil && len(m.unsent) > 0 {
		msg.err = fmt.Errorf("a message to %s is being sent (try again)", m.config.Context.Name())
	}
	if msg.err != nil {
		m.transcript.note(notice{err: fmt.Errorf("%s: %w", msg.command, msg.err)})
		return nil
	}
	m.endPrompt()
	m.transcript.flush()
	if m.transcript.busy {
		m.transcript.remark("The turn of " + m.config.Context.Name() + " continues.")
	}
	printed := m.transcript.finished()
	m.unfollow()
	m.config.Context, m.config.Past = msg.to, msg.past
	m.config.Width, m.config.Height = m.width, m.height
	m.transcript = newTranscript(m.config)
	m.transcript.out = append(printed, m.transcript.out...)
	m.pending, m.lost = nil, false
	m.hear()
	m.line.name(msg.to.Name(), m.width)
	return m.follow()
}

func (m *Model) contexts() tea.Cmd {
	return func() tea.Msg {
		text, err := m.config.Contexts(m.ctx)
		return notice{text: text, err: err}
	}
}
