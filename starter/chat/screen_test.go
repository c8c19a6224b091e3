package chat_test

import (
	"context"
	"errors"
	"iter"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/starter/chat"
	"github.com/seed-9ed7edd4/chronicle/starter/show"
)

// fakeContext passes the screen's requests to the test, which must receive each in time.
type fakeContext struct {
	name       string
	log        chan event.Event
	past       []event.Event
	sent       chan []event.Event
	sendErr    fault
	eventsErr  fault
	interrupts chan struct{}
	unattended atomic.Pointer[time.Time] // nil: a worker has the answer
	// isTerminated means that the run was terminated from outside.
	isTerminated atomic.Bool
}

// fault is an error that a test sets while commands of the screen run.
type fault struct{ err atomic.Pointer[error] }

func (f *fault) set(err error) { f.err.Store(&err) }

func (f *fault) get() error {
	if err := f.err.Load(); err != nil {
		return *err
	}
	return nil
}

func (f *fakeContext) Name() string { return f.name }

func (f *fakeContext) Send(ctx context.Context, events ...event.Event) (client.Receipt, error) {
	select {
	case f.sent <- events:
		return client.Receipt{}, f.sendErr.get()
	case <-ctx.Done():
		return client.Receipt{}, ctx.Err()
	}
}

func (f *fakeContext) Events(_ context.Context, from string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		if err := f.eventsErr.get(); err != nil {
			yield(event.Event{}, err)
			return
		}
		for _, e := range f.past {
			if event.Counter(e.ID) > event.Counter(from) && !yield(e, nil) {
				return
			}
		}
	}
}

func (f *fakeContext) Follow(ctx context.Context, _ client.FollowOptions) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for {
			select {
			case e, ok := <-f.log:
				if !ok {
					yield(event.Event{}, errors.New("connection refused"))
					return
				}
				if !yield(e, nil) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

func (f *fakeContext) UnattendedSince(context.Context) (time.Time, error) {
	if f.isTerminated.Load() {
		return time.Time{}, client.ErrUnanswered
	}
	if since := f.unattended.Load(); since != nil {
		return *since, nil
	}
	return time.Time{}, nil
}

func (*fakeContext) State(context.Context) (wire.State, error) {
	return wire.State{ContextName: "demo", Status: wire.StatusIdle}, nil
}

func (f *fakeContext) Interrupt(context.Context) error {
	f.interrupts <- struct{}{}
	return nil
}

func newFakeContext(name string) *fakeContext {
	return &fakeContext{
		name: name, log: make(chan event.Event), sent: make(chan []event.Event), interrupts: make(chan struct{}, 10),
	}
}

// screen runs a model as bubbletea does: commands concurrently, messages sequentially.
type screen struct {
	t        *testing.T
	fake     *fakeContext
	other    *fakeContext // that can be switched to
	model    tea.Model
	terminal *emulator
	messages chan tea.Msg
	quit     bool
	counter  int
}

func open(t *testing.T, past ...event.Body) *screen { return openWith(t, show.Style{}, past...) }

func openWith(t *testing.T, style show.Style, past ...event.Body) *screen {
	s := &screen{
		t:        t,
		terminal: newEmulator(t, 80, 24, true),
		messages: make(chan tea.Msg),
		fake:     newFakeContext("demo"),
	}
	for _, body := range past {
		s.fake.past = append(s.fake.past, s.event(body))
	}
	s.model = chat.New(t.Context(), s.terminal, chat.Config{
		Context: s.fake, Past: s.fake.past, Style: style, Program: "starter", TaskQueue: "contexts", RecordTimeout: recordTimeout, User: "cleo",
		Attach: func(place string) (event.Event, error) {
			if place == "missing" {
				return event.Event{}, errors.New("missing: no such file")
			}
			return event.New(event.FileAttachment{FileName: place, MediaType: "text/plain"}), nil
		},
		Switch: func(_ context.Context, command chat.Command) (chat.Context, []event.Event, error) {
			if s.other == nil || command.Argument != s.other.Name() {
				return nil, nil, errors.New("no such context")
			}
			return s.other, s.other.past, nil
		},
		Contexts: func(context.Context) (string, error) { return "CONTEXT  STATUS\ndemo     idle", nil },
	})
	s.start(s.model.Init())
	s.resize(40, 12)
	return s
}

func (s *screen) resize(width, height int) {
	s.terminal.resize(width, height)
	s.update(tea.WindowSizeMsg{Width: width, Height: height})
}

// printed returns the text above the view.
func (s *screen) printed() string {
	above, below := s.terminal.text()
	require.Equal(s.t, s.view(), strings.Join(below, "\n"))
	return strings.Join(above, "\n") + "\n"
}

// event assigns a body its place in the log; deltas have none.
func (s *screen) event(body event.Body) event.Event {
	e := event.New(body)
	if body.Tag().Class() != event.ClassEphemeral {
		s.counter++
		e.ID = event.FormatID("demo", s.counter)
	}
	return e
}

func (s *screen) start(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	go func() { s.deliver(cmd()) }()
}

// deliver passes on a message. It runs a batch concurrently and a sequence, whose type
// bubbletea does not export, in order.
func (s *screen) deliver(msg tea.Msg) {
	if value := reflect.ValueOf(msg); value.IsValid() && value.Type().ConvertibleTo(reflect.TypeFor[[]tea.Cmd]()) {
		_, sideBySide := msg.(tea.BatchMsg)
		for _, cmd := range value.Convert(reflect.TypeFor[[]tea.Cmd]()).Interface().([]tea.Cmd) {
			switch {
			case sideBySide:
				s.start(cmd)
			case cmd != nil:
				s.deliver(cmd())
			}
		}
		return
	}
	select {
	case s.messages <- msg:
	case <-s.t.Context().Done():
	}
}

func (s *screen) update(msg tea.Msg) {
	if msg == nil {
		return
	}
	if _, ok := msg.(tea.QuitMsg); ok {
		s.quit = true
		return
	}
	var cmd tea.Cmd
	s.model, cmd = s.model.Update(msg)
	s.start(cmd)
}

// until runs the screen until a condition holds.
func (s *screen) until(what string, holds func() bool) {
	s.t.Helper()
	deadline := time.After(timeout)
	for !holds() {
		select {
		case msg := <-s.messages:
			s.update(msg)
		case <-deadline:
			require.Failf(s.t, "never: "+what, "printed:\n%s\nview:\n%s", s.printed(), s.view())
		}
	}
}

func (s *screen) untilPrinted(text string) {
	s.t.Helper()
	s.until("printed "+text, func() bool { return strings.Contains(s.printed(), text) })
}

func (s *screen) untilViewed(text string) {
	s.t.Helper()
	s.until("in view "+text, func() bool { return strings.Contains(s.view(), text) })
}

func (s *screen) view() string { return ansi.Strip(s.model.View().Content) }

// record adds events to the log while the screen runs.
func (s *screen) record(bodies ...event.Body) {
	s.t.Helper()
	for _, body := range bodies {
		s.recordAs("", body)
	}
}

// recordAs adds an event with a client event id.
func (s *screen) recordAs(clientEventID string, body event.Body) {
	s.t.Helper()
	e := s.event(body)
	e.ClientEventID = clientEventID
	for taken := false; !taken; {
		select {
		case s.fake.log <- e:
			taken = true
		case msg := <-s.messages:
			s.update(msg)
		case <-time.After(timeout):
			require.FailNow(s.t, "nobody follows the log")
		}
	}
}

// takeSent returns the input that the screen sends.
func (s *screen) takeSent() []event.Event {
	s.t.Helper()
	for {
		select {
		case sent := <-s.fake.sent:
			return sent
		case msg := <-s.messages:
			s.update(msg)
		case <-time.After(timeout):
			require.FailNow(s.t, "nothing is sent")
		}
	}
}

func (s *screen) press(code rune, mod tea.KeyMod) { s.update(tea.KeyPressMsg{Code: code, Mod: mod}) }

func (s *screen) typed(text string) { s.update(tea.KeyPressMsg{Code: tea.KeyExtended, Text: text}) }

func (s *screen) enter(text string) {
	s.typed(text)
	s.press(tea.KeyEnter, 0)
}
