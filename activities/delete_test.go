package activities_test

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
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
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// cluster is a Temporal server with runs and schedules. It panics on unexpected requests.
type cluster struct {
	client.Client
	mu        sync.Mutex
	runs      []*clusterRun // oldest first
	schedules []string
	done      []string     // what was terminated and deleted
	asked     []wire.Close // of running runs
	took      time.Duration
}

type clusterRun struct {
	id, runID string
	isRunning bool
	isListed  bool
	previous  string // in its memo
	isBusy    bool
	first     string                          // run of its chain; "": itself
	age       time.Duration                   // of its start and end; 0: it has no start, and ended at the epoch
	hangs     bool                            // no worker answers
	isUnopen  bool                            // it waits for the end of the deletion
	closesAt  int                             // number of its description after a request to close; 0: it does not close
	status    enumspb.WorkflowExecutionStatus // when it has ended; 0: completed
	described int                             // after its deletion, before it is gone
	isDeleted bool
}

func (c *cluster) find(id, runID string) *clusterRun {
	for _, r := range slices.Backward(c.runs) {
		if r.id == id && (runID == "" || r.runID == runID) {
			return r
		}
	}
	return nil
}

func (c *cluster) DescribeWorkflowExecution(_ context.Context, id, runID string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.find(id, runID)
	switch {
	case runID == "no id":
		return nil, serviceerror.NewInvalidArgument("Invalid RunId.")
	case r == nil:
		return nil, serviceerror.NewNotFound("no such run")
	case r.isDeleted:
		if r.described--; r.described <= 0 {
			c.runs = slices.DeleteFunc(c.runs, func(other *clusterRun) bool { return other == r })
		}
		return nil, serviceerror.NewInvalidArgument("history not found")
	}
	if r.closesAt > 0 && len(c.asked) > 0 {
		r.closesAt--
		r.isRunning = r.closesAt > 0
	}
	info := &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: r.runID}, Memo: &commonpb.Memo{}, FirstRunId: cmp.Or(r.first, r.runID),
		Status: cmp.Or(r.status, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED), CloseTime: timestamppb.New(eventtest.Epoch),
	}
	if r.age != 0 {
		info.StartTime, info.CloseTime = timestamppb.New(time.Now().Add(-r.age)), timestamppb.New(time.Now().Add(-r.age))
	}
	if r.isRunning {
		info.Status = enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	}
	if r.previous != "" {
		payload, err := converter.GetDefaultDataConverter().ToPayload(r.previous)
		if err != nil {
			return nil, err
		}
		info.Memo.Fields = map[string]*commonpb.Payload{wire.MemoPreviousRun: payload}
	}
	response := &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: info}
	state := enumspb.PENDING_ACTIVITY_STATE_SCHEDULED
	if r.isBusy {
		state = enumspb.PENDING_ACTIVITY_STATE_STARTED
	}
	response.PendingActivities = append(response.PendingActivities, &workflowpb.PendingActivityInfo{State: state})
	return response, nil
}

func (c *cluster) SignalWorkflow(_ context.Context, id, runID, name string, in any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if run := c.find(id, runID); name != wire.SignalClose || runID == "" || !run.isRunning {
		panic(name)
	}
	c.asked = append(c.asked, in.(wire.Close))
	return nil
}

// QueryWorkflow answers after the run has processed what it was asked.
func (c *cluster) QueryWorkflow(_ context.Context, id, runID, query string, _ ...any) (converter.EncodedValue, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	run := c.find(id, runID)
	if query != wire.QueryState || len(c.asked) == 0 {
		panic(query)
	}
	if run.hangs {
		return nil, serviceerror.NewDeadlineExceeded("no worker")
	}
	state := wire.State{Status: wire.StatusWaiting}
	if run.closesAt > 0 || !run.isRunning {
		state.Status = wire.StatusClosed
	}
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(state)
	return client.NewValue(payloads), err
}

func (c *cluster) TerminateWorkflow(_ context.Context, id, runID, reason string, _ ...any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.find(id, runID).isRunning = false
	c.done = append(c.done, "terminate "+runID+": "+reason)
	return nil
}

func (c *cluster) WorkflowService() workflowservice.WorkflowServiceClient {
	return clusterService{of: c}
}

type clusterService struct {
	workflowservice.WorkflowServiceClient
	of *cluster
}

func (s clusterService) DeleteWorkflowExecution(_ context.Context, r *workflowservice.DeleteWorkflowExecutionRequest, _ ...grpc.CallOption) (*workflowservice.DeleteWorkflowExecutionResponse, error) {
	c := s.of
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.GetNamespace() == "" {
		return nil, serviceerror.NewInvalidArgument("no namespace")
	}
	run := c.find(r.GetWorkflowExecution().GetWorkflowId(), r.GetWorkflowExecution().GetRunId())
	if run.isRunning {
		panic("a running workflow")
	}
	run.isDeleted, run.isListed, run.described = true, false, 2
	c.done = append(c.done, "delete "+run.runID)
	return &workflowservice.DeleteWorkflowExecutionResponse{}, nil
}

// GetWorkflowExecutionHistory returns pages of one event of running workflows. All events of others are archived.
func (s clusterService) GetWorkflowExecutionHistory(_ context.Context, r *workflowservice.GetWorkflowExecutionHistoryRequest, _ ...grpc.CallOption) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
	c := s.of
	c.mu.Lock()
	defer c.mu.Unlock()
	run := c.find(r.GetExecution().GetWorkflowId(), r.GetExecution().GetRunId())
	switch {
	case run == nil || !run.isRunning:
		return nil, serviceerror.NewNotFound("no history")
	case run.isUnopen || r.GetNextPageToken() != nil:
		kind := enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED
		if !run.isUnopen {
			kind = enumspb.EVENT_TYPE_MARKER_RECORDED
		}
		return &workflowservice.GetWorkflowExecutionHistoryResponse{History: &historypb.History{Events: []*historypb.HistoryEvent{{EventType: kind}}}}, nil
	}
	return &workflowservice.GetWorkflowExecutionHistoryResponse{History: &historypb.History{Events: []*historypb.HistoryEvent{
		{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED}}}, NextPageToken: []byte("next")}, nil
}

func (c *cluster) ListWorkflow(_ context.Context, r *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id, isPrefix := map[string]string{
		"WorkflowId = 'context:demo'":                                                                                    "context:demo",
		"WorkflowType = 'Evaluate' AND WorkflowId STARTS_WITH 'evaluate:demo:'":                                          "evaluate:demo:",
		"WorkflowType = 'Offer' AND WorkflowId STARTS_WITH 'offer:demo:'":                                                "offer:demo:",
		"WorkflowType = 'Send' AND WorkflowId STARTS_WITH 'send:demo/'":                                                  "send:demo/",
		"TemporalNamespaceDivision = 'TemporalScheduler' AND WorkflowId STARTS_WITH 'temporal-sys-scheduler:send:demo/'": "temporal-sys-scheduler:send:demo/",
	}[r.GetQuery()]
	if !isPrefix {
		panic(r.GetQuery())
	}
	response := &workflowservice.ListWorkflowExecutionsResponse{}
	for _, run := range c.runs {
		// The visibility store of some databases ignores case.
		if run.isListed && strings.HasPrefix(strings.ToLower(run.id), id) {
			response.Executions = append(response.Executions, &workflowpb.WorkflowExecutionInfo{
				Execution: &commonpb.WorkflowExecution{WorkflowId: run.id, RunId: run.runID},
			})
		}
	}
	return response, nil
}

func (c *cluster) ScheduleClient() client.ScheduleClient { return clusterSchedules{of: c} }

type clusterSchedules struct {
	client.ScheduleClient
	of *cluster
}

func (s clusterSchedules) List(context.Context, client.ScheduleListOptions) (client.ScheduleListIterator, error) {
	return &scheduleIterator{slices.Clone(s.of.schedules)}, nil
}

type scheduleIterator struct{ ids []string }

func (i *scheduleIterator) HasNext() bool { return len(i.ids) > 0 }

func (i *scheduleIterator) Next() (*client.ScheduleListEntry, error) {
	id := i.ids[0]
	i.ids = i.ids[1:]
	return &client.ScheduleListEntry{ID: id}, nil
}

func (s clusterSchedules) GetHandle(_ context.Context, id string) client.ScheduleHandle {
	return clusterSchedule{of: s.of, id: id}
}

type clusterSchedule struct {
	client.ScheduleHandle
	of *cluster
	id string
}

func (s clusterSchedule) Delete(context.Context) error {
	s.of.schedules = slices.DeleteFunc(s.of.schedules, func(id string) bool { return id == s.id })
	return nil
}

func deleteRuns(t *testing.T, c *cluster, logs *archive.Archive) activities.DeletedRuns {
	t.Helper()
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	env.SetTestTimeout(time.Minute)
	env.RegisterActivity(activities.New(activities.Options{Temporal: c, Archive: logs}))
	value, err := env.ExecuteActivity((*activities.Activities)(nil).DeleteRuns, activities.DeleteInput{ContextName: "demo"})
	require.NoError(t, err)
	var result activities.DeletedRuns
	require.NoError(t, value.Get(&result))
	return result
}

func registered(t *testing.T, runs ...string) *archive.Archive {
	t.Helper()
	logs := archive.New(blobstest.New(t).Store)
	for i, run := range runs {
		folder, err := logs.Folder(t.Context(), "demo")
		require.NoError(t, err)
		require.NoError(t, folder.Register(t.Context(), archive.Run{ID: run, Behind: append([]string{""}, runs...)[i]}))
	}
	return logs
}

func counts(d activities.DeletedRuns) map[wire.Place]int {
	counts := map[wire.Place]int{}
	for _, r := range d.Removed {
		counts[r.Place] = r.Count
	}
	return counts
}

func TestDeleteRunsFindsRunsInRegistrationsMemosAndLists(t *testing.T) {
	c := &cluster{
		runs: []*clusterRun{
			{id: "context:demo", runID: "registered"},
			{id: "context:demo", runID: "named in a memo"},
			{id: "context:demo", runID: "listed only", isListed: true},
			{id: "context:other", runID: "other", isListed: true, isRunning: true},
			{id: "send:demo/daily-2026", runID: "message", isListed: true, isRunning: true},
			{id: "send:demo/support/daily-2026", runID: "message to a context of the tenant demo", isListed: true},
			{id: "send:demo2/daily-2026", runID: "message to another context", isListed: true},
			{id: "temporal-sys-scheduler:send:demo/daily", runID: "scheduler", isListed: true},
			{id: "evaluate:demo:1", runID: "evaluation", isListed: true},
			{id: "offer:demo:1", runID: "offer", isListed: true},
			{id: "context:demo", runID: "continuation", first: "current", isRunning: true, previous: "named in a memo"},
		},
		schedules: []string{"send:demo/daily", "send:demo/support/daily", "send:demo2/daily", "reports"},
	}
	deleted := deleteRuns(t, c, registered(t, archive.ForkID, "registered", "forgotten by the server"))
	require.Equal(t, map[wire.Place]int{
		wire.PlaceRuns: 4, wire.PlaceSchedules: 1, wire.PlaceSends: 1, wire.PlaceEvaluations: 2,
	}, counts(deleted))
	require.Equal(t, 8, deleted.Count())
	require.False(t, deleted.WasBusy)
	require.Equal(t, []string{
		"delete registered", "terminate continuation: the context is deleted", "delete continuation", "delete named in a memo", "delete listed only",
		"terminate message: the context is deleted", "delete message", "delete scheduler",
		"delete evaluation", "delete offer",
	}, c.done)
	require.Len(t, c.runs, 3, "it returns when the server has deleted the histories")
	require.Equal(t, []string{"send:demo/support/daily", "send:demo2/daily", "reports"}, c.schedules)

	require.Zero(t, deleteRuns(t, c, registered(t)).Count())
}

func TestDeleteRunsKeepsContextsWhoseNamesDifferInCase(t *testing.T) {
	c := &cluster{
		runs: []*clusterRun{
			{id: "context:Demo", runID: "context", isListed: true, isRunning: true},
			{id: "send:Demo/daily-2026", runID: "message", isListed: true, isRunning: true},
			{id: "temporal-sys-scheduler:send:Demo/daily", runID: "scheduler", isListed: true, isRunning: true},
			{id: "evaluate:Demo:1", runID: "evaluation", isListed: true},
		},
		schedules: []string{"send:Demo/daily"},
	}
	require.Zero(t, deleteRuns(t, c, registered(t)).Count())
	require.Empty(t, c.done)
	require.Len(t, c.runs, 4)
	require.Len(t, c.schedules, 1)
}

// An earlier attempt has deleted it. Until the server has, its content is left.
func TestDeleteRunsAwaitsARunThatTheServerIsDeleting(t *testing.T) {
	const id = "0198d3c0-7b5e-7a77-9d3c-5a5a5a5a5a5a"
	c := &cluster{runs: []*clusterRun{
		{id: "context:demo", runID: id, isDeleted: true, described: 5},
		{id: "context:demo", runID: "current", previous: "no id"}, // a memo may name anything
	}}
	deleted := deleteRuns(t, c, registered(t, id))
	require.Equal(t, 1, deleted.Count())
	require.Len(t, c.runs, 0)
}

func TestDeleteRunsReportsThatAWorkerIsBusy(t *testing.T) {
	c := &cluster{runs: []*clusterRun{{id: "context:demo", runID: "current", isBusy: true}}}
	require.True(t, deleteRuns(t, c, registered(t)).WasBusy)
}

func TestDeleteRunsKeepsARunThatBeganDuringTheDeletion(t *testing.T) {
	c := &cluster{runs: []*clusterRun{
		{id: "context:demo", runID: "before"},
		{id: "context:demo", runID: "since", previous: "before", isRunning: true, isListed: true, isBusy: true},
	}}
	deleted := deleteRuns(t, c, registered(t))
	require.Equal(t, []string{"delete before"}, c.done)
	require.Equal(t, 1, deleted.Count())
	require.False(t, deleted.WasBusy)
	require.Zero(t, deleteRuns(t, c, registered(t)).Count())
}

func endSession(t *testing.T, c *cluster, logs *archive.Archive, inactiveSince time.Time) (ended activities.EndedSession, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
		env.SetTestTimeout(time.Minute)
		env.RegisterActivity(activities.New(activities.Options{Temporal: c, Archive: logs}))
		began := time.Now()
		var value converter.EncodedValue
		value, err = env.ExecuteActivity((*activities.Activities)(nil).EndSession, activities.EndSessionInput{ContextName: "demo", InactiveSince: inactiveSince})
		if err == nil {
			err = value.Get(&ended)
		}
		c.took = time.Since(began)
	})
	return ended, err
}

// endedAt is the log of a session whose last message was recorded at a time, and which ended later.
func endedAt(t *testing.T, at time.Time) *archive.Archive {
	t.Helper()
	logs := registered(t, "run")
	_, err := logs.Write(t.Context(), "demo", "run", []event.Event{
		{ID: event.FormatID("demo", 1), ContextName: "demo", Timestamp: at, Body: event.UserMessage{Content: "Hi"}},
		{ID: event.FormatID("demo", 2), ContextName: "demo", ParentID: event.FormatID("demo", 1), Timestamp: at.Add(time.Hour), Body: event.SessionEnded{Reason: "idle"}},
	})
	require.NoError(t, err)
	return logs
}

func TestEndSessionClosesARunOrTerminatesIt(t *testing.T) {
	c := &cluster{runs: []*clusterRun{{id: "context:demo", runID: "current", isRunning: true, closesAt: 3}}}
	ended, err := endSession(t, c, registered(t), time.Time{})
	require.NoError(t, err)
	require.Equal(t, activities.EndedSession{}, ended)
	require.Len(t, c.asked, 1)
	require.Empty(t, c.done)

	c = &cluster{runs: []*clusterRun{{id: "context:demo", runID: "hangs", isRunning: true}}}
	ended, err = endSession(t, c, registered(t), time.Time{})
	require.NoError(t, err)
	require.Equal(t, activities.EndedSession{WasTerminated: true}, ended)
	require.Equal(t, []string{"terminate hangs: the context is deleted"}, c.done)

	ended, err = endSession(t, &cluster{}, registered(t), time.Time{})
	require.NoError(t, err)
	require.Equal(t, activities.EndedSession{}, ended)
}

// An earlier attempt has ended the session, and then input arrived, or the attempt was lost.
func TestARepeatedEndSession(t *testing.T) {
	for name, test := range map[string]struct {
		run  clusterRun
		want activities.EndedSession
	}{
		"keeps a run that waits for its end":     {run: clusterRun{isRunning: true, age: time.Second, isUnopen: true}},
		"ends an earlier run":                    {run: clusterRun{isRunning: true, age: time.Second, closesAt: 2}},
		"ends a run that continues the session":  {run: clusterRun{first: "first", isRunning: true, age: -2 * time.Second, closesAt: 2}},
		"reports the run that it has terminated": {run: clusterRun{status: enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, age: -time.Second}, want: activities.EndedSession{WasTerminated: true}},
		"ignores one that was terminated before": {run: clusterRun{status: enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, age: time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			test.run.id, test.run.runID = "context:demo", "run"
			isAsked := test.run.closesAt > 0
			c := &cluster{runs: []*clusterRun{&test.run}}
			ended, err := endSession(t, c, registered(t), time.Time{})
			require.NoError(t, err)
			require.Equal(t, test.want, ended)
			require.Empty(t, c.done, "nothing is terminated")
			require.Equal(t, isAsked, len(c.asked) > 0)
		})
	}
}

func TestEndSessionFindsActivity(t *testing.T) {
	since := eventtest.Epoch.Add(time.Minute)
	before, after := endedAt(t, since), endedAt(t, since.Add(time.Second))
	for name, test := range map[string]struct {
		runs     []*clusterRun
		logs     *archive.Archive
		isActive bool
	}{
		"no event since":                  {[]*clusterRun{{}}, before, false},
		"the server has no run":           {nil, before, false},
		"an event since":                  {[]*clusterRun{{}}, after, true},
		"an event since, without a run":   {nil, after, true},
		"the session ends":                {[]*clusterRun{{isRunning: true, closesAt: 2}}, before, false},
		"the session ends after an event": {[]*clusterRun{{isRunning: true, closesAt: 2}}, after, true},
		"the session stays open":          {[]*clusterRun{{isRunning: true}}, before, true},
		"no worker answers":               {[]*clusterRun{{isRunning: true, hangs: true}}, before, true},
		"another run has started":         {[]*clusterRun{{isRunning: true, closesAt: 2}, {runID: "next", isRunning: true}}, before, true},
		"terminated before":               {[]*clusterRun{{status: enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED}}, before, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &cluster{}
			for _, run := range test.runs {
				run.id, run.runID = "context:demo", cmp.Or(run.runID, "run")
				c.runs = append(c.runs, run)
			}
			ended, err := endSession(t, c, test.logs, since)
			require.NoError(t, err)
			require.Equal(t, activities.EndedSession{IsActive: test.isActive}, ended)
			require.Empty(t, c.done, "nothing is terminated")
			for _, asked := range c.asked {
				require.Equal(t, since, asked.InactiveSince)
			}
		})
	}
	// Its history may have input that no log has.
	terminated := &cluster{runs: []*clusterRun{{id: "context:demo", runID: "run", status: enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED}}}
	ended, err := endSession(t, terminated, endedAt(t, eventtest.Epoch.Add(-time.Hour)), eventtest.Epoch.Add(-time.Second))
	require.NoError(t, err)
	require.True(t, ended.IsActive)
}

// While it runs, the deletion that a person asks for would be rejected.
func TestADeletionOfAnActiveContextEndsSoon(t *testing.T) {
	c := &cluster{runs: []*clusterRun{{id: "context:demo", runID: "run", isRunning: true}}}
	ended, err := endSession(t, c, endedAt(t, eventtest.Epoch), eventtest.Epoch)
	require.NoError(t, err)
	require.True(t, ended.IsActive)
	require.Less(t, c.took, time.Second)
}

func detachFork(t *testing.T, c *cluster, logs *archive.Archive) error {
	t.Helper()
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	env.RegisterActivity(activities.New(activities.Options{Temporal: c, Archive: logs}))
	_, err := env.ExecuteActivity((*activities.Activities)(nil).DetachFork, activities.DeleteInput{ContextName: "copy"})
	return err
}

// Otherwise it would copy events to a fork that is gone.
func TestDetachForkWaitsForTheDeletionOfTheFork(t *testing.T) {
	bucket := blobstest.New(t)
	logs := archive.New(bucket.Store)
	folder, err := logs.Folder(t.Context(), "demo")
	require.NoError(t, err)
	require.NoError(t, folder.Register(t.Context(), archive.Run{ID: "run"}))
	_, err = logs.Write(t.Context(), "demo", "run", []event.Event{
		{ID: event.FormatID("demo", 1), ContextName: "demo", Timestamp: eventtest.Epoch, Body: event.UserMessage{Content: "Hi"}},
	})
	require.NoError(t, err)
	folder, err = logs.Folder(t.Context(), "copy")
	require.NoError(t, err)
	require.NoError(t, folder.Register(t.Context(), archive.Run{ID: archive.ForkID, Origin: &archive.Origin{ContextName: "demo", RunID: "run", At: 1}}))
	before := bucket.Names()
	deletion := &clusterRun{id: "delete:copy", runID: "deletion", isRunning: true}
	c := &cluster{runs: []*clusterRun{deletion}}
	require.ErrorContains(t, detachFork(t, c, logs), "detach context copy: it is being deleted")
	require.Equal(t, before, bucket.Names())

	_, err = logs.Delete(t.Context(), "copy")
	require.NoError(t, err)
	rest := bucket.Names()
	bucket.Set("contexts/copy/fork/000000000001-000000000001.json", []byte("{}")) // by an earlier attempt
	deletion.isRunning = false
	require.NoError(t, detachFork(t, c, logs))
	require.Equal(t, rest, bucket.Names())
}

func TestDetachForkCopiesWhatTheForkShares(t *testing.T) {
	logs := archive.New(blobstest.New(t).Store)
	for _, run := range []struct {
		contextName string
		archive.Run
	}{{"demo", archive.Run{ID: "run"}}, {"copy", archive.Run{ID: archive.ForkID, Origin: &archive.Origin{ContextName: "demo", RunID: "run", At: 1}}}} {
		folder, err := logs.Folder(t.Context(), run.contextName)
		require.NoError(t, err)
		require.NoError(t, folder.Register(t.Context(), run.Run))
	}
	require.ErrorContains(t, detachFork(t, &cluster{}, logs), "(delete the forks, too)", "the shared event is missing")
	_, err := logs.Write(t.Context(), "demo", "run", []event.Event{
		{ID: event.FormatID("demo", 1), ContextName: "demo", Timestamp: eventtest.Epoch, Body: event.UserMessage{Content: "Hi"}},
	})
	require.NoError(t, err)
	require.NoError(t, detachFork(t, &cluster{}, logs))
	origin, err := logs.Origin(t.Context(), "copy")
	require.NoError(t, err)
	require.Nil(t, origin)
}
