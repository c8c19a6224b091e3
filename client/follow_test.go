package client_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
)

// merging drives a merge step by step over unbuffered channels.
type merging struct {
	t        *testing.T
	recorded chan client.Entry
	deltas   chan stream.Delta
	wake     chan struct{}
	out      chan event.Event
	errs     chan error
	done     chan struct{}
}

const testTimeout = time.Minute

func startMerge(t *testing.T, from string) *merging {
	m := &merging{
		t: t, recorded: make(chan client.Entry), deltas: make(chan stream.Delta),
		wake: make(chan struct{}, 1), out: make(chan event.Event), errs: make(chan error, 1), done: make(chan struct{}),
	}
	go func() {
		defer close(m.done)
		for e, err := range client.Merge("demo", from, m.recorded, m.deltas, m.wake) {
			if err != nil {
				m.errs <- err
				continue
			}
			select {
			case m.out <- e:
			case <-t.Context().Done():
				return
			}
		}
	}()
	return m
}

func give[T any](t *testing.T, to chan<- T, value T) {
	t.Helper()
	select {
	case to <- value:
	case <-time.After(testTimeout):
		t.Fatal("timeout sending a value")
	}
}

func take[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(testTimeout):
		t.Fatal("timeout receiving a value")
		panic("unreachable")
	}
}

func (m *merging) log(n int, body event.Body) {
	give(m.t, m.recorded, client.Entry{Event: recorded(n, body)})
}
func (m *merging) delta(d event.TextDelta) { give(m.t, m.deltas, stream.Delta{TextDelta: d}) }

func (m *merging) yields(want event.Event) {
	m.t.Helper()
	require.Equal(m.t, want, take(m.t, m.out))
}

// end ends the log and fails if merge yields anything else.
func (m *merging) end() {
	m.t.Helper()
	close(m.recorded)
	select {
	case <-m.done:
	case e := <-m.out:
		m.t.Fatalf("unexpected event: %+v", e)
	case <-time.After(testTimeout):
		m.t.Fatal("merge does not end with the log")
	}
}

func delta(request, through int, text string) event.TextDelta {
	d := event.TextDelta{RequestID: requestID(request), Attempt: 1, Delta: text}
	if through > 0 {
		d.ThroughEventID = id(through)
	}
	return d
}

func live(d event.TextDelta) event.Event {
	e := event.New(d)
	e.ContextName = "demo"
	return e
}

func TestDeltasFollowTheEventTheyAnswer(t *testing.T) {
	m := startMerge(t, "")
	m.delta(delta(1, 2, "Hel"))
	m.log(1, event.SessionStarted{})
	m.yields(recorded(1, event.SessionStarted{}))
	m.log(2, event.UserMessage{Content: "Hello"})
	m.yields(recorded(2, event.UserMessage{Content: "Hello"}))
	m.yields(live(delta(1, 2, "Hel")))
	m.delta(delta(1, 2, "lo"))
	m.yields(live(delta(1, 2, "lo")))
	m.log(3, started(1, 2))
	m.yields(recorded(3, started(1, 2)))
	m.end()
}

func TestDeltasOfAStepFollowTheResultsOfTheStepBefore(t *testing.T) {
	m := startMerge(t, id(1))
	second := delta(1, 1, "It is")
	second.Attempt = 2
	give(t, m.deltas, stream.Delta{TextDelta: second, After: id(3)})
	for n, body := range []event.Body{event.AssistantMessage{RequestID: requestID(1)}, event.ToolResult{ToolCallID: "call_1"}} {
		m.log(2+n, body)
		m.yields(recorded(2+n, body))
	}
	m.yields(live(second))
	m.end()
}

func TestReasoningAndTextAreYieldedInOrder(t *testing.T) {
	m := startMerge(t, id(1))
	position := func(index int, text string, reset bool) event.TextDelta {
		return event.TextDelta{RequestID: requestID(1), Attempt: 1, Index: index, Delta: text, Reset: reset}
	}
	for _, step := range []struct {
		in   stream.Delta
		want []event.Body
	}{
		{stream.Delta{TextDelta: position(0, "", false), Reasoning: "Hm"}, []event.Body{event.ReasoningDelta(position(0, "Hm", false))}},
		{stream.Delta{TextDelta: position(1, "Hi", false)}, []event.Body{position(1, "Hi", false)}},
		{stream.Delta{TextDelta: position(1, "Hi", true), Reasoning: "Hm"},
			[]event.Body{event.ReasoningDelta(position(0, "Hm", true)), position(1, "Hi", false)}},
		{stream.Delta{TextDelta: position(2, "", true)}, []event.Body{position(2, "", true)}},
	} {
		give(t, m.deltas, step.in)
		for _, body := range step.want {
			e := event.New(body)
			e.ContextName = "demo"
			m.yields(e)
		}
	}
	m.end()
}

func TestADeltaWithoutAnEventIsYieldedAtOnce(t *testing.T) {
	m := startMerge(t, id(1))
	reset := delta(1, 0, "")
	reset.Attempt, reset.Reset = 2, true
	m.delta(reset)
	m.yields(live(reset))
	m.end()
}

func TestDeltasOfAFinishedRequestAreDropped(t *testing.T) {
	for name, end := range map[string]event.Body{
		"completed": completed(1), "interrupted": interrupted(1), "failed": failed(1),
	} {
		t.Run(name, func(t *testing.T) {
			m := startMerge(t, id(1))
			m.log(2, end)
			m.yields(recorded(2, end))
			m.delta(delta(1, 1, "too late"))
			m.log(3, event.UserMessage{Content: "next"})
			m.yields(recorded(3, event.UserMessage{Content: "next"}))
			m.delta(delta(2, 2, "in time"))
			m.yields(live(delta(2, 2, "in time")))
			m.end()
		})
	}
}

func TestDeltasOfAnAnsweredAttemptAreDropped(t *testing.T) {
	m := startMerge(t, id(1))
	for n, body := range []event.Body{started(1, 1), event.AssistantMessage{RequestID: requestID(1), ThroughEventID: id(1)}} {
		m.log(2+n, body)
		m.yields(recorded(2+n, body))
	}
	m.delta(delta(1, 1, "too late"))
	second := delta(1, 1, "in time")
	second.Attempt = 2
	m.delta(second)
	m.yields(live(second))
	m.end()
}

func TestTheProgressOfAToolIsYieldedUntilItsRequestEnds(t *testing.T) {
	m := startMerge(t, id(1))
	progress := event.ToolProgress{RequestID: requestID(1), ToolCallID: "call_1", Text: "page 1"}
	give(t, m.deltas, stream.Delta{Progress: &progress})
	e := event.New(progress)
	e.ContextName = "demo"
	m.yields(e)
	m.log(2, completed(1))
	m.yields(recorded(2, completed(1)))
	give(t, m.deltas, stream.Delta{Progress: &progress})
	m.log(3, event.UserMessage{Content: "next"})
	m.yields(recorded(3, event.UserMessage{Content: "next"}))
	m.delta(delta(2, 2, "next"))
	m.yields(live(delta(2, 2, "next")))
	m.end()
}

func TestAHeldDeltaIsDroppedWhenItsRequestEnds(t *testing.T) {
	m := startMerge(t, id(1))
	m.delta(delta(1, 3, "too late"))
	m.log(2, completed(1))
	m.yields(recorded(2, completed(1)))
	m.log(3, event.UserMessage{Content: "next"})
	m.yields(recorded(3, event.UserMessage{Content: "next"}))
	m.delta(delta(2, 3, "Hi"))
	m.yields(live(delta(2, 3, "Hi")))
	m.end()
}

func TestDeltasForEventsBeforeTheStartAreYieldedAtOnce(t *testing.T) {
	m := startMerge(t, id(7))
	m.delta(delta(1, 7, "Hi"))
	m.yields(live(delta(1, 7, "Hi")))
	m.end()
}

func TestAnErrorOfTheLogComesLast(t *testing.T) {
	m := startMerge(t, "")
	broken := errors.New("broken")
	give(t, m.recorded, client.Entry{Err: broken})
	require.Equal(t, broken, take(t, m.errs))
	take(t, m.done)
}

func TestDeltasThatArrivedBeforeTheirAnswerAreYielded(t *testing.T) {
	question, begin := event.UserMessage{Content: "Hello"}, delta(1, 1, "")
	begin.Reset = true
	text := delta(1, 1, "Good")
	text.Index = 1
	answer := event.AssistantMessage{RequestID: requestID(1), Content: "Good", ThroughEventID: id(1)}
	for range 100 { // select chooses at random between an event and a delta
		log, deltas := make(chan client.Entry, 4), make(chan stream.Delta, 2)
		for n, body := range []event.Body{question, started(1, 1), answer, completed(1)} {
			log <- client.Entry{Event: recorded(1+n, body)}
		}
		close(log)
		deltas <- stream.Delta{TextDelta: begin}
		deltas <- stream.Delta{TextDelta: text}
		var tags []event.Tag
		for e, err := range client.Merge("demo", "", log, deltas, nil) {
			require.NoError(t, err)
			tags = append(tags, e.Tag())
		}
		require.Equal(t, []event.Tag{
			event.TagUserMessage, event.TagTextDelta, event.TagTextDelta,
			event.TagLLMRequestStarted, event.TagAssistantMessage, event.TagLLMRequestCompleted,
		}, tags)
	}
}

func TestMergeReadsNothingAfterItsReaderStops(t *testing.T) {
	log, deltas := make(chan client.Entry, 1), make(chan stream.Delta, 1)
	log <- client.Entry{Event: recorded(1, event.SessionStarted{})}
	for range client.Merge("demo", "", log, deltas, nil) {
		break
	}
	deltas <- stream.Delta{TextDelta: delta(1, 0, "Hi")}
	for range client.Merge("demo", id(1), log, deltas, nil) {
		break
	}
	require.Empty(t, log)
	require.Empty(t, deltas)
}

func TestEntriesSendsTheLog(t *testing.T) {
	broken := errors.New("broken")
	log := func(yield func(event.Event, error) bool) {
		_ = yield(recorded(1, event.SessionStarted{}), nil) && yield(event.Event{}, broken)
	}
	entries := client.Entries(t.Context(), log, 0)
	require.Equal(t, client.Entry{Event: recorded(1, event.SessionStarted{})}, take(t, entries))
	require.Equal(t, client.Entry{Err: broken}, take(t, entries))
	require.Zero(t, take(t, entries), "closed")
}

func TestEntriesEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	entries := client.Entries(ctx, func(yield func(event.Event, error) bool) {
		defer close(ended)
		for yield(recorded(1, event.SessionStarted{}), nil) {
		}
	}, 1)
	take(t, entries)
	cancel()
	take(t, ended)
}

func TestADeltaAheadOfTheLogWakesTheReaderOfTheLog(t *testing.T) {
	m := startMerge(t, "")
	ahead := event.TextDelta{RequestID: "demo:r0001", Attempt: 1, Delta: "Good", ThroughEventID: "demo:0001"}
	m.delta(ahead)
	take(t, m.wake)
	e := event.New(event.UserMessage{Content: "Hello"})
	e.ID = "demo:0001"
	give(t, m.recorded, client.Entry{Event: e})
	require.Equal(t, "demo:0001", take(t, m.out).ID)
	require.Equal(t, ahead, take(t, m.out).Body)
	ahead.Index = 1
	m.delta(ahead)
	take(t, m.out)
	require.Empty(t, m.wake, "a delta whose event has been read wakes nobody")
}

// A stranger who may publish cannot disturb an answer with deltas of another request or attempt.
func TestForgedDeltasAreIgnored(t *testing.T) {
	m := startMerge(t, "")
	forged := func(request, attempt, through int) {
		d := delta(request, through, "forged")
		d.Attempt = attempt
		m.delta(d)
	}
	for n, body := range []event.Body{
		event.UserMessage{Content: "Hello"}, started(1, 1), event.AssistantMessage{RequestID: requestID(1)}, completed(1),
	} {
		m.log(1+n, body)
		m.yields(recorded(1+n, body))
	}
	for range 1000 { // nobody has asked anything
		forged(2, 7, 1)
		forged(900, 1, 1)
		forged(2, 1, 900)
	}
	m.log(5, event.UserMessage{Content: "next"})
	m.yields(recorded(5, event.UserMessage{Content: "next"}))
	forged(1, 9, 1)
	forged(3, 1, 5)
	forged(2, 900, 5)
	m.delta(delta(2, 5, "Hi"))
	m.yields(live(delta(2, 5, "Hi")))
	m.log(6, started(2, 5))
	m.yields(recorded(6, started(2, 5)))
	m.end()
}
