package eventlog_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"testing"
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
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
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

// server is a Temporal client with runs of the context demo, oldest first. It panics on
// unexpected requests.
type server struct {
	client.Client
	t    testing.TB
	runs []*run
	// read counts the pages read of each run, and entries their history entries.
	read    map[string]int
	entries int
	// fail is called before each page is read.
	fail func(runID string) error
	// tokens are the valid page tokens, and given counts those created.
	tokens map[string]token
	given  int
	// deletion is the status of that of the context; 0: there is none.
	deletion enumspb.WorkflowExecutionStatus
	// isRaw sends encoded histories.
	isRaw bool
}

type run struct {
	id      string
	history []*historypb.HistoryEvent
	status  enumspb.WorkflowExecutionStatus
	// startedAt is zero where the order of starts does not matter.
	startedAt time.Time
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
	if workflowID == "delete:demo" {
		return s.describeDeletion()
	}
	require.Equal(s.t, "context:demo", workflowID)
	if strings.Contains(runID, " ") {
		return nil, serviceerror.NewInvalidArgument("Invalid RunId.")
	}
	r := s.find(runID)
	if r == nil {
		return nil, serviceerror.NewNotFound("no such workflow")
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{RunId: r.id}, HistoryLength: int64(len(r.history)), Status: r.status,
		StartTime: timestamppb.New(r.startedAt),
	}}, nil
}

func (s *server) describeDeletion() (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	if s.deletion == 0 {
		return nil, serviceerror.NewNotFound("no such workflow")
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Status: s.deletion}}, nil
}

func (s *server) WorkflowService() workflowservice.WorkflowServiceClient { return service{server: s} }

type service struct {
	workflowservice.WorkflowServiceClient
	server *server
}

func (s service) GetWorkflowExecutionHistory(_ context.Context, request *workflowservice.GetWorkflowExecutionHistoryRequest, _ ...grpc.CallOption) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
	return s.server.page(request)
}

// GetWorkflowExecutionHistoryReverse returns pages whose tokens are the number of entries before them.
func (s service) GetWorkflowExecutionHistoryReverse(_ context.Context, request *workflowservice.GetWorkflowExecutionHistoryReverseRequest, _ ...grpc.CallOption) (*workflowservice.GetWorkflowExecutionHistoryReverseResponse, error) {
	r := s.server.find("")
	if r == nil {
		return nil, serviceerror.NewNotFound("no such workflow")
	}
	response := &workflowservice.GetWorkflowExecutionHistoryReverseResponse{History: &historypb.History{}}
	end := len(r.history)
	if token := string(request.GetNextPageToken()); token != "" {
		end, _ = strconv.Atoi(token)
	}
	start := max(0, end-int(request.GetMaximumPageSize()))
	response.History.Events = slices.Clone(r.history[start:end])
	slices.Reverse(response.History.Events)
	if start > 0 {
		response.NextPageToken = []byte(strconv.Itoa(start))
	}
	return response, nil
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
			if onEnd := r.onEnd; onEnd != nil {
				r.onEnd = nil
				onEnd()
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

// followed formats the first n events of a follower.
func followed(t testing.TB, log *eventlog.Log, from string, n int) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var lines []string
	for e, err := range log.Follow(ctx, "demo", from, eventlog.FollowOptions{}) {
		require.NoError(t, err)
		if lines = append(lines, line(e)); len(lines) == n {
			break
		}
	}
	return strings.Join(lines, " ")
}
