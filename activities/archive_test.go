package activities_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/seed-9ed7edd4/chronicle/activities"
)

func TestOnlyAWorkerShutdownEndsAnActivityWithHeartbeats(t *testing.T) {
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	check := func(activity context.Context) error {
		synctest.Test(t, func(t *testing.T) {
			for cause, ends := range map[error]bool{errors.New("the run has closed"): false, worker.ErrWorkerShutdown: true} {
				ctx, cancel := context.WithCancelCause(context.WithoutCancel(activity)) // belongs to the bubble
				work, stop := activities.WithHeartbeats(ctx)
				cancel(cause)
				synctest.Wait()
				require.Equal(t, ends, work.Err() != nil, cause)
				stop()
				require.Error(t, work.Err())
			}
		})
		return nil
	}
	env.RegisterActivity(check)
	_, err := env.ExecuteActivity(check)
	require.NoError(t, err)
}
