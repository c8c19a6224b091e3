package index_test

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/index"
)

// source is a fake of Temporal with logs in memory.
type source struct {
	mu       sync.Mutex
	logs     map[string]*fakeLog
	hidden   map[string]bool // contexts that the list does not have yet
	expired  map[string]bool // contexts that only the blob store has
	watchers []func(string)
	isDeaf   bool  // notices are lost
	isSlow   bool  // no log is read
	err      error // of all calls
	now      time.Time
	reads    map[string]int // of whole logs
	asked    map[string]int // for summaries
}

type fakeLog struct {
	summary client.Summary
	events  []event.Event
}

func newSource() *source {
	return &source{logs: map[string]*fakeLog{}, hidden: map[string]bool{}, expired: map[string]bool{}, reads: map[string]int{}, asked: map[string]int{}, now: time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)}
}

// record appends events to a log, which it creates if necessary, and sends a notice.
func (s *source) record(name string, bodies ...event.Body) {
	s.mu.Lock()
	l := s.logs[name]
	if l == nil {
		l = &fakeLog{summary: client.Summary{ContextName: name, Status: client.Status("idle"), StartedAt: s.now}}
		s.logs[name] = l
	}
	for _, body := range bodies {
		s.now = s.now.Add(time.Second)
		e := event.New(body)
		e.ID, e.ContextName, e.Timestamp = event.FormatID(name, len(l.events)+1), name, s.now
		l.events = append(l.events, e)
	}
	s.mu.Unlock()
	s.notify(name)
}

func (s *source) notify(name string) {
	s.mu.Lock()
	watchers, isDeaf := slices.Clone(s.watchers), s.isDeaf
	s.mu.Unlock()
	if !isDeaf {
		for _, changed := range watchers {
			changed(name)
		}
	}
}

// change changes the source without a notice.
func (s *source) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// fork creates a context that shares the first events of another one.
func (s *source) fork(name, origin string, at int, bodies ...event.Body) {
	s.change(func() {
		l := &fakeLog{summary: client.Summary{ContextName: name, Root: origin, StartedAt: s.now}}
		for _, e := range s.logs[origin].events[:at] {
			l.events = append(l.events, e.MovedTo(name))
		}
		s.logs[name] = l
	})
	s.record(name, append([]event.Body{event.SessionStarted{LoadedEventCount: at, ForkedFrom: event.FormatID(origin, at)}}, bodies...)...)
}

func (s *source) List(ctx context.Context, _ string) iter.Seq2[client.Summary, error] {
	return func(yield func(client.Summary, error) bool) {
		s.mu.Lock()
		var list []client.Summary
		for name, l := range s.logs {
			if !s.hidden[name] && !s.expired[name] {
				list = append(list, l.summary)
			}
		}
		err := s.err
		s.mu.Unlock()
		for _, summary := range list {
			if err == nil && !yield(summary, nil) {
				return
			}
		}
		if err != nil {
			yield(client.Summary{}, err)
		}
	}
}

func (s *source) Stored(context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		s.mu.Lock()
		names, err := slices.Collect(maps.Keys(s.logs)), s.err
		s.mu.Unlock()
		for _, name := range names {
			if err == nil && !yield(name, nil) {
				return
			}
		}
		if err != nil {
			yield("", err)
		}
	}
}

func (s *source) Summary(_ context.Context, name string) (client.Summary, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[name]++
	switch l := s.logs[name]; {
	case s.err != nil:
		return client.Summary{}, s.err
	case l == nil || s.expired[name]:
		return client.Summary{}, client.ErrNoContext
	default:
		return l.summary, nil
	}
}

func (s *source) Events(_ context.Context, name, from string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		s.mu.Lock()
		if from == "" {
			s.reads[name]++
		}
		l, err := s.logs[name], s.err
		if s.isSlow {
			err = client.ErrUnreachable
		}
		var events []event.Event
		switch after := event.Counter(from); {
		case l == nil && err == nil:
			err = client.ErrNoContext
		case err == nil && after > len(l.events):
			err = client.ErrNoEvent
		case err == nil:
			events = slices.Clone(l.events[after:])
		}
		s.mu.Unlock()
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(event.Event{}, err)
		}
	}
}

func (s *source) Watch(_ context.Context, changed func(string)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers = append(s.watchers, changed)
	return nil
}

const testTimeout = time.Minute // only catches hangs

func open(t *testing.T, s *source, dir string) *index.Index {
	t.Helper()
	x, err := index.Open(s, index.Options{Dir: dir})
	require.NoError(t, err)
	return x
}

// await polls what no event tells: that the index has followed.
func await(t *testing.T, isSo func() bool, what ...any) {
	t.Helper()
	for late := time.Now().Add(testTimeout); !isSo(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(late) {
			require.Fail(t, "timeout", what...)
		}
	}
}

func list(t *testing.T, x *index.Index, f index.Filter) []index.Context {
	t.Helper()
	if f.Limit == 0 {
		f.Limit = 10_000
	}
	found, more, err := x.List(t.Context(), f)
	require.NoError(t, err)
	require.False(t, more)
	return found
}

func search(t *testing.T, x *index.Index, text string) []index.Hit {
	t.Helper()
	hits, _, err := x.Search(t.Context(), index.Query{Text: text, Limit: 1000})
	require.NoError(t, err)
	return hits
}

func namesOf(contexts []index.Context) (names []string) {
	for _, c := range contexts {
		names = append(names, c.ContextName)
	}
	return names
}

func idsOf(hits []index.Hit) (ids []string) {
	for _, h := range hits {
		ids = append(ids, h.EventID)
	}
	slices.Sort(ids)
	return ids
}

func user(text string) event.Body      { return event.UserMessage{Content: text} }
func assistant(text string) event.Body { return event.AssistantMessage{Content: text} }
