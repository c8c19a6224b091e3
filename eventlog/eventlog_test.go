package eventlog_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/eventlog"
	"github.com/seed-9ed7edd4/chronicle/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/eventlog/blobs/blobstest"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

func payloads(t testing.TB, value any) *commonpb.Payloads {
	t.Helper()
	raw, err := wire.JSON(value)
	require.NoError(t, err)
	return &commonpb.Payloads{Payloads: []*commonpb.Payload{raw.Payload()}}
}

func marker(name string, details map[string]*commonpb.Payloads) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{
		EventId:   5,
		EventType: enumspb.EVENT_TYPE_MARKER_RECORDED,
		Attributes: &historypb.HistoryEvent_MarkerRecordedEventAttributes{
			MarkerRecordedEventAttributes: &historypb.MarkerRecordedEventAttributes{MarkerName: name, Details: details},
		},
	}
}

// record returns a marker with events numbered from first on.
func record(t testing.TB, first int, bodies ...event.Body) *historypb.HistoryEvent {
	t.Helper()
	var r wire.Record
	for i, body := range bodies {
		e := event.New(body)
		e.ID, e.ContextName = event.FormatID("demo", first+i), "demo"
		e.Timestamp = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
		r.Events = append(r.Events, e)
	}
	return marker(wire.MarkerName, map[string]*commonpb.Payloads{wire.MarkerData: payloads(t, r)})
}

func says(texts ...string) (bodies []event.Body) {
	for _, text := range texts {
		bodies = append(bodies, event.UserMessage{Content: text})
	}
	return bodies
}

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

// server is a Temporal client with runs of the context demo, oldest first. It panics on
// unexpected requests.
type server struct {
	client.Client
	t    testing.TB
	runs []*run
	// read counts the pages that were read by run, and entries their entries.
	read    map[string]int
	entries int
	// fail is called before each page is read.
	fail func(runID string) error
	// tokens are the valid page tokens, and given counts those created.
	tokens map[string]token
	given  int
	// isRaw sends encoded histories.
	isRaw bool
}

type run struct {
	id      string
	history []*historypb.HistoryEvent
	// isDeleted is set after the retention period.
	isDeleted bool
	// onEnd is called when a follower reaches the end of the run.
	onEnd func()
}

// token is the start of a page, and the end of the history for its reader. afterFullPage
// means that the database may have more rows.
type token struct {
	runID         string
	next, end     int
	afterFullPage bool
}

var epoch = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)

func newServer(t testing.TB, runs ...*run) *server {
	return &server{t: t, runs: runs, read: map[string]int{}, tokens: map[string]token{}}
}

// newRun returns a run that continues another one, or "".
func newRun(id, continued string, records ...*historypb.HistoryEvent) *run {
	started := &historypb.HistoryEvent{
		EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
		Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
			WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{ContinuedExecutionRunId: continued},
		},
	}
	return &run{id: id, history: append([]*historypb.HistoryEvent{started}, records...)}
}

// find returns a run; "" is the newest.
func (s *server) find(runID string) *run {
	for _, r := range slices.Backward(s.runs) {
		if !r.isDeleted && (runID == "" || r.id == runID) {
			return r
		}
	}
	return nil
}

func (s *server) DescribeWorkflowExecution(_ context.Context, workflowID, runID string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	require.Equal(s.t, "context:demo", workflowID)
	r := s.find(runID)
	if r == nil {
		return nil, serviceerror.NewNotFound("no such workflow")
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{RunId: r.id}, HistoryLength: int64(len(r.history)),
	}}, nil
}

func (s *server) WorkflowService() workflowservice.WorkflowServiceClient { return service{server: s} }

type service struct {
	workflowservice.WorkflowServiceClient
	server *server
}

func (s service) GetWorkflowExecutionHistory(_ context.Context, request *workflowservice.GetWorkflowExecutionHistoryRequest, _ ...grpc.CallOption) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
	return s.server.page(request)
}

// page returns pages and tokens like a Temporal server: the first page determines the end
// of the history. A long poll at that end determines it anew, and tells whether the run
// is closed. A full page has a next page, which is empty if the history ends with the full
// one.
func (s *server) page(request *workflowservice.GetWorkflowExecutionHistoryRequest) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
	require.Equal(s.t, "default", request.GetNamespace())
	require.Equal(s.t, "context:demo", request.GetExecution().GetWorkflowId())
	runID := request.GetExecution().GetRunId()
	s.read[runID]++
	if s.read[runID] > 1000 {
		panic("run " + runID + " is read again and again")
	}
	if s.fail != nil {
		if err := s.fail(runID); err != nil {
			return nil, err
		}
	}
	r := s.find(runID)
	if r == nil {
		return nil, serviceerror.NewNotFound("no such run")
	}
	at := token{runID: runID, end: len(r.history)}
	if name := string(request.GetNextPageToken()); name != "" {
		var ok bool
		if at, ok = s.tokens[name]; !ok || at.runID != runID {
			return nil, serviceerror.NewInvalidArgument("invalid NextPageToken")
		}
	}
	if at.next == at.end && !at.afterFullPage && request.GetWaitNewEvent() {
		if at.end = len(r.history); at.next == at.end {
			if r.onEnd != nil {
				r.onEnd()
				r.onEnd = nil
			}
			if at.end = len(r.history); at.next == at.end {
				return &workflowservice.GetWorkflowExecutionHistoryResponse{}, nil
			}
		}
	}
	response := &workflowservice.GetWorkflowExecutionHistoryResponse{History: &historypb.History{}}
	size := request.GetMaximumPageSize()
	for ; size > 0 && at.next < at.end; size-- {
		entry := r.history[at.next]
		at.next++
		entry.EventId = int64(at.next)
		response.History.Events = append(response.History.Events, entry)
		s.entries++
	}
	if s.isRaw {
		response.RawHistory, response.History = raw(s.t, response.History), nil
	}
	if at.afterFullPage = size == 0; at.next == at.end && !at.afterFullPage && !request.GetWaitNewEvent() {
		return response, nil
	}
	s.given++
	name := fmt.Sprint("token ", s.given)
	s.tokens[name] = at
	response.NextPageToken = []byte(name)
	return response, nil
}

// format returns a log on one line: counters and texts.
func format(t testing.TB, events iter.Seq2[event.Event, error]) string {
	t.Helper()
	var lines []string
	for e, err := range events {
		require.NoError(t, err)
		lines = append(lines, line(e))
	}
	return strings.Join(lines, " ")
}

func line(e event.Event) string {
	switch body := e.Body.(type) {
	case event.UserMessage:
		return fmt.Sprintf("%d:%s", event.Counter(e.ID), body.Content)
	default:
		return fmt.Sprintf("%d:(%s)", event.Counter(e.ID), strings.TrimSuffix(string(e.Tag()), "Event"))
	}
}

// session returns the start of a session after another.
func session(previous string) event.Body { return event.SessionStarted{PreviousRunID: previous} }

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
		require.EqualError(t, err, "look for context demo: no such context: no such workflow")
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

// followed formats the first n events of a follower.
func followed(t testing.TB, log *eventlog.Log, from string, n int) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var lines []string
	for e, err := range log.Follow(ctx, "demo", from, nil) {
		require.NoError(t, err)
		if lines = append(lines, line(e)); len(lines) == n {
			break
		}
	}
	return strings.Join(lines, " ")
}

func TestFollowContinuesAcrossRuns(t *testing.T) {
	s := newServer(t, newRun("A", "", record(t, 1, says("a", "b")...)))
	s.runs[0].onEnd = func() {
		s.runs = append(s.runs, newRun("B", "A", record(t, 3, says("c")...)))
		s.runs[1].onEnd = func() {
			s.runs = append(s.runs, newRun("C", "", record(t, 4, session("B")), record(t, 5, says("d")...)))
		}
	}
	require.Equal(t, "1:a 2:b 3:c 4:(SessionStarted) 5:d", followed(t, eventlog.New(s, "", nil), "", 5))
}

func TestFollowStartsAfterAnEvent(t *testing.T) {
	s := newServer(t, newRun("A", "", record(t, 1, says("a", "b")...)))
	s.runs[0].onEnd = func() { s.runs = append(s.runs, newRun("B", "A", record(t, 3, says("c")...))) }
	require.Equal(t, "2:b 3:c", followed(t, eventlog.New(s, "", nil), "demo:0001", 2))
}

func TestFollowYieldsEachEventOnceDespiteOutages(t *testing.T) {
	s := newServer(t, newRun("A", "", record(t, 1, says("a")...), record(t, 2, says("b")...)))
	failures := []error{
		serviceerror.NewUnavailable("refused"), nil, serviceerror.NewDeadlineExceeded("slow"),
		nil, serviceerror.NewResourceExhausted(enumspb.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT, "busy"),
		serviceerror.FromStatus(status.New(codes.Unknown, "interrupted (9)")),
	}
	s.fail = func(string) (err error) {
		if len(failures) > 0 {
			err, failures = failures[0], failures[1:]
		}
		return err
	}
	require.Equal(t, "1:a 2:b", followed(t, eventlog.New(s, "", nil), "", 2))
	require.Empty(t, failures)
}

// restarting is a server whose first requests for the current run have errors.
type restarting struct {
	*server
	errs []error
}

func (s *restarting) DescribeWorkflowExecution(ctx context.Context, workflowID, runID string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	if len(s.errs) > 0 {
		err := s.errs[0]
		if s.errs = s.errs[1:]; err != nil {
			return nil, err
		}
	}
	return s.server.DescribeWorkflowExecution(ctx, workflowID, runID)
}

func TestFollowWaitsForTheNamespaceOfARestartedServer(t *testing.T) {
	unknown := serviceerror.NewNamespaceNotFound("default")
	interrupted := serviceerror.FromStatus(status.New(codes.Unknown, "interrupted (9)"))
	s := &restarting{newServer(t, newRun("A", "", record(t, 1, says("a")...))), []error{nil, unknown, interrupted, unknown}}
	s.runs[0].onEnd = func() { s.runs = append(s.runs, newRun("B", "A", record(t, 2, says("b")...))) }
	require.Equal(t, "1:a 2:b", followed(t, eventlog.New(s, "", nil), "", 2))
	require.Empty(t, s.errs)

	s.errs = []error{unknown}
	for _, err := range eventlog.New(s, "", nil).Follow(t.Context(), "demo", "", nil) {
		require.ErrorIs(t, err, unknown, "a namespace that never existed")
	}
}

func TestFollowEndsWithAPermanentError(t *testing.T) {
	s := newServer(t, newRun("A", "", record(t, 1, says("a")...)))
	denied := serviceerror.NewPermissionDenied("not yours", "")
	s.fail = func(string) error { return denied }
	n := 0
	for _, err := range eventlog.New(s, "", nil).Follow(t.Context(), "demo", "", nil) {
		n++
		require.ErrorIs(t, err, denied)
	}
	require.Equal(t, 1, n)
}

func TestFollowWaitsForAContextAndEndsWithItsCtx(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := &late{server: newServer(t, newRun("A", "", record(t, 1, says("a")...)))}
	var lines []string
	for e, err := range eventlog.New(s, "", nil).Follow(ctx, "demo", "", nil) {
		require.NoError(t, err)
		lines = append(lines, line(e))
		cancel()
	}
	require.Equal(t, []string{"1:a"}, lines)
}

func TestAMissingContextIsPolledEachSecondAndOnWake(t *testing.T) {
	for name, hasArchive := range map[string]bool{"with an archive": true, "without an archive": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &absent{server: newServer(t, newRun("A", "", record(t, 1, says("a")...)))}
				var logs *archive.Archive
				if hasArchive {
					logs = archive.New(blobstest.New(t).Store)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				wake, began := make(chan struct{}, 1), time.Now()
				go func() {
					time.Sleep(10500 * time.Millisecond) // in the time of the bubble
					if hasArchive {
						register(t, logs, "demo", "A", "", 0)
					}
					s.isThere.Store(true)
					wake <- struct{}{}
				}()
				for _, err := range eventlog.New(s, "", logs).Follow(ctx, "demo", "", wake) {
					require.NoError(t, err)
					cancel()
				}
				require.Equal(t, 10500*time.Millisecond, time.Since(began), "woken")
				require.Equal(t, int32(12), s.asked.Load(), "polled each second, and when woken")
			})
		})
	}
}

// absent is a server on which the context does not exist until the test creates it.
type absent struct {
	*server
	isThere atomic.Bool
	asked   atomic.Int32
}

func (s *absent) DescribeWorkflowExecution(ctx context.Context, workflowID, runID string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	s.asked.Add(1)
	if !s.isThere.Load() {
		return nil, serviceerror.NewNotFound("not yet")
	}
	return s.server.DescribeWorkflowExecution(ctx, workflowID, runID)
}

// late is a server on which the context does not exist at first.
type late struct {
	*server
	asked bool
}

func (s *late) DescribeWorkflowExecution(ctx context.Context, workflowID, runID string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	if !s.asked {
		s.asked = true
		return nil, serviceerror.NewNotFound("not yet")
	}
	return s.server.DescribeWorkflowExecution(ctx, workflowID, runID)
}
