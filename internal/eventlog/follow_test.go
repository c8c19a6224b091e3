package eventlog_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
)

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
	for _, err := range eventlog.New(s, "", nil).Follow(t.Context(), "demo", "", eventlog.FollowOptions{}) {
		require.ErrorIs(t, err, unknown, "a namespace that never existed")
	}
}

func TestFollowEndsWithAPermanentError(t *testing.T) {
	s := newServer(t, newRun("A", "", record(t, 1, says("a")...)))
	denied := serviceerror.NewPermissionDenied("not yours", "")
	s.fail = func(string) error { return denied }
	n := 0
	for _, err := range eventlog.New(s, "", nil).Follow(t.Context(), "demo", "", eventlog.FollowOptions{}) {
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
	for e, err := range eventlog.New(s, "", nil).Follow(ctx, "demo", "", eventlog.FollowOptions{}) {
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
				for _, err := range eventlog.New(s, "", logs).Follow(ctx, "demo", "", eventlog.FollowOptions{Wake: wake}) {
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

func TestFollowEndsWhenTheContextIsDeleted(t *testing.T) {
	a := archive.New(blobstest.New(t).Store)
	s := newServer(t, newRun("A", "", record(t, 1, says("a")...)))
	register(t, a, "demo", "A", "", 0)
	s.runs[0].onEnd = func() {
		s.runs[0].isDeleted = true
		_, err := a.Delete(t.Context(), "demo")
		require.NoError(t, err)
	}
	var err error
	for _, err = range eventlog.New(s, "", a).Follow(t.Context(), "demo", "", eventlog.FollowOptions{}) {
	}
	require.ErrorIs(t, err, eventlog.ErrNoContext)
	require.EqualError(t, err, "follow context demo: it was deleted: no such context")
}

// The follower finds the names of objects that are gone when it reads them.
func TestFollowEndsWhileTheArchiveIsDeleted(t *testing.T) {
	bucket := blobstest.New(t)
	a := archive.New(bucket.Store)
	s := newServer(t, newRun("A", "", record(t, 1, says("a")...)))
	register(t, a, "demo", "A", "", 0)
	s.runs[0].onEnd = func() {
		s.runs[0].isDeleted = true
		s.deletion = enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
		bucket.Hide(1)
	}
	var err error
	for _, err = range eventlog.New(s, "", a).Follow(t.Context(), "demo", "", eventlog.FollowOptions{}) {
	}
	require.EqualError(t, err, "follow context demo: it was deleted: no such context")
}

func TestFollowContinuesWithANewContextOfTheSameName(t *testing.T) {
	a := archive.New(blobstest.New(t).Store)
	s := newServer(t, newRun("A", "", record(t, 1, says("a", "b")...)))
	register(t, a, "demo", "A", "", 0)
	s.runs[0].onEnd = func() {
		_, err := a.Delete(t.Context(), "demo")
		require.NoError(t, err)
		register(t, a, "demo", "B", "", 0)
		s.runs = []*run{newRun("B", "", record(t, 1, says("c")...))}
	}
	require.Equal(t, "1:a 2:b 1:c", followed(t, eventlog.New(s, "", a), "", 3))
}
