package activities_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"google.golang.org/grpc"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
)

// archivedOnly is a Temporal client of a server without histories, so logs are in the archive.
type archivedOnly struct{ client.Client }

func (archivedOnly) WorkflowService() workflowservice.WorkflowServiceClient { return forgotten{} }

type forgotten struct {
	workflowservice.WorkflowServiceClient
}

func (forgotten) GetWorkflowExecutionHistory(context.Context, *workflowservice.GetWorkflowExecutionHistoryRequest, ...grpc.CallOption) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
	return nil, serviceerror.NewNotFound("no such run")
}

// delivering is the environment of Deliver for the context demo.
type delivering struct {
	t       *testing.T
	archive *archive.Archive
}

// newDelivering returns a context whose log has runs with a number of events each. The last run is
// that of the test environment.
func newDelivering(t *testing.T, runs ...int) *delivering {
	d := &delivering{t, archive.New(blobstest.New(t).Store)}
	last, behind := 0, ""
	for i, n := range runs {
		id := fmt.Sprint("run-", i+1)
		if i == len(runs)-1 {
			id = runID
		}
		d.register(archive.Run{ID: id, After: last, Behind: behind})
		var events []event.Event
		for range n {
			last++
			events = append(events, numbered(last, fmt.Sprint("m", last)))
		}
		_, err := d.archive.Write(t.Context(), "demo", id, events)
		require.NoError(t, err)
		behind = id
	}
	return d
}

func (d *delivering) register(run archive.Run) {
	d.t.Helper()
	folder, err := d.archive.Folder(d.t.Context(), "demo")
	require.NoError(d.t, err)
	require.NoError(d.t, folder.Register(d.t.Context(), run))
}

func numbered(n int, text string) event.Event {
	e := event.New(event.UserMessage{Content: text})
	e.ID, e.ContextName, e.Timestamp = event.FormatID("demo", n), "demo", time.Now().Add(-time.Minute).UTC().Truncate(time.Second)
	return e
}

func (d *delivering) at(h hook.Hook) archive.Progress {
	d.t.Helper()
	cursor, err := d.archive.Cursor(d.t.Context(), "demo", h.Name)
	require.NoError(d.t, err)
	return cursor.Progress
}

func (d *delivering) set(h hook.Hook, progress archive.Progress) {
	d.t.Helper()
	cursor, err := d.archive.Cursor(d.t.Context(), "demo", h.Name)
	require.NoError(d.t, err)
	require.NoError(d.t, cursor.Set(d.t.Context(), progress))
}

func (d *delivering) deliver(hooks []hook.Hook, name string, through int) (int, error) {
	d.t.Helper()
	return d.deliverFrom(archivedOnly{}, hooks, name, through)
}

func (d *delivering) deliverFrom(server client.Client, hooks []hook.Hook, name string, through int) (int, error) {
	d.t.Helper()
	require.NoError(d.t, hook.Validate(hooks))
	return d.deliverOn(activities.New(activities.Options{Temporal: server, Archive: d.archive, Hooks: hooks}), name, through)
}

func (d *delivering) deliverOn(a *activities.Activities, name string, through int) (int, error) {
	d.t.Helper()
	result, err := d.execute(d.environment(a), name, through)
	return result.Through, err
}

func (d *delivering) environment(a *activities.Activities) *testsuite.TestActivityEnvironment {
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(a)
	return env
}

func (d *delivering) execute(env *testsuite.TestActivityEnvironment, name string, through int) (result activities.DeliverResult, err error) {
	d.t.Helper()
	value, err := env.ExecuteActivity(acts.Deliver, activities.DeliverInput{ContextName: "demo", Hook: name, Through: through})
	if err == nil {
		require.NoError(d.t, value.Get(&result))
	}
	return result, err
}

// observed is a hook that formats the events that it receives.
func observed(err error) (h hook.Hook, calls *[]string) {
	calls = new([]string)
	return hook.Hook{Name: "crm", OnEvent: func(_ context.Context, e hook.Events) error {
		*calls = append(*calls, fmt.Sprintf("%d %s %s>%s (%d)", e.Epoch, e.RunID, strings.TrimPrefix(e.After, "demo:"), strings.TrimPrefix(e.Cursor, "demo:"), len(e.Events)))
		return err
	}}, calls
}

func TestEventsAreDeliveredInBatchesPerRun(t *testing.T) {
	d := newDelivering(t, 3, 2, hook.MaxBatchEvents+1)
	h, calls := observed(nil)
	d.set(h, archive.Progress{Position: archive.Position{RunID: "run-1", After: 1}})
	through, err := d.deliver([]hook.Hook{h}, "crm", 106)
	require.NoError(t, err)
	require.Equal(t, 106, through)
	require.Equal(t, []string{"3 run-1 0001>0003 (2)", "3 run-2 0003>0005 (2)", "3 " + runID + " 0005>0105 (100)", "3 " + runID + " 0105>0106 (1)"}, *calls)
	require.Equal(t, archive.Progress{Position: archive.Position{RunID: runID, After: 106}, Epoch: 3}, d.at(h))
	_, err = d.deliver([]hook.Hook{h}, "crm", 106)
	require.NoError(t, err)
	require.Len(t, *calls, 4, "nothing is delivered again")
}

func TestAFailedBatchIsRepeatedUnchanged(t *testing.T) {
	d := newDelivering(t, 3)
	h, calls := observed(errors.New("down, secret=hunter2"))
	_, err := d.deliver([]hook.Hook{h}, "crm", 3)
	var failed *temporal.ApplicationError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, "hook crm: down, secret=[removed]", failed.Message())
	require.False(t, failed.NonRetryable())
	first := d.at(h)
	require.Zero(t, first.Position)
	require.Equal(t, 3, first.Through)
	require.WithinDuration(t, time.Now(), first.FailingSince, time.Minute)
	_, err = d.archive.Write(t.Context(), "demo", runID, []event.Event{numbered(4, "m4")})
	require.NoError(t, err)
	_, err = d.deliver([]hook.Hook{h}, "crm", 4)
	require.Error(t, err)
	require.Equal(t, first, d.at(h), "it fails since the first failure")
	works, more := observed(nil)
	_, err = d.deliver([]hook.Hook{works}, "crm", 4)
	require.NoError(t, err)
	batch := "1 " + runID + " >0003 (3)"
	require.Equal(t, []string{batch, batch, batch, "1 " + runID + " 0003>0004 (1)"}, append(*calls, *more...))
	require.Equal(t, archive.Progress{Position: archive.Position{RunID: runID, After: 4}, Epoch: 1}, d.at(h))
}

func TestFailuresOfOnEvent(t *testing.T) {
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	for name, test := range map[string]struct {
		onEvent func(context.Context, hook.Events) error
		want    string
		delay   time.Duration
	}{
		"a panic":   {func(context.Context, hook.Events) error { panic("oh") }, "the hook panicked: oh", 0},
		"a timeout": {func(context.Context, hook.Events) error { <-never; return nil }, "the hook did not answer in time", 0},
		"Retry-After": {func(context.Context, hook.Events) error {
			return &hook.RetryAfterError{Delay: 7 * time.Second, Err: errors.New("busy")}
		}, "busy", 7 * time.Second},
		"a long Retry-After": {func(context.Context, hook.Events) error {
			return &hook.RetryAfterError{Delay: time.Hour, Err: errors.New("busy")}
		}, "busy",
			hook.MaxRetryAfter},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDelivering(t, 1)
			h := hook.Hook{Name: "crm", OnEvent: test.onEvent}
			if name == "a timeout" {
				h.Timeout = 50 * time.Millisecond
			}
			_, err := d.deliver([]hook.Hook{h}, "crm", 1)
			var failed *temporal.ApplicationError
			require.ErrorAs(t, err, &failed)
			require.Equal(t, "hook crm: "+test.want, failed.Message())
			require.Equal(t, test.delay, failed.NextRetryDelay())
		})
	}
}

func TestAFailureAfterADeliveryIsNoFailedAttempt(t *testing.T) {
	d := newDelivering(t, 2*hook.MaxBatchEvents+1)
	var failure error
	h := hook.Hook{Name: "crm", OnEvent: func(_ context.Context, e hook.Events) error {
		if e.After == "" {
			return nil
		}
		return failure
	}}
	failure = errors.New("down")
	through, err := d.deliver([]hook.Hook{h}, "crm", 201)
	require.NoError(t, err)
	require.Equal(t, hook.MaxBatchEvents, through)
	require.Equal(t, hook.MaxBatchEvents, d.at(h).After)
	require.NotZero(t, d.at(h).FailingSince)
	_, err = d.deliver([]hook.Hook{h}, "crm", 201)
	require.ErrorContains(t, err, "hook crm: down")

	d.set(h, archive.Progress{Epoch: 1})
	failure = &hook.RetryAfterError{Delay: 7 * time.Second, Err: errors.New("busy")}
	_, err = d.deliver([]hook.Hook{h}, "crm", 201)
	var failed *temporal.ApplicationError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, 7*time.Second, failed.NextRetryDelay())
	require.Equal(t, hook.MaxBatchEvents, d.at(h).After)
}

func TestAnOpenHookSkipsOldEvents(t *testing.T) {
	d := newDelivering(t, 2)
	recent := numbered(3, "m3")
	recent.Timestamp = time.Now()
	_, err := d.archive.Write(t.Context(), "demo", runID, []event.Event{recent})
	require.NoError(t, err)
	h, calls := observed(errors.New("down"))
	h.OnFailure, h.SkipAfter = hook.Open, 30*time.Second
	_, err = d.deliver([]hook.Hook{h}, "crm", 3)
	require.Error(t, err)
	require.Zero(t, d.at(h).After, "the hook has just begun to fail")
	failing := d.at(h)
	failing.FailingSince = failing.FailingSince.Add(-time.Minute)
	d.set(h, failing)
	_, err = d.deliver([]hook.Hook{h}, "crm", 3)
	require.Error(t, err)
	failing.After, failing.RunID = 2, runID
	require.Equal(t, failing, d.at(h), "the recent event is not skipped")
	require.Len(t, *calls, 2)

	h.SkipAfter = time.Nanosecond
	through, err := d.deliver([]hook.Hook{h}, "crm", 3)
	require.NoError(t, err)
	require.Equal(t, 3, through)
	require.Equal(t, 3, d.at(h).After)
	require.Equal(t, failing.FailingSince, d.at(h).FailingSince, "it still fails")
}

func TestAClosedHookSkipsNothing(t *testing.T) {
	d := newDelivering(t, 2)
	h, _ := observed(errors.New("down"))
	d.set(h, archive.Progress{FailingSince: time.Now().Add(-1000 * time.Hour)})
	_, err := d.deliver([]hook.Hook{h}, "crm", 2)
	require.Error(t, err)
	require.Zero(t, d.at(h).After)
}

// Temporal repeats the delivery, so that a worker with the hook gets it. After ten workers in a row
// without it, the events wait at the cursor: the operator has removed the hook.
func TestAWorkerWithoutTheHookDoesNotDeliver(t *testing.T) {
	d := newDelivering(t, 2)
	h, calls := observed(nil)
	without := activities.New(activities.Options{Temporal: archivedOnly{}, Archive: d.archive})
	env := d.environment(without)
	_, err := d.execute(env, "crm", 2)
	var failed *temporal.ApplicationError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, "hook crm: this worker does not have it (give all workers of the task queue the same hooks)", failed.Message())
	require.False(t, failed.NonRetryable())
	env.SetHeartbeatDetails(8)
	_, err = d.execute(env, "crm", 2)
	require.Error(t, err)
	env.SetHeartbeatDetails(9)
	result, err := d.execute(env, "crm", 2)
	require.NoError(t, err)
	require.Equal(t, activities.DeliverResult{Through: 2, NotDelivered: true}, result)
	require.Zero(t, d.at(h), "it continues where it was, if a worker has it again")

	var beats []int
	with := d.environment(activities.New(activities.Options{Temporal: archivedOnly{}, Archive: d.archive, Hooks: []hook.Hook{h}}))
	with.SetHeartbeatDetails(9)
	with.SetOnActivityHeartbeatListener(func(_ *activity.Info, details converter.EncodedValues) {
		var missing int
		require.NoError(t, details.Get(&missing))
		beats = append(beats, missing)
	})
	result, err = d.execute(with, "crm", 2)
	require.NoError(t, err)
	require.Equal(t, activities.DeliverResult{Through: 2}, result)
	require.Len(t, *calls, 1)
	require.Equal(t, []int{0}, beats, "the count begins again")
}

func TestALateDeliveryDoesNotMoveTheCursor(t *testing.T) {
	d := newDelivering(t, 3)
	h := hook.Hook{Name: "crm"}
	h.OnEvent = func(context.Context, hook.Events) error { // another worker delivers during the call
		d.set(h, archive.Progress{Position: archive.Position{RunID: runID, After: 9}, Epoch: 1})
		return nil
	}
	_, err := d.deliver([]hook.Hook{h}, "crm", 3)
	require.ErrorContains(t, err, "already exists")
	require.Equal(t, 9, d.at(h).After)
}

// After a reset, the activity of the old run may still deliver. A receiver ignores the events of the
// lower epoch, so their delivery must not move the cursor of the new run.
func TestARunThatWasReplacedDoesNotDeliver(t *testing.T) {
	d := newDelivering(t, 3)
	h := hook.Hook{Name: "crm"}
	d.register(archive.Run{ID: "other", After: 2, Behind: runID})
	claimed := archive.Progress{Position: archive.Position{RunID: runID, After: 2}, Epoch: 2}
	h.OnEvent = func(context.Context, hook.Events) error { // the new run begins to deliver during the call
		d.set(h, claimed)
		return nil
	}
	_, err := d.deliver([]hook.Hook{h}, "crm", 3)
	require.ErrorContains(t, err, "already exists")
	require.Equal(t, claimed, d.at(h))
	late, calls := observed(nil)
	_, err = d.deliver([]hook.Hook{late}, "crm", 3)
	require.ErrorContains(t, err, "a later run of the context delivers (epoch 2, this run has 1)")
	require.Empty(t, *calls)
	require.Equal(t, claimed, d.at(h))
}

func TestABatchIsBounded(t *testing.T) {
	add := func(b *activities.Batch, n int, runID, text string) bool {
		return b.Add(eventlog.Recorded{Event: numbered(n, text), RunID: runID, Through: n})
	}
	half := strings.Repeat("x", hook.MaxBatchBytes/2)
	var b activities.Batch
	require.True(t, add(&b, 1, "A", half+half), "a large event is a batch of its own")
	require.False(t, add(&b, 2, "A", "x"))
	b = activities.Batch{}
	require.True(t, add(&b, 1, "A", half))
	require.False(t, add(&b, 2, "A", half))
	require.False(t, add(&b, 2, "B", "x"), "a batch has one run")
	require.True(t, add(&b, 2, "A", "x"))
}

func TestADeliveryWaitsForTheNextEventDuringATurnOnly(t *testing.T) {
	for want, bodies := range map[bool][]event.Body{
		true: {event.UserMessage{}, event.LLMRequestStarted{}, event.ToolCall{}, event.Compacted{}, event.ToolsOffered{}},
		false: {event.UserMessage{TriggersTurn: new(false)}, event.LLMRequestCompleted{}, event.LLMRequestFailed{},
			event.ApprovalRequested{}, event.SessionEnded{}, event.SystemPrompt{}},
	} {
		for _, body := range bodies {
			require.Equal(t, want, activities.IsDuringTurn(event.New(body)), body.Tag())
		}
	}
}

// quiet is a server with the history of the running run: a user message that begins a turn. A long
// poll for more ends after 20 s without entries.
type quiet struct{ client.Client }

func (quiet) WorkflowService() workflowservice.WorkflowServiceClient { return polled{} }

type polled struct {
	workflowservice.WorkflowServiceClient
}

func (polled) GetWorkflowExecutionHistory(ctx context.Context, request *workflowservice.GetWorkflowExecutionHistoryRequest, _ ...grpc.CallOption) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
	if len(request.NextPageToken) > 0 {
		select {
		case <-time.After(20 * time.Second):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &workflowservice.GetWorkflowExecutionHistoryResponse{History: &historypb.History{}, NextPageToken: []byte("end")}, nil
}

func TestADeliveryWaitsHalfAMinuteForTheNextEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDelivering(t, 1)
		h, calls := observed(nil)
		start := time.Now()
		through, err := d.deliverFrom(quiet{}, []hook.Hook{h}, "crm", 1)
		require.NoError(t, err)
		require.Equal(t, 1, through)
		require.Len(t, *calls, 1)
		require.Equal(t, 30*time.Second, time.Since(start))
	})
}

func TestASlowHookLeavesRoomForOthers(t *testing.T) {
	d := newDelivering(t, 1)
	h, calls := observed(nil)
	started, release := make(chan struct{}), make(chan struct{})
	slow := hook.Hook{Name: "slow", Timeout: time.Minute, OnEvent: func(context.Context, hook.Events) error {
		started <- struct{}{}
		<-release
		return errors.New("down")
	}}
	a := activities.New(activities.Options{Temporal: archivedOnly{}, Archive: d.archive, Hooks: []hook.Hook{slow, h}})
	var running sync.WaitGroup
	for range activities.MaxDeliveries / 2 {
		running.Go(func() { _, _ = d.deliverOn(a, "slow", 1) })
		<-started
	}
	defer running.Wait()
	defer close(release)
	_, err := d.deliverOn(a, "slow", 1)
	var failed *temporal.ApplicationError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, "hook slow: this worker already runs 100 deliveries of the hook, its maximum (Temporal retries this one)", failed.Message())
	require.Zero(t, failed.NextRetryDelay(), "the delay doubles")
	_, err = d.deliverOn(a, "crm", 1)
	require.NoError(t, err)
	require.Len(t, *calls, 1)
}
