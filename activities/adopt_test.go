package activities_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// heartbeats fakes the answer of the server to heartbeats of an activity that the SDK has cancelled.
type heartbeats struct {
	err       error
	beats     chan struct{}
	described atomic.Int32
}

func (s *server) RecordActivityHeartbeat(context.Context, []byte, ...any) error {
	s.heartbeats.beats <- struct{}{}
	return s.heartbeats.err
}

func (s *server) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	s.heartbeats.described.Add(1)
	return &workflowservice.DescribeWorkflowExecutionResponse{
		WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING},
	}, nil
}

func await(t *testing.T, signal <-chan struct{}) {
	select {
	case <-signal:
	case <-time.After(time.Minute):
		assert.Fail(t, "no heartbeat")
	}
}

// The server ends an activity without heartbeats, and would lose the text of the answer.
func TestACancelledAttemptSendsHeartbeatsUntilItEnds(t *testing.T) {
	for name, test := range map[string]struct {
		cause, answer error // of the cancellation by the SDK, and of the server to heartbeats
		beats         int   // while the attempt ends
	}{
		"the workflow cancelled it":              {temporal.NewCanceledError(), temporal.NewCanceledError(), 2},
		"Temporal was unreachable":               {serviceerror.NewUnavailable("no route"), temporal.NewCanceledError(), 2},
		"Temporal was unreachable for too long":  {serviceerror.NewUnavailable("no route"), serviceerror.NewNotFound("no activity"), 1},
		"Temporal was unreachable, and is again": {serviceerror.NewUnavailable("no route"), nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gate := llmtest.NewGate()
			w := newWorld(t, newSession(), llmtest.Answer("One", " two").HoldAfter(1, gate))
			w.server.heartbeats = &heartbeats{err: test.answer, beats: make(chan struct{}, 100)}
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			w.env.SetTestTimeout(2 * time.Minute)
			w.env.SetWorkerOptions(worker.Options{BackgroundActivityContext: ctx})
			w.server.onSignal = func() { // the attempt ends after the signal
				assert.NoError(t, gate.Reached(context.Background()))
				cancel(test.cause)
				for range test.beats {
					await(t, w.server.heartbeats.beats)
				}
				if test.answer == nil {
					gate.Open()
				}
			}
			result, err := w.generate()
			require.NoError(t, err)
			if test.answer == nil {
				require.Equal(t, reducer.Completed, result.Outcome)
				require.Zero(t, w.server.heartbeats.described.Load())
				return
			}
			require.Equal(t, reducer.Interrupted, result.Outcome)
			require.Equal(t, event.ReasonCancelled, result.Reason)
			require.EqualValues(t, 1, w.server.heartbeats.described.Load())
		})
	}
}
