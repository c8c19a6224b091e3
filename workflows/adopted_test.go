package workflows_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/wire"
	"github.com/seed-9ed7edd4/chronicle/workflows"
)

// TestARunOverItsSizeLimitRecordsTheAdoptedAnswer runs the second workflow task of a run
// that started with a backlog and a running answer. Before that task, the answer ends
// and the history exceeds 16 MiB. The run records the answer before it continues as
// new: the next run could not adopt it again. Temporal's test environment runs a task per
// event, so the test replays a history instead.
func TestARunOverItsSizeLimitRecordsTheAdoptedAnswer(t *testing.T) {
	input := runningInput(t)
	signal, err := proto.Marshal(payloads(t, map[string]any{"_tag": "UserMessage", "content": "Hi"}))
	require.NoError(t, err)
	input["inbox"] = []map[string]any{{"name": wire.SignalEvent, "payloads": signal}}
	attempt := activities.Attempted{Attempt: 1, Sent: true, Through: "demo:0002", ProviderID: "openai", Model: "scripted"}
	queue := &taskqueuepb.TaskQueue{Name: wire.TaskQueue, Kind: enumspb.TASK_QUEUE_KIND_NORMAL}

	recorded := wire.Record{}
	for i, body := range []event.Body{event.UserMessage{Content: "Hi"}, event.AssistantMessage{Content: "Hello"}, event.LLMRequestCompleted{RequestID: "demo:r0001"}} {
		recorded.Events = append(recorded.Events, loaded(3+i, body))
	}

	w := &world{t: t}
	replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
		Interceptors: []interceptor.WorkerInterceptor{workflows.Interceptor()}, DisableDeadlockDetection: true,
	})
	require.NoError(t, err)
	replayer.RegisterWorkflowWithOptions(workflows.New(workflows.Options{Reduce: w.reduce}), workflow.RegisterOptions{Name: wire.WorkflowType})
	require.NoError(t, replayer.ReplayWorkflowHistoryWithOptions(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), history(
		&historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{
			WorkflowType: &commonpb.WorkflowType{Name: wire.WorkflowType}, WorkflowId: "context:demo", TaskQueue: queue, Input: payloads(t, input),
			ContinuedExecutionRunId: "previous", OriginalExecutionRunId: "run", FirstExecutionRunId: "previous", Attempt: 1,
			WorkflowTaskTimeout: durationpb.New(10 * time.Second),
		}},
		&historypb.HistoryEvent_WorkflowTaskScheduledEventAttributes{WorkflowTaskScheduledEventAttributes: &historypb.WorkflowTaskScheduledEventAttributes{TaskQueue: queue}},
		&historypb.HistoryEvent_WorkflowTaskStartedEventAttributes{WorkflowTaskStartedEventAttributes: &historypb.WorkflowTaskStartedEventAttributes{ScheduledEventId: 2}},
		&historypb.HistoryEvent_WorkflowTaskCompletedEventAttributes{WorkflowTaskCompletedEventAttributes: &historypb.WorkflowTaskCompletedEventAttributes{ScheduledEventId: 2, StartedEventId: 3}},
		&historypb.HistoryEvent_MarkerRecordedEventAttributes{MarkerRecordedEventAttributes: &historypb.MarkerRecordedEventAttributes{
			MarkerName: "LocalActivity", WorkflowTaskCompletedEventId: 4, Details: map[string]*commonpb.Payloads{
				"data":   payloads(t, map[string]any{"ActivityID": "1", "ActivityType": "Open", "ReplayTime": time.Unix(0, 0).UTC(), "Attempt": 1}),
				"result": payloads(t, activities.OpenResult{RunID: "run"}),
			},
		}},
		&historypb.HistoryEvent_TimerStartedEventAttributes{TimerStartedEventAttributes: &historypb.TimerStartedEventAttributes{TimerId: "6", WorkflowTaskCompletedEventId: 4}},
		&historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
			ActivityId: "7", ActivityType: &commonpb.ActivityType{Name: "Generate"}, TaskQueue: queue, WorkflowTaskCompletedEventId: 4,
		}},
		&historypb.HistoryEvent_TimerFiredEventAttributes{TimerFiredEventAttributes: &historypb.TimerFiredEventAttributes{TimerId: "6", StartedEventId: 6}},
		&historypb.HistoryEvent_ActivityTaskStartedEventAttributes{ActivityTaskStartedEventAttributes: &historypb.ActivityTaskStartedEventAttributes{ScheduledEventId: 7, Attempt: 1}},
		&historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{
			ScheduledEventId: 7, StartedEventId: 9, Result: payloads(t, activities.GenerateResult{Attempted: attempt, Outcome: reducer.Completed, Text: "Hello"}),
		}},
		&historypb.HistoryEvent_WorkflowTaskScheduledEventAttributes{WorkflowTaskScheduledEventAttributes: &historypb.WorkflowTaskScheduledEventAttributes{TaskQueue: queue}},
		&historypb.HistoryEvent_WorkflowTaskStartedEventAttributes{WorkflowTaskStartedEventAttributes: &historypb.WorkflowTaskStartedEventAttributes{
			ScheduledEventId: 11, HistorySizeBytes: 17 << 20,
		}},
		&historypb.HistoryEvent_WorkflowTaskCompletedEventAttributes{WorkflowTaskCompletedEventAttributes: &historypb.WorkflowTaskCompletedEventAttributes{ScheduledEventId: 11, StartedEventId: 12}},
		&historypb.HistoryEvent_MarkerRecordedEventAttributes{MarkerRecordedEventAttributes: &historypb.MarkerRecordedEventAttributes{
			MarkerName: "SideEffect", WorkflowTaskCompletedEventId: 13, Details: map[string]*commonpb.Payloads{
				"side-effect-id": payloads(t, 1), "data": payloads(t, recorded),
			},
		}},
		&historypb.HistoryEvent_WorkflowExecutionContinuedAsNewEventAttributes{WorkflowExecutionContinuedAsNewEventAttributes: &historypb.WorkflowExecutionContinuedAsNewEventAttributes{
			WorkflowType: &commonpb.WorkflowType{Name: wire.WorkflowType}, TaskQueue: queue, WorkflowTaskCompletedEventId: 13,
		}},
	), worker.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{ID: "context:demo", RunID: "run"}}))
	require.Contains(t, w.log, "AssistantMessage Hello")
}

func payloads(t *testing.T, value any) *commonpb.Payloads {
	out, err := converter.GetDefaultDataConverter().ToPayloads(value)
	require.NoError(t, err)
	return out
}

// history has an event for each of the attributes, each a member of the oneof of
// [historypb.HistoryEvent].
func history(attributes ...any) *historypb.History {
	out := &historypb.History{}
	for i, a := range attributes {
		e := &historypb.HistoryEvent{EventId: int64(i + 1), EventTime: timestamppb.New(time.Unix(int64(i), 0))}
		switch a := a.(type) {
		case *historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes:
			e.EventType, e.Attributes = enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, a
		case *historypb.HistoryEvent_WorkflowTaskScheduledEventAttributes:
			e.EventType, e.Attributes = enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED, a
		case *historypb.HistoryEvent_WorkflowTaskStartedEventAttributes:
			e.EventType, e.Attributes = enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED, a
		case *historypb.HistoryEvent_WorkflowTaskCompletedEventAttributes:
			e.EventType, e.Attributes = enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, a
		case *historypb.HistoryEvent_MarkerRecordedEventAttributes:
			e.EventType, e.Attributes = enumspb.EVENT_TYPE_MARKER_RECORDED, a
		case *historypb.HistoryEvent_TimerStartedEventAttributes:
			e.EventType, e.Attributes = enumspb.EVENT_TYPE_TIMER_STARTED, a
		case *historypb.HistoryEvent_TimerFiredEventAttributes:
			e.EventType, e.Attributes = enumspb.EVENT_TYPE_TIMER_FIRED, a
		case *historypb.HistoryEvent_ActivityTaskScheduledEventAttributes:
			e.EventType, e.Attributes = enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, a
		case *historypb.HistoryEvent_ActivityTaskStartedEventAttributes:
			e.EventType, e.Attributes = enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED, a
		case *historypb.HistoryEvent_ActivityTaskCompletedEventAttributes:
			e.EventType, e.Attributes = enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED, a
		case *historypb.HistoryEvent_WorkflowExecutionContinuedAsNewEventAttributes:
			e.EventType, e.Attributes = enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW, a
		default:
			panic("attributes of no known event")
		}
		out.Events = append(out.Events, e)
	}
	return out
}
