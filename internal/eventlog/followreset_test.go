package eventlog_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
)

func TestFollowRewindsToTheResetPoint(t *testing.T) {
	a, _ := archived(t)
	s := threeRuns(t)
	s.runs[2].onEnd = func() {
		register(t, a, "demo", "R", "B", 4)
		s.runs = append(s.runs, newRun("R", "A", record(t, 4, messages(4, 4)...), record(t, 5, says("other")...)))
	}
	require.Equal(t, lines(1, 9)+" 5:other", followed(t, eventlog.New(s, "", a), "", 10))
}

func TestFollowFromAnEventRewindsToTheResetPoint(t *testing.T) {
	a, _ := archived(t)
	s := threeRuns(t)
	s.runs[2].onEnd = func() {
		register(t, a, "demo", "R", "B", 4)
		s.runs = append(s.runs, newRun("R", "A", record(t, 4, messages(4, 4)...), record(t, 5, says("other")...)))
	}
	require.Equal(t, "5:other", followed(t, eventlog.New(s, "", a), "demo:0009", 1))
}

func TestFollowRewindsTwiceBeforeTheNextEvent(t *testing.T) {
	a, _ := archived(t)
	s := threeRuns(t)
	first := newRun("R", "B", record(t, 7, messages(7, 8)...)) // records nothing of its own
	s.runs[2].onEnd = func() {
		register(t, a, "demo", "R", "C", 8)
		s.runs = append(s.runs, first)
	}
	first.onEnd = func() {
		register(t, a, "demo", "S", "B", 4)
		s.runs = append(s.runs, newRun("S", "A", record(t, 4, messages(4, 4)...), record(t, 5, says("other")...)))
	}
	require.Equal(t, lines(1, 9)+" 5:other", followed(t, eventlog.New(s, "", a), "", 10))
}

// polled is a server that reports each request for the newest run.
type polled struct {
	*server
	polls  int
	onPoll func(n int)
}

func (s *polled) DescribeWorkflowExecution(ctx context.Context, workflowID, runID string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	s.polls++
	s.onPoll(s.polls)
	return s.server.DescribeWorkflowExecution(ctx, workflowID, runID)
}

func TestFollowWaitsForARegistration(t *testing.T) {
	a, bucket := archived(t)
	s := &polled{server: threeRuns(t)}
	s.runs[2].onEnd = func() { s.runs = append(s.runs, newRun("D", "")) }
	reads := 0
	s.onPoll = func(n int) {
		switch n {
		case 5:
			register(t, a, "demo", "D", "C", 9)
			s.runs[3] = messageRun(t, "D", "", 10, 11)
		case 8:
			reads = bucket.Reads()
		case 12:
			require.Equal(t, reads, bucket.Reads(), "a closed run is not read again")
			register(t, a, "demo", "E", "D", 11)
			s.runs = append(s.runs, messageRun(t, "E", "D", 12, 12))
		}
	}
	require.Equal(t, lines(1, 12), followed(t, eventlog.New(s, "", a), "", 12))
}

func TestFollowReadsDeletedRunsFromTheArchive(t *testing.T) {
	a, _ := archived(t)
	s := threeRuns(t)
	all := s.runs
	s.runs = all[:1]
	all[0].onEnd = func() {
		fill(t, a, "demo", 1, 6)
		all[1].isDeleted = true
		s.runs = all
	}
	require.Equal(t, lines(1, 9), followed(t, eventlog.New(s, "", a), "", 9))
}

func TestFollowEndsWithAGap(t *testing.T) {
	a, _ := archived(t, [2]int{1, 2})
	s := threeRuns(t)
	s.runs[1].isDeleted = true
	var texts []string
	var last error
	for e, err := range eventlog.New(s, "", a).Follow(t.Context(), "demo", "", eventlog.FollowOptions{}) {
		if last = err; err == nil {
			texts = append(texts, line(e))
		}
	}
	require.Equal(t, lines(1, 3), strings.Join(texts, " "))
	var gap *eventlog.GapError
	require.ErrorAs(t, last, &gap)
	require.Equal(t, eventlog.GapError{ContextName: "demo", First: 4, Last: 6}, *gap)
}

func TestFollowWaitsForAnUnavailableArchive(t *testing.T) {
	a, bucket := archived(t, [2]int{1, 3})
	bucket.Fail(errors.New("no route"))
	s := &polled{server: threeRuns(t)}
	s.onPoll = func(n int) {
		if n == 3 {
			bucket.Fail(nil)
		}
	}
	require.Equal(t, lines(1, 9), followed(t, eventlog.New(s, "", a), "", 9))
}

func TestFollowWaitsForAResetRunToRegister(t *testing.T) {
	a, bucket := archived(t)
	s := &polled{server: threeRuns(t)}
	isReset, polls := false, 0
	s.runs[2].onEnd = func() {
		isReset = true
		s.runs = append(s.runs, newRun("R", "A", record(t, 4, messages(4, 4)...), record(t, 5, says("other")...)))
		bucket.Fail(errors.New("no route"))
	}
	s.fail = func(runID string) error {
		if runID == "R" {
			bucket.Fail(nil) // the archive is available before the follower looks for the registration of R
		}
		return nil
	}
	s.onPoll = func(int) {
		if isReset {
			polls++
		}
		if polls == 4 {
			register(t, a, "demo", "R", "B", 4)
		}
	}
	require.Equal(t, lines(1, 9)+" 5:other", followed(t, eventlog.New(s, "", a), "", 10))
}

func TestFollowSkipsAResetRunThatNeverRegistered(t *testing.T) {
	a, bucket := archived(t)
	s := threeRuns(t)
	reset := newRun("R", "A", record(t, 3, says("another")...), record(t, 4, says("branch")...))
	s.runs[2].onEnd = func() {
		bucket.Fail(errors.New("no route")) // its history is read
		s.runs = append(s.runs, reset)
	}
	reset.onEnd = func() { // R is terminated, and D continues the registered runs
		bucket.Fail(nil)
		register(t, a, "demo", "D", "C", 9)
		s.runs = append(s.runs, newRun("D", "", record(t, 10, says("next")...)))
	}
	require.Equal(t, lines(1, 9)+" 3:another 4:branch "+lines(1, 9)+" 10:next", followed(t, eventlog.New(s, "", a), "", 21))
}

func TestFollowWaitsForTheArchiveIfHistoriesDoNotDetermineTheLog(t *testing.T) {
	a, bucket := archived(t)
	s := &polled{server: threeRuns(t)}
	isNext, polls := false, 0
	s.runs[2].onEnd = func() { // C is terminated, then D before it records anything
		isNext = true
		register(t, a, "demo", "D", "C", 9)
		register(t, a, "demo", "E", "D", 9)
		s.runs = append(s.runs, newRun("D", ""), newRun("E", "", record(t, 10, session("D")), record(t, 11, says("next")...)))
		bucket.Fail(errors.New("no route"))
	}
	s.onPoll = func(int) {
		if isNext {
			polls++
		}
		if polls == 4 {
			bucket.Fail(nil)
		}
	}
	require.Equal(t, lines(1, 9)+" 10:(SessionStarted) 11:next", followed(t, eventlog.New(s, "", a), "", 11))
}
