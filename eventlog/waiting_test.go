package eventlog_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/eventlog"
	"github.com/seed-9ed7edd4/chronicle/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/eventlog/blobs/blobstest"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

func signaled(t testing.TB, name string, value any, seconds int) *historypb.HistoryEvent {
	return at(seconds, &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{
		WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{SignalName: name, Input: payloads(t, value)},
	}})
}

func said(t testing.TB, text string, seconds int) *historypb.HistoryEvent {
	return signaled(t, wire.SignalEvent, event.New(event.UserMessage{Content: text}), seconds)
}

func scheduled(seconds int) *historypb.HistoryEvent {
	return at(seconds, &historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED, Attributes: &historypb.HistoryEvent_WorkflowTaskScheduledEventAttributes{
		WorkflowTaskScheduledEventAttributes: &historypb.WorkflowTaskScheduledEventAttributes{},
	}})
}

// completed is the end of a workflow task that began with an entry.
func completed(started int64) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowTaskCompletedEventAttributes{
		WorkflowTaskCompletedEventAttributes: &historypb.WorkflowTaskCompletedEventAttributes{StartedEventId: started},
	}}
}

func terminated() *historypb.HistoryEvent {
	return &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionTerminatedEventAttributes{
		WorkflowExecutionTerminatedEventAttributes: &historypb.WorkflowExecutionTerminatedEventAttributes{},
	}}
}

func at(seconds int, h *historypb.HistoryEvent) *historypb.HistoryEvent {
	h.EventTime = timestamppb.New(epoch.Add(time.Duration(seconds) * time.Second))
	return h
}

// describe returns the waiting work as "since 3s: Hello@2s".
func describe(t testing.TB, w eventlog.Waiting) string {
	t.Helper()
	if w.IsZero() {
		return "nothing"
	}
	text := ""
	if !w.Since.IsZero() {
		text = fmt.Sprint("since ", w.Since.Sub(epoch), ":")
	}
	if w.Input != nil {
		events, err := w.Input(t.Context())
		require.NoError(t, err)
		for _, e := range events {
			text += fmt.Sprintf(" %s@%v", e.Body.(event.UserMessage).Content, e.Timestamp.Sub(epoch))
		}
	}
	return strings.TrimSpace(text)
}

// awaits is the waiting work of a history at its end.
func awaits(t testing.TB, log *eventlog.Log, s *server, from string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	seen := "not reported"
	s.runs[len(s.runs)-1].onEnd = cancel
	for _, err := range log.Follow(ctx, "demo", from, eventlog.FollowOptions{Waiting: func(w eventlog.Waiting) { seen = describe(t, w) }}) {
		require.NoError(t, err)
	}
	return seen
}

// endsWith is the waiting work that reading a log once reports.
func endsWith(t testing.TB, log *eventlog.Log, from string) string {
	t.Helper()
	seen := "not reported"
	for _, err := range log.EventsAndWaiting(t.Context(), "demo", from, func(w eventlog.Waiting) { seen = describe(t, w) }) {
		require.NoError(t, err)
	}
	return seen
}

func TestReadingReportsTheInputOfARunThatHasNotRegistered(t *testing.T) {
	s := newServer(t, newRun("A", "", said(t, "a", 1), scheduled(2)))
	require.Equal(t, "since 2s: a@1s", endsWith(t, eventlog.New(s, "", archive.New(blobstest.New(t).Store)), ""))
	a, _ := archived(t)
	s = threeRuns(t)
	s.runs = append(s.runs, newRun("D", "", said(t, "b", 1), scheduled(2)))
	require.Equal(t, "since 2s: b@1s", endsWith(t, eventlog.New(s, "", a), ""))
}

func TestTheWorkThatNoWorkerHasDoneIsReported(t *testing.T) {
	recorded := func(first int) *historypb.HistoryEvent { return record(t, first, says("a")...) }
	for name, test := range map[string]struct {
		history []*historypb.HistoryEvent // after the start of the run, which is entry 1
		want    string
	}{
		"no event is recorded":                   {[]*historypb.HistoryEvent{said(t, "a", 1), scheduled(2)}, "since 2s: a@1s"},
		"two inputs, one without an event":       {[]*historypb.HistoryEvent{scheduled(1), said(t, "a", 1), signaled(t, wire.SignalEvent, "x", 2), said(t, "b", 3)}, "since 1s: a@1s b@3s"},
		"other signals are no input":             {[]*historypb.HistoryEvent{signaled(t, wire.SignalInterrupt, nil, 1), scheduled(2)}, "since 2s:"},
		"the session is being restored":          {[]*historypb.HistoryEvent{said(t, "a", 1), scheduled(1), completed(4)}, "a@1s"},
		"it is recorded":                         {[]*historypb.HistoryEvent{said(t, "a", 1), scheduled(1), completed(4), recorded(1)}, "nothing"},
		"it arrives after the start of the task": {[]*historypb.HistoryEvent{recorded(1), scheduled(1), said(t, "b", 2), completed(4), scheduled(3)}, "since 3s: b@2s"},
		"a duplicate, which is not recorded":     {[]*historypb.HistoryEvent{recorded(1), said(t, "a", 1), scheduled(1), completed(5)}, "nothing"},
		"the worker died":                        {[]*historypb.HistoryEvent{recorded(1), completed(2), scheduled(7)}, "since 7s:"},
		"the task timed out and was repeated":    {[]*historypb.HistoryEvent{recorded(1), scheduled(7), scheduled(17)}, "since 7s:"},
		"the run was terminated":                 {[]*historypb.HistoryEvent{said(t, "a", 1), scheduled(2), terminated()}, "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, newRun("A", "", test.history...))
			require.Equal(t, test.want, awaits(t, eventlog.New(s, "", nil), s, ""))
			require.Equal(t, test.want, endsWith(t, eventlog.New(s, "", nil), ""))
		})
	}
}

func TestOnlyTheNewestInputsAreKept(t *testing.T) {
	var history []*historypb.HistoryEvent
	for n := range eventlog.MaxWaiting + 1 {
		history = append(history, said(t, fmt.Sprint("n", n), 1))
	}
	s := newServer(t, newRun("A", "", history...))
	inputs := strings.Fields(awaits(t, eventlog.New(s, "", nil), s, ""))
	require.Len(t, inputs, eventlog.MaxWaiting)
	require.Equal(t, "n1@1s", inputs[0])
}

func TestARunThatContinuesAnotherProcessesItsInputInTheFirstTask(t *testing.T) {
	s := newServer(t, newRun("A", "", record(t, 1, says("a")...)), newRun("B", "A", said(t, "a", 1), scheduled(1), completed(4)))
	require.Equal(t, "nothing", awaits(t, eventlog.New(s, "", nil), s, ""))
}

func TestWorkIsReportedUntilItIsDone(t *testing.T) {
	s := newServer(t, newRun("A", "", record(t, 1, says("a")...), said(t, "b", 1), scheduled(1)))
	a := s.runs[0]
	a.onEnd = func() { a.history = append(a.history, completed(4), record(t, 2, says("b")...)) }
	var seen []string
	for e, err := range eventlog.New(s, "", nil).Follow(t.Context(), "demo", "", eventlog.FollowOptions{
		Waiting: func(w eventlog.Waiting) { seen = append(seen, describe(t, w)) },
	}) {
		require.NoError(t, err)
		if seen = append(seen, line(e)); line(e) == "2:b" {
			a.onEnd = func() { s.runs = append(s.runs, newRun("B", "A", record(t, 3, says("c")...))) }
		}
		if line(e) == "3:c" {
			break
		}
	}
	require.Equal(t, []string{"1:a", "since 1s: b@1s", "2:b", "nothing", "3:c"}, seen)
}

// A follower that begins at a bookmark must not skip work that waits before it.
func TestNoBookmarkIsBehindWaitingInput(t *testing.T) {
	var history []*historypb.HistoryEvent
	for n := range 100 {
		history = append(history, record(t, n+1, says("a")...))
	}
	history = append(history, said(t, "b", 1), scheduled(1))
	for range 100 {
		history = append(history, signaled(t, wire.SignalInterrupt, nil, 2))
	}
	s := newServer(t, newRun("A", "", history...))
	log := eventlog.New(s, "", nil)
	for range 2 {
		require.Equal(t, "since 1s: b@1s", awaits(t, log, s, event.FormatID("demo", 100)))
		require.Equal(t, "since 1s: b@1s", endsWith(t, log, event.FormatID("demo", 100)))
	}
}
