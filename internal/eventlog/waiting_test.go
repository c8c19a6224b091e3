package eventlog_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
	"github.com/seed-9ed7edd4/chronicle/internal/references"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
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
		for _, e := range w.Input(t.Context()) {
			content := "note"
			if message, ok := e.Body.(event.UserMessage); ok {
				content = message.Content[:min(len(message.Content), 10)]
			}
			text += fmt.Sprintf(" %s@%v", content, e.Timestamp.Sub(epoch))
		}
	}
	return strings.TrimSpace(text)
}

// awaits is the waiting work of a history at its end.
func awaits(t testing.TB, log *eventlog.Log, s *server, from string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
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
		"the run was terminated":                 {[]*historypb.HistoryEvent{said(t, "a", 1), scheduled(2), terminated()}, "a@1s"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, newRun("A", "", test.history...))
			require.Equal(t, test.want, awaits(t, eventlog.New(s, "", nil), s, ""))
			require.Equal(t, test.want, endsWith(t, eventlog.New(s, "", nil), ""))
		})
	}
}

// stored is a message in the blob store.
func stored(t testing.TB, store *blobs.Store, text string, seconds int) *historypb.HistoryEvent {
	t.Helper()
	driver := eventlog.ExternalStorage(store).Drivers[0]
	h := said(t, text, seconds)
	input := h.GetWorkflowExecutionSignaledEventAttributes().GetInput()
	data, err := proto.Marshal(input.GetPayloads()[0])
	require.NoError(t, err)
	ref, err := archive.New(store).Blobs("demo").Put(t.Context(), data)
	require.NoError(t, err)
	id, err := store.Identity(t.Context())
	require.NoError(t, err)
	input.Payloads[0] = reference(t, &sdkpb.ExternalStorageReference{DriverName: driver.Name(), ClaimData: map[string]string{"ref": string(ref), "store": id, "folder": archive.BlobFolder("demo")}})
	return h
}

func reference(t testing.TB, r *sdkpb.ExternalStorageReference) *commonpb.Payload {
	t.Helper()
	data, err := protojson.Marshal(r)
	require.NoError(t, err)
	return references.Active(data)
}

func bogus(t testing.TB, seconds int) *historypb.HistoryEvent {
	h := said(t, "", seconds)
	h.GetWorkflowExecutionSignaledEventAttributes().Input.Payloads[0] = reference(t, &sdkpb.ExternalStorageReference{DriverName: "other"})
	return h
}

func loadScheduled() *historypb.HistoryEvent {
	return &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
		ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{ActivityType: &commonpb.ActivityType{Name: wire.ActivityLoad}},
	}}
}

func loadEnded(scheduled int64) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{
		ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{ScheduledEventId: scheduled},
	}}
}

func loadFailed(scheduled int64) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_ActivityTaskFailedEventAttributes{
		ActivityTaskFailedEventAttributes: &historypb.ActivityTaskFailedEventAttributes{ScheduledEventId: scheduled},
	}}
}

// withStore returns a run, and its log with a blob store.
func withStore(t *testing.T, bucket *blobstest.Bucket, history ...*historypb.HistoryEvent) (*eventlog.Log, *server) {
	a := archive.New(bucket.Store)
	register(t, a, "demo", "A", "", 0)
	s := newServer(t, newRun("A", "", history...))
	return eventlog.New(s, "", a), s
}

// The Temporal client of a worker, which a client may share, makes references in signals inert.
func TestInputInTheBlobStoreIsReadThroughTheConnectionOfAWorker(t *testing.T) {
	bucket := blobstest.New(t)
	history := &historypb.History{Events: []*historypb.HistoryEvent{record(t, 1, says("a")...), stored(t, bucket.Store, "large", 1), said(t, "b", 2), scheduled(3)}}
	require.NoError(t, references.MakeInert(t.Context(), history))
	log, s := withStore(t, bucket, history.Events...)
	require.Equal(t, "since 3s: large@1s b@2s", awaits(t, log, s, ""))
}

func TestInputInTheBlobStoreWaitsUntilARunHasLoadedIt(t *testing.T) {
	bucket := blobstest.New(t)
	// Entry 1 starts the run, and entry 2 is an event.
	begin := []*historypb.HistoryEvent{record(t, 1, says("a")...), stored(t, bucket.Store, "large", 1), said(t, "b", 2), scheduled(3), completed(6), loadScheduled()}
	for name, test := range map[string]struct {
		history []*historypb.HistoryEvent // from entry 8 on
		want    string
	}{
		"it is being loaded":          {nil, "large@1s b@2s"},
		"another task ends":           {[]*historypb.HistoryEvent{scheduled(4), completed(9)}, "large@1s b@2s"},
		"it is loaded":                {[]*historypb.HistoryEvent{loadEnded(7), scheduled(4)}, "since 4s: large@1s b@2s"},
		"it is processed":             {[]*historypb.HistoryEvent{loadEnded(7), scheduled(4), completed(10)}, "nothing"},
		"it is rejected":              {[]*historypb.HistoryEvent{loadFailed(7), scheduled(4), completed(10)}, "nothing"},
		"the task began before":       {[]*historypb.HistoryEvent{scheduled(4), loadEnded(7), completed(9)}, "large@1s b@2s"},
		"another activity ends":       {[]*historypb.HistoryEvent{loadEnded(6), scheduled(4), completed(10)}, "large@1s b@2s"},
		"another large one is behind": {[]*historypb.HistoryEvent{stored(t, bucket.Store, "two", 4), said(t, "c", 5), loadEnded(7), scheduled(4), completed(12)}, "two@4s c@5s"},
		"the run is terminated":       {[]*historypb.HistoryEvent{terminated()}, "large@1s b@2s"},
	} {
		t.Run(name, func(t *testing.T) {
			log, s := withStore(t, bucket, append(slices.Clone(begin), test.history...)...)
			require.Equal(t, test.want, awaits(t, log, s, ""))
		})
	}
}

func TestUnreadableInputIsANote(t *testing.T) {
	bucket := blobstest.New(t)
	history := []*historypb.HistoryEvent{said(t, "a", 1), bogus(t, 2), said(t, "b", 3)}
	log, s := withStore(t, bucket, history...)
	require.Equal(t, "a@1s note@2s b@3s", awaits(t, log, s, ""))
	s = newServer(t, newRun("A", "", history...))
	require.Equal(t, "a@1s note@2s b@3s", awaits(t, eventlog.New(s, "", nil), s, ""), "without a store")
}

func TestWaitingInputIsBounded(t *testing.T) {
	bucket := blobstest.New(t)
	large := func(text string, kib, seconds int) *historypb.HistoryEvent {
		return stored(t, bucket.Store, text+strings.Repeat(".", kib<<10), seconds)
	}
	log, s := withStore(t, bucket, large("a", 300, 1), large("b", 2000, 2), large("c", 600, 3), said(t, "d", 4))
	require.Equal(t, "a.........@1s note@2s c.........@3s d@4s", awaits(t, log, s, ""), "the newest bytes")

	log, s = withStore(t, bucket, said(t, "a"+strings.Repeat(".", 600<<10), 1), said(t, "b"+strings.Repeat(".", 600<<10), 2), said(t, "c", 3))
	require.Equal(t, "b.........@2s c@3s", awaits(t, log, s, ""), "the newest bytes in the history")

	many := make([]event.Event, 1000)
	for i := range many {
		many[i] = event.New(event.UserMessage{Content: fmt.Sprint("n", i)})
	}
	log, s = withStore(t, bucket, said(t, "a", 1), signaled(t, wire.SignalEvent, many, 2), said(t, "b", 3))
	events := strings.Fields(awaits(t, log, s, ""))
	require.Len(t, events, eventlog.MaxWaiting)
	require.Equal(t, []string{"n901@2s", "b@3s"}, []string{events[0], events[len(events)-1]})
}

func TestStoredInputIsReadOnce(t *testing.T) {
	bucket := blobstest.New(t)
	log, s := withStore(t, bucket, stored(t, bucket.Store, "a", 1))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a := s.runs[0]
	a.onEnd = func() { a.history = append(a.history, said(t, "b", 2)); a.onEnd = cancel }
	var seen []string
	var reads []int
	for _, err := range log.Follow(ctx, "demo", "", eventlog.FollowOptions{Waiting: func(w eventlog.Waiting) {
		before := bucket.Reads()
		seen = append(seen, describe(t, w), describe(t, w))
		reads = append(reads, bucket.Reads()-before)
	}}) {
		require.NoError(t, err)
	}
	require.Equal(t, []string{"a@1s", "a@1s", "a@1s b@2s", "a@1s b@2s"}, seen)
	require.Zero(t, reads[1])
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
