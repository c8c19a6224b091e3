package eventlog_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	updatepb "go.temporal.io/api/update/v1"
	"go.temporal.io/sdk/converter"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// cutOff returns a terminated run. Original is the run of which a reset made a copy, or its id.
func cutOff(t testing.TB, id, original, continued, previous string, entries ...*historypb.HistoryEvent) *run {
	t.Helper()
	r := newRun(id, continued, entries...)
	r.status = enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED
	started := r.history[0].GetWorkflowExecutionStartedEventAttributes()
	started.OriginalExecutionRunId = original
	memo, err := converter.GetDefaultDataConverter().ToPayload(previous)
	require.NoError(t, err)
	started.Memo = &commonpb.Memo{Fields: map[string]*commonpb.Payload{wire.MemoPreviousRun: memo}}
	return r
}

func startedAt(at time.Time, r *run) *run {
	r.startedAt = at
	return r
}

// states returns a record with a position.
func states(t testing.TB, taken wire.Taken) *historypb.HistoryEvent {
	t.Helper()
	return marker(wire.MarkerName, map[string]*commonpb.Payloads{wire.MarkerData: payloads(t, wire.Record{Taken: &taken})})
}

func TestUnrecordedInputBeginsAfterWhatIsRecorded(t *testing.T) {
	own := func(n int) *historypb.HistoryEvent { return states(t, wire.Taken{Signals: n}) }
	of := func(run string, n int) *historypb.HistoryEvent { return states(t, wire.Taken{RunID: run, Signals: n}) }
	end := []event.Event{event.New(event.SessionEnded{})}
	for name, test := range map[string]struct {
		runs       []*run // before N, oldest first
		registered string // ids of those, oldest first
		named      string // by the memo of N
		log        []event.Event
		want       []wire.Taken
	}{
		"no run": {},
		"a completed run": {
			[]*run{{id: "A", status: enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED}}, "A", "A", nil, nil,
		},
		"a terminated run": {
			[]*run{cutOff(t, "A", "A", "", "", own(0), own(3), record(t, 4, says("more")...))}, "A", "A", nil, []wire.Taken{{RunID: "A", Signals: 3}},
		},
		"a run that recorded nothing": {
			[]*run{cutOff(t, "A", "A", "", "")}, "A", "", nil, []wire.Taken{{RunID: "A"}},
		},
		"unopened runs": {
			[]*run{cutOff(t, "A", "A", "", "", own(3)), cutOff(t, "B", "B", "", "A"), cutOff(t, "C", "C", "", "B")}, "A", "C", nil,
			[]wire.Taken{{RunID: "A", Signals: 3}, {RunID: "B"}, {RunID: "C"}},
		},
		"an unopened run after a completed one": {
			[]*run{{id: "A", status: enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED}, cutOff(t, "B", "B", "", "A")}, "A", "B", end,
			[]wire.Taken{{RunID: "B"}},
		},
		"an unopened continuation": {
			[]*run{cutOff(t, "A", "A", "", "", own(3)), cutOff(t, "B", "B", "A", "")}, "A", "B", nil,
			[]wire.Taken{{RunID: "A", Signals: 3}, {RunID: "B"}},
		},
		"a run that had recovered nothing": {
			[]*run{cutOff(t, "A", "A", "", "", own(3)), cutOff(t, "B", "B", "", "A"), cutOff(t, "C", "C", "", "B", record(t, 4, says("x")...))}, "AC", "C", nil,
			[]wire.Taken{{RunID: "A", Signals: 3}, {RunID: "B"}, {RunID: "C"}},
		},
		"a run that had recovered a part": {
			[]*run{cutOff(t, "A", "A", "", "", own(3)), cutOff(t, "B", "B", "", "A"), cutOff(t, "C", "C", "", "B", of("A", 5), of("B", 2))}, "AC", "C", nil,
			[]wire.Taken{{RunID: "B", Signals: 2}, {RunID: "C"}},
		},
		"two runs that had recovered a part": {
			[]*run{cutOff(t, "A", "A", "", "", own(3)), cutOff(t, "B", "B", "", "", of("A", 4)), cutOff(t, "C", "C", "", "", of("A", 5))}, "ABC", "C", nil,
			[]wire.Taken{{RunID: "A", Signals: 5}, {RunID: "B"}, {RunID: "C"}},
		},
		"a continuation that had processed a part": {
			[]*run{cutOff(t, "A", "A", "", "", own(3)), cutOff(t, "B", "B", "A", "", of("A", 4))}, "AB", "B", nil,
			[]wire.Taken{{RunID: "A", Signals: 4}, {RunID: "B"}},
		},
		"a reset": {
			[]*run{cutOff(t, "P", "P", "", "", own(1)), cutOff(t, "A", "A", "", "", own(3)), cutOff(t, "R", "A", "", "")}, "PAR", "R", nil,
			[]wire.Taken{{RunID: "P", Signals: 1}, {RunID: "R"}},
		},
		"a reset that no worker has opened": {
			[]*run{cutOff(t, "A", "A", "", "", own(3)), cutOff(t, "R", "A", "", "", own(2))}, "A", "R", nil, []wire.Taken{{RunID: "A", Signals: 3}},
		},
		"a memo that names an old run": {
			[]*run{cutOff(t, "A", "A", "", "", own(3)), cutOff(t, "B", "B", "", "", own(2))}, "AB", "A", nil, []wire.Taken{{RunID: "B", Signals: 2}},
		},
		"a memo that names no run": {
			[]*run{cutOff(t, "A", "A", "", "", own(3))}, "A", "no run", nil, []wire.Taken{{RunID: "A", Signals: 3}},
		},
		"a stranger's run that completed": {
			[]*run{cutOff(t, "A", "A", "", "", own(3)), {id: "X", status: enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED}}, "A", "X", nil,
			[]wire.Taken{{RunID: "A", Signals: 3}},
		},
		"a stranger's run with a marker": {
			[]*run{cutOff(t, "A", "A", "", "", own(3)), cutOff(t, "X", "X", "", "", marker(wire.MarkerName, map[string]*commonpb.Payloads{wire.MarkerData: payloads(t, "text")}))}, "A", "X", nil,
			[]wire.Taken{{RunID: "A", Signals: 3}, {RunID: "X"}},
		},
		"a memo that names a run before the registered one": {
			[]*run{cutOff(t, "U", "U", "", ""), startedAt(epoch.Add(time.Hour), cutOff(t, "A", "A", "", "", own(3)))}, "A", "U", nil,
			[]wire.Taken{{RunID: "A", Signals: 3}},
		},
		"a memo that names the run itself": {
			[]*run{cutOff(t, "A", "A", "", "", own(3))}, "A", "N", nil, []wire.Taken{{RunID: "A", Signals: 3}},
		},
		"a memo that names nothing": {
			[]*run{cutOff(t, "A", "A", "", "", own(3))}, "A", "X", nil, []wire.Taken{{RunID: "A", Signals: 3}, {RunID: "X"}},
		},
		"a deleted run": {
			[]*run{{id: "A", isDeleted: true}}, "A", "A", nil, []wire.Taken{{RunID: "A"}},
		},
		"a deleted run that had ended": {
			[]*run{{id: "A", isDeleted: true}}, "A", "A", end, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := archive.New(blobstest.New(t).Store)
			behind := ""
			for _, id := range strings.Split(test.registered, "") {
				register(t, a, "demo", id, behind, 0)
				behind = id
			}
			log := eventlog.New(newServer(t, append(test.runs, newRun("N", ""))...), "", a)
			o := eventlog.Opening{Run: archive.Run{ID: "N", Behind: behind}, Events: test.log}
			found, err := log.Unrecorded(t.Context(), "demo", o, test.named)
			require.NoError(t, err)
			require.Equal(t, test.want, found)
		})
	}
}

func updated(t testing.TB, id, text string, arguments ...any) *updatepb.Request {
	t.Helper()
	args := payloads(t, event.New(event.UserMessage{Content: text}))
	for _, a := range arguments {
		args.Payloads = append(args.Payloads, payloads(t, a).GetPayloads()...)
	}
	return &updatepb.Request{Meta: &updatepb.Meta{UpdateId: id}, Input: &updatepb.Input{Name: wire.UpdateAppend, Args: args}}
}

func acceptedUpdate(request *updatepb.Request) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionUpdateAcceptedEventAttributes{
		WorkflowExecutionUpdateAcceptedEventAttributes: &historypb.WorkflowExecutionUpdateAcceptedEventAttributes{AcceptedRequest: request},
	}}
}

func answered(id string) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionUpdateCompletedEventAttributes{
		WorkflowExecutionUpdateCompletedEventAttributes: &historypb.WorkflowExecutionUpdateCompletedEventAttributes{Meta: &updatepb.Meta{UpdateId: id}},
	}}
}

func TestAcceptedInputIsReadInParts(t *testing.T) {
	expired := wire.Sent{Expires: epoch}
	other := updated(t, "other", "other")
	other.Input.Name = "typo"
	r := newRun("A", "",
		said(t, "one", 1), acceptedUpdate(updated(t, "u1", "answered")), said(t, "two", 2), answered("u1"), acceptedUpdate(updated(t, "u2", "appended")),
		acceptedUpdate(updated(t, "u3", "expired", expired)), acceptedUpdate(other), signaled(t, wire.SignalClose, wire.Close{}, 3),
		acceptedUpdate(&updatepb.Request{}), said(t, "three", 4),
	)
	log := eventlog.New(newServer(t, r), "", nil)
	read := func(signals, limit int) (lines []string) {
		for isComplete := false; !isComplete; {
			var part []eventlog.Accepted
			var err error
			part, isComplete, err = log.Accepted(t.Context(), "demo", wire.Taken{RunID: "A", Signals: signals}, limit, epoch)
			require.NoError(t, err)
			for _, in := range part {
				text := in.Name + in.UpdateID
				if events, err := event.DecodeInput(in.Payloads.GetPayloads()[0].GetData()); err == nil {
					text += " " + events[0].Body.(event.UserMessage).Content
				}
				lines = append(lines, text)
				signals = in.Signals
			}
			if !isComplete {
				lines = append(lines, "/")
			}
		}
		return lines
	}
	require.Equal(t, []string{"event one", "event two", "u2 appended", "close", "event three"}, read(0, math.MaxInt))
	require.Equal(t, []string{"u2 appended", "close", "event three"}, read(2, math.MaxInt))
	require.Empty(t, read(4, math.MaxInt))
	require.Equal(t, []string{"event one", "/", "event two", "u2 appended", "/", "u2 appended", "close", "/", "event three"}, read(0, 1),
		"the client event id of an update at the end of a part makes it a duplicate")
	_, _, err := log.Accepted(t.Context(), "demo", wire.Taken{RunID: "X"}, 1, time.Time{})
	require.ErrorIs(t, err, eventlog.ErrNoContext)
}
