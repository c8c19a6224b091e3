package doctor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func TestTimingsAreThoseOfTheServer(t *testing.T) {
	began := time.Date(2026, 1, 2, 15, 4, 0, 0, time.UTC)
	at := func(id int64, after time.Duration) *historypb.HistoryEvent {
		return &historypb.HistoryEvent{EventId: id, EventTime: timestamppb.New(began.Add(after))}
	}
	taskStarted := func(id, scheduled int64, after time.Duration) *historypb.HistoryEvent {
		e := at(id, after)
		e.Attributes = &historypb.HistoryEvent_WorkflowTaskStartedEventAttributes{
			WorkflowTaskStartedEventAttributes: &historypb.WorkflowTaskStartedEventAttributes{ScheduledEventId: scheduled},
		}
		return e
	}
	activityStarted := at(8, 77*time.Millisecond)
	activityStarted.Attributes = &historypb.HistoryEvent_ActivityTaskStartedEventAttributes{
		ActivityTaskStartedEventAttributes: &historypb.ActivityTaskStartedEventAttributes{ScheduledEventId: 6},
	}
	timerFired := at(9, 915*time.Millisecond)
	timerFired.Attributes = &historypb.HistoryEvent_TimerFiredEventAttributes{
		TimerFiredEventAttributes: &historypb.TimerFiredEventAttributes{StartedEventId: 5},
	}
	hops, lateness := timings([]*historypb.HistoryEvent{
		at(1, 0), at(2, 0), taskStarted(3, 2, time.Second), // the first task waits for the worker to start
		at(5, 5*time.Millisecond), at(6, 30*time.Millisecond), at(7, 40*time.Millisecond), activityStarted, timerFired, taskStarted(10, 7, 43*time.Millisecond),
	})
	require.Equal(t, []time.Duration{47 * time.Millisecond, 3 * time.Millisecond}, hops)
	require.Equal(t, 900*time.Millisecond, lateness)

	hops, lateness = timings(nil)
	require.Empty(t, hops)
	require.Zero(t, lateness)
}

func TestDurationsOfAnUntunedServerAreWarnings(t *testing.T) {
	hops := make([]time.Duration, 100)
	for i := range hops {
		hops[i] = time.Millisecond
		if i >= 60 {
			hops[i] = 45 * time.Millisecond
		}
	}
	slow := hopResult(hops)
	require.Equal(t, Warning, slow.Severity)
	require.Equal(t, "a task waits 45ms, more than 25ms (median of 20)", slow.Measured)
	require.Contains(t, slow.Fix, "history.transferProcessorMaxPollRPS: 200")
	require.Equal(t, OK, hopResult(hops[:60]).Severity)
	require.Equal(t, Error, hopResult(nil).Severity)

	late := timerResult(970 * time.Millisecond)
	require.Equal(t, Warning, late.Severity)
	require.Contains(t, late.Fix, "history.timerProcessorMaxTimeShift: 1ms")
	require.Equal(t, OK, timerResult(4*time.Millisecond).Severity)
}
