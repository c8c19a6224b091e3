package client_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/seed-9ed7edd4/chronicle/client"
)

func TestAnActivityThatNoWorkerTakesIsUnattended(t *testing.T) {
	at := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	activity := func(state enumspb.PendingActivityState, seconds int, failure *failurepb.Failure) *workflowpb.PendingActivityInfo {
		return &workflowpb.PendingActivityInfo{
			State: state, ScheduledTime: timestamppb.New(at.Add(time.Duration(seconds) * time.Second)), LastFailure: failure,
		}
	}
	const waits, runs = enumspb.PENDING_ACTIVITY_STATE_SCHEDULED, enumspb.PENDING_ACTIVITY_STATE_STARTED
	died := &failurepb.Failure{FailureInfo: &failurepb.Failure_TimeoutFailureInfo{TimeoutFailureInfo: &failurepb.TimeoutFailureInfo{}}}
	for name, test := range map[string]struct {
		activities []*workflowpb.PendingActivityInfo
		want       time.Time
	}{
		"none":                                {nil, time.Time{}},
		"one runs":                            {[]*workflowpb.PendingActivityInfo{activity(runs, 1, died)}, time.Time{}},
		"the worker died":                     {[]*workflowpb.PendingActivityInfo{activity(runs, 0, nil), activity(waits, 2, died)}, at.Add(2 * time.Second)},
		"the oldest counts":                   {[]*workflowpb.PendingActivityInfo{activity(waits, 2, nil), activity(waits, 1, nil)}, at.Add(time.Second)},
		"one waits for its next attempt":      {[]*workflowpb.PendingActivityInfo{activity(waits, 1, &failurepb.Failure{})}, time.Time{}},
		"one waits after a failure of a call": {[]*workflowpb.PendingActivityInfo{activity(waits, 1, &failurepb.Failure{Message: "down"}), activity(waits, 3, nil)}, at.Add(3 * time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			since, err := open(t, &temporal{run: &workflowservice.DescribeWorkflowExecutionResponse{PendingActivities: test.activities}}).UnattendedSince(t.Context())
			require.NoError(t, err)
			require.Equal(t, test.want, since)
		})
	}
	ended := &workflowpb.WorkflowExecutionInfo{Status: enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED}
	_, err := open(t, &temporal{run: &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: ended}}).UnattendedSince(t.Context())
	require.ErrorIs(t, err, client.ErrUnanswered)
	_, err = open(t, &temporal{}).UnattendedSince(t.Context())
	require.ErrorIs(t, err, client.ErrNoContext)
}
