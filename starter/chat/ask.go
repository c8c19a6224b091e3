package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/starter/show"
)

// recentEvents is how many events /events shows.
const recentEvents = 20

// key handles Enter, Ctrl-C, Ctrl-D and the arrows; other keys edit the line.
func (m *Model) key(key tea.KeyPressMsg) tea.Cmd {
	if cmd, ok := m.promptKey(key); ok {
		return cmd
	}
	if key.Text != "" {
		return m.line.insert(key.Text)
	}
	switch key.Keystroke() {
	case "enter", "shift+enter", "ctrl+enter", "ctrl+j":
		// Enter typed before the screen was set up arrives as a line feed, which is Ctrl-J.
		return m.enter()
	case "alt+enter", "ctrl+alt+j":
		return m.line.insert("\n")
	case "ctrl+c":
		if m.transcript.interrupting {
			// There may be no worker to stop it.
			m.leave()
			return nil
		}
		if m.transcript.busy {
			m.transcript.interrupting = true
			return m.interrupt()
		}
		m.line.clear()
		m.statusText = "Ctrl-D exits"
		return nil
	case "ctrl+d":
		// As in a shell, Ctrl-D deletes within a line.
		if m.line.text() == "" {
			m.leave()
			return nil
		}
	case "up":
		m.line.move(-1)
		return nil
	case "down":
		m.line.move(+1)
		return nil
	}
	return m.line.update(key)
}

func (m *Model) enter() tea.Cmd {
	typed := m.line.enter()
	command, text, isCommand := ParseLine(typed)
	if isCommand {
		return m.run(command)
	}
	if m.prompt.mode == enterAnswer {
		return m.answer(text, typed)
	}
	if text == "" && len(m.attachments) == 0 {
		return nil
	}
	input := append(m.attachments, event.New(event.UserMessage{Content: text}))
	m.attachments = nil
	late := m.await(input, text)
	m.unsent = append(m.unsent, input)
	m.transcript.busy = true
	if len(m.unsent) > 1 {
		return late
	}
	return tea.Batch(late, m.send(input))
}

func (m *Model) run(command Command) tea.Cmd {
	switch command.Name {
	case "help":
		m.transcript.remark(Help)
	case "quit":
		m.leave()
	case "attach":
		return m.attach(command.Argument)
	case "system":
		return m.set(event.SystemPrompt{Content: command.Argument})
	case "state":
		return m.state()
	case "events":
		return m.events(m.transcript.lastID)
	case "answer":
		m.prompt.isLater = false
		if i, _ := m.transcript.waitingCall(); i < 0 {
			m.statusText = "no call waits for you"
		}
	case "new", "switch":
		return m.switchTo(command)
	case "contexts":
		return m.contexts()
	case "deny":
		return m.decline(command.Argument)
	default:
		m.statusText = "unknown command /" + command.Name + " " + UnknownAdvice
	}
	return nil
}

// set sends a setting; the log shows its effect.
func (m *Model) set(setting event.Body) tea.Cmd {
	to := m.config.Context
	return func() tea.Msg {
		_, err := to.Send(m.ctx, event.New(setting))
		if err != nil && !errors.Is(err, client.ErrRefused) { // the log shows a rejection
			return notice{err: fmt.Errorf("not set: %w", err)}
		}
		return nil
	}
}

type notice struct {
	text string
	err  error
}

func (m *Model) state() tea.Cmd {
	of := m.config.Context
	return func() tea.Msg {
		state, err := of.State(m.ctx)
		if err != nil {
			return notice{err: err}
		}
		var text strings.Builder
		err = show.State(&text, state)
		return notice{text: strings.TrimRight(text.String(), "\n"), err: err}
	}
}

func (m *Model) events(lastID string) tea.Cmd {
	of := m.config.Context
	return func() tea.Msg {
		from := ""
		if last := event.Counter(lastID); last > recentEvents {
			from = event.FormatID(of.Name(), last-recentEvents)
		}
		var lines []string
		for e, err := range of.Events(m.ctx, from) {
			if err != nil {
				return notice{err: err}
			}
			lines = append(lines, show.Line(e))
		}
		return notice{text: strings.Join(lines, "\n")}
	}
}

// interrupt reports only errors; the log shows the rest.
func (m *Model) interrupt() tea.Cmd {
	of := m.config.Context
	return func() tea.Msg {
		if err := of.Interrupt(m.ctx); err != nil {
			return notice{err: fmt.Errorf("interrupt: %w", err)}
		}
		return nil
	}
}

func (m *Model) attach(place string) tea.Cmd {
	if place == "" {
		m.statusText = "usage: /attach FILE|URL"
		return nil
	}
	e, err := m.config.Attach(place)
	if err != nil {
		m.transcript.note(notice{err: err})
		return nil
	}
	m.attachments = append(m.attachments, e)
	return nil
}

func attachmentName(e event.Event) string {
	return strings.TrimPrefix(show.Note(e.Body), "attachment: ")
}

type sent struct{ err error }

func (m *Model) send(input []event.Event) tea.Cmd {
	to := m.config.Context
	return func() tea.Msg {
		for _, part := range Inputs(input) {
			_, err := to.Send(m.ctx, part...)
			if errors.Is(err, client.ErrRefused) {
				break // the log shows the rejection
			}
			if err != nil {
				return sent{err}
			}
		}
		return sent{}
	}
}

// A failed input is restored to the input line, unless the user has typed something else.
func (m *Model) takeSent(msg sent) tea.Cmd {
	input := m.unsent[0]
	m.unsent = m.unsent[1:]
	waiting := m.awaited(input[0].ClientEventID)
	if msg.err == nil && waiting >= 0 {
		m.pending[waiting].stored = true
	}
	if msg.err != nil {
		if waiting >= 0 {
			m.pending = slices.Delete(m.pending, waiting, waiting+1)
		}
		m.transcript.note(notice{err: fmt.Errorf("not sent: %w", msg.err)})
		m.transcript.busy = m.transcript.answering || len(m.unsent) > 0
		last := len(input) - 1
		if message, ok := input[last].Body.(event.UserMessage); ok && m.line.text() == "" {
			m.line.set(message.Content)
			m.attachments = append(input[:last:last], m.attachments...)
		}
	}
	if len(m.unsent) == 0 {
		return nil
	}
	return m.send(m.unsent[0])
}

// logUpdate holds the events since the previous update: at least one, or the end of the log.
type logUpdate struct {
	log    <-chan client.Entry
	events []client.Entry
	ended  bool
}

type followAgain struct{}

// follow follows the log from the last event shown.
func (m *Model) follow() tea.Cmd {
	var ctx context.Context
	ctx, m.unfollow = context.WithCancel(m.ctx)
	log := m.config.Context.Follow(ctx, client.FollowOptions{From: m.transcript.lastID, Deltas: true})
	// The buffer holds deltas that arrive while the screen is drawn.
	m.log = client.Entries(ctx, log, 256)
	return nextUpdate(m.log)
}

func nextUpdate(log <-chan client.Entry) tea.Cmd {
	return func() tea.Msg {
		l, ok := <-log
		if !ok {
			return logUpdate{log: log, ended: true}
		}
		update := logUpdate{log: log, events: []client.Entry{l}}
		for {
			select {
			case l, ok := <-log:
				if !ok {
					update.ended = true
					return update
				}
				update.events = append(update.events, l)
			default:
				return update
			}
		}
	}
}

func (m *Model) takeLog(update logUpdate) tea.Cmd {
	if m.leaving || update.log != m.log { // of the previous context
		return nil
	}
	err := errors.New("the stream ended")
	for _, l := range update.events {
		if l.Err != nil {
			err = l.Err
			continue
		}
		m.lost = false
		m.hear()
		m.resolvePending(l.Event)
		m.transcript.take(l.Event)
	}
	if !update.ended {
		return nextUpdate(m.log)
	}
	if m.ctx.Err() != nil {
		return nil
	}
	if !m.lost {
		m.lost = true
		m.transcript.note(notice{err: fmt.Errorf("follow the log: %w (retrying every %s)", err, retryFollow)})
	}
	m.unfollow()
	return tea.Tick(retryFollow, func(time.Time) tea.Msg { return followAgain{} })
}
