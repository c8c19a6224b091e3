package eventlog_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

func TestDecode(t *testing.T) {
	ours := record(t, 3, says("<Hello>", "you")...)
	events, err := eventlog.Decode(ours)
	require.NoError(t, err)
	require.Len(t, events, 2)
	require.Equal(t, "demo:0003", events[0].ID)
	require.Equal(t, event.UserMessage{Content: "<Hello>"}, events[0].Body)

	data := func(p *commonpb.Payloads) map[string]*commonpb.Payloads {
		return map[string]*commonpb.Payloads{wire.MarkerData: p}
	}
	for name, foreign := range map[string]*historypb.HistoryEvent{
		"an entry that is no marker":     {EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED},
		"the marker of a local activity": marker("LocalActivity", data(payloads(t, map[string]any{"events": "no"}))),
		"the marker of a version":        marker("Version", nil),
	} {
		t.Run(name+" holds no events", func(t *testing.T) {
			events, err := eventlog.Decode(foreign)
			require.NoError(t, err)
			require.Empty(t, events)
		})
	}
	for name, broken := range map[string]*commonpb.Payloads{
		"an unknown tag":   payloads(t, map[string]any{"events": []any{map[string]any{"_tag": "Nonsense"}}}),
		"another shape":    payloads(t, "text"),
		"a missing field":  payloads(t, map[string]any{"events": []any{map[string]any{"_tag": "UserMessageEvent"}}}),
		"another encoding": {Payloads: []*commonpb.Payload{{Metadata: map[string][]byte{"encoding": []byte("binary/encrypted")}, Data: []byte{1}}}},
	} {
		t.Run(name+" is an error", func(t *testing.T) {
			_, err := eventlog.Decode(marker(wire.MarkerName, data(broken)))
			require.ErrorContains(t, err, "decode the record of history event 5")
		})
	}
}

func TestALogSpansRunsAndSessions(t *testing.T) {
	s := newServer(t,
		newRun("A", "", record(t, 1, append([]event.Body{session("")}, says("a", "b")...)...)),
		newRun("B", "", record(t, 4, session("A")), record(t, 5, says("c")...)),
		newRun("C", "B", record(t, 6, says("d", "e")...)),
	)
	log := eventlog.New(s, "", nil)
	require.Equal(t, "1:(SessionStarted) 2:a 3:b 4:(SessionStarted) 5:c 6:d 7:e", format(t, log.Events(t.Context(), "demo", "")))
	require.Equal(t, "1:(SessionStarted) 2:a 3:b 4:(SessionStarted) 5:c", format(t, log.Run(t.Context(), "demo", "B", "")))
}

func TestReadingStartsAtAnyEvent(t *testing.T) {
	for from, want := range map[int]string{
		1: "2:b 3:c 4:d 5:e", 2: "3:c 4:d 5:e", 3: "4:d 5:e", 4: "5:e", 5: "", 99: "",
	} {
		t.Run(event.FormatID("demo", from), func(t *testing.T) {
			s := newServer(t, newRun("A", "", record(t, 1, says("a", "b")...)), newRun("B", "A", record(t, 3, says("c")...), record(t, 4, says("d", "e")...)))
			require.Equal(t, want, format(t, eventlog.New(s, "", nil).Events(t.Context(), "demo", event.FormatID("demo", from))))
			require.Equal(t, from < 2, s.read["A"] > 0, "the earlier run is read only if the log includes events of it")
		})
	}
}

func TestReadersMayStopAnywhere(t *testing.T) {
	s := newServer(t, newRun("A", "", record(t, 1, says("a", "b")...)), newRun("B", "A", record(t, 3, says("c")...)))
	for n := 1; n <= 3; n++ {
		seen := 0
		for range eventlog.New(s, "", nil).Events(t.Context(), "demo", "") {
			if seen++; seen == n {
				break
			}
		}
		require.Equal(t, n, seen)
	}
}

func TestAMissingContextIsErrNoContext(t *testing.T) {
	for _, err := range eventlog.New(newServer(t), "", nil).Events(t.Context(), "demo", "") {
		require.ErrorIs(t, err, eventlog.ErrNoContext)
		require.EqualError(t, err, "look for context demo: no such context")
	}
}

func TestALogWithoutAnArchiveStartsAfterTheRetention(t *testing.T) {
	old := newRun("A", "", record(t, 1, says("a")...))
	old.isDeleted = true
	s := newServer(t, old, newRun("B", "", record(t, 2, session("A")), record(t, 3, says("b")...)))
	require.Equal(t, "2:(SessionStarted) 3:b", format(t, eventlog.New(s, "", nil).Events(t.Context(), "demo", "")))
}

func TestARunWithoutEventsIsSkipped(t *testing.T) {
	s := newServer(t,
		newRun("A", "", record(t, 1, says("a")...)),
		newRun("B", ""), // terminated before its first task
		newRun("C", "", record(t, 2, session("A")), record(t, 3, says("b")...)),
	)
	log := eventlog.New(s, "", nil)
	require.Equal(t, "1:a 2:(SessionStarted) 3:b", format(t, log.Events(t.Context(), "demo", "")))
}

func TestAnInvalidRecordIsAnErrorAfterEarlierEvents(t *testing.T) {
	broken := marker(wire.MarkerName, map[string]*commonpb.Payloads{wire.MarkerData: payloads(t, "text")})
	s := newServer(t, newRun("A", "", record(t, 1, says("a")...), broken))
	var seen []string
	var last error
	for e, err := range eventlog.New(s, "", nil).Events(t.Context(), "demo", "") {
		if last = err; err == nil {
			seen = append(seen, line(e))
		}
	}
	require.Equal(t, []string{"1:a"}, seen)
	require.ErrorContains(t, last, "read the log of context demo, run A: decode the record of history event 3")
}
