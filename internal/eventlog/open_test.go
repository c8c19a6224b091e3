package eventlog_test

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
)

func TestOpenArchivesTheRestOfThePrecedingRun(t *testing.T) {
	a, _ := archived(t, [2]int{1, 7})
	s := threeRuns(t)
	s.runs = append(s.runs, newRun("D", ""))
	log := eventlog.New(s, "", a)
	opened, err := log.Open(t.Context(), "demo", "D", "")
	require.NoError(t, err)
	require.Equal(t, archive.Run{ID: "D", After: 9, Behind: "C"}, archive.Run{ID: opened.Run.ID, After: opened.Run.After, Behind: opened.Run.Behind})
	require.Len(t, opened.Events, 9)
	again, err := log.Open(t.Context(), "demo", "D", "")
	require.NoError(t, err)
	require.Equal(t, opened.Events, again.Events, "a retry returns the same")
	s.runs = s.runs[3:]
	require.Equal(t, lines(1, 9), format(t, log.Events(t.Context(), "demo", "")), "after the retention period")
}

func TestContinueReadsNoArchivedHistory(t *testing.T) {
	a, _ := archived(t, [2]int{1, 9})
	s := threeRuns(t)
	s.runs = append(s.runs, newRun("D", "C"))
	require.NoError(t, eventlog.New(s, "", a).Continue(t.Context(), "demo", archive.Run{ID: "D", After: 9, Behind: "C"}, 9))
	require.Empty(t, s.read)
	s.runs = append(s.runs, newRun("E", "D"))
	require.NoError(t, eventlog.New(s, "", a).Continue(t.Context(), "demo", archive.Run{ID: "E", After: 9, Behind: "D"}, math.MaxInt))
	require.Equal(t, map[string]int{"D": 1}, s.read, "a reset archives the abandoned branch")
}

func TestATerminatedRunDoesNotRegister(t *testing.T) {
	a, bucket := archived(t, [2]int{1, 9})
	s := threeRuns(t)
	s.runs = append(s.runs, newRun("D", ""), newRun("E", ""))
	before := bucket.Names()
	_, err := eventlog.New(s, "", a).Open(t.Context(), "demo", "D", "")
	require.ErrorContains(t, err, "register run D: the run was terminated")
	require.Equal(t, before, bucket.Names())
}

func TestARunResetBeforeItOpenedOpensLikeItsBase(t *testing.T) {
	a, _ := archived(t, [2]int{1, 9})
	s := threeRuns(t)
	s.runs = append(s.runs, newRun("R", ""))
	opened, err := eventlog.New(s, "", a).Open(t.Context(), "demo", "R", "B")
	require.NoError(t, err)
	require.Equal(t, 3, opened.Run.After)
	require.Equal(t, "A", opened.Run.Behind)
	require.Len(t, opened.Events, 3)
}

func TestUnarchivedEventsBecomeOneSegment(t *testing.T) {
	a, bucket := archived(t, [2]int{1, 2})
	log := eventlog.New(threeRuns(t), "", a)
	for _, through := range []int{2, 5, 4} {
		run, err := log.Archive(t.Context(), "demo", through)
		require.NoError(t, err)
		require.Equal(t, "C", run)
	}
	segments, reach, err := log.Archived(t.Context(), "demo")
	require.NoError(t, err)
	require.Equal(t, []int{3, 5}, []int{segments, reach})

	before := bucket.Names()
	require.NoError(t, log.ArchiveRun(t.Context(), "demo", "B", 5))
	require.Equal(t, before, bucket.Names())
	_, err = log.Archive(t.Context(), "demo", 10)
	require.EqualError(t, err, "archive context demo: no such event: the log ends at demo:0009, before demo:0010")
}

func TestArchiveThroughALostEventIsAGapError(t *testing.T) {
	a, _ := archived(t, [2]int{1, 1}, [2]int{4, 4})
	s := threeRuns(t)
	s.runs[0].isDeleted, s.runs[1].isDeleted = true, true
	for through, want := range map[int]*eventlog.GapError{
		1: nil,
		2: {ContextName: "demo", First: 2, Last: 3},
		3: {ContextName: "demo", First: 2, Last: 3},
		4: nil,
		5: {ContextName: "demo", First: 5, Last: 6},
		6: {ContextName: "demo", First: 5, Last: 6},
		7: nil,
		9: nil,
	} {
		t.Run(event.FormatID("demo", through), func(t *testing.T) {
			run, err := eventlog.New(s, "", a).Archive(t.Context(), "demo", through)
			if want == nil {
				require.NoError(t, err)
				require.Equal(t, "C", run)
				return
			}
			var gap *eventlog.GapError
			require.ErrorAs(t, err, &gap)
			require.Equal(t, want, gap)
		})
	}
}

func TestArchiveFailsWhileTheArchiveIsUnavailable(t *testing.T) {
	a, bucket := archived(t)
	s := threeRuns(t)
	s.runs[0].isDeleted = true
	bucket.Fail(errors.New("no route"))
	for _, through := range []int{2, 5} {
		_, err := eventlog.New(s, "", a).Archive(t.Context(), "demo", through)
		require.ErrorIs(t, err, blobs.ErrUnavailable, through)
	}
}

// reset returns the workflow task failure of a reset.
func reset(base string) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{
		EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED,
		Attributes: &historypb.HistoryEvent_WorkflowTaskFailedEventAttributes{WorkflowTaskFailedEventAttributes: &historypb.WorkflowTaskFailedEventAttributes{
			Cause: enumspb.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW, BaseRunId: base,
		}},
	}
}

func TestBaseIsTheNewestRegisteredRun(t *testing.T) {
	a := archive.New(blobstest.New(t).Store)
	register(t, a, "demo", "A", "", 0)
	runs := []*run{messageRun(t, "A", "", 1, 3), newRun("B", "", reset("A")), newRun("C", "", reset("B"))}
	base := func(server *server) string {
		base, err := eventlog.New(server, "", a).Base(t.Context(), "demo", "C")
		require.NoError(t, err)
		return base
	}
	require.Equal(t, "A", base(newServer(t, runs...)), "B was reset before it registered")
	require.Empty(t, base(newServer(t, runs[0], runs[2])), "the base of B is unknown")
	register(t, a, "demo", "B", "A", 2)
	require.Equal(t, "B", base(newServer(t, runs...)))
}

func TestContinueRetriesArchiving(t *testing.T) {
	a, _ := archived(t, [2]int{1, 6})
	s := threeRuns(t)
	s.runs = append(s.runs, newRun("D", "C"))
	unreachable := serviceerror.NewPermissionDenied("no route", "")
	s.fail = func(runID string) error { return unreachable }
	log := eventlog.New(s, "", a)
	next := archive.Run{ID: "D", After: 9, Behind: "C"}
	require.ErrorIs(t, log.Continue(t.Context(), "demo", next, 9), unreachable)
	folder, err := a.Folder(t.Context(), "demo")
	require.NoError(t, err)
	_, err = folder.Run(t.Context(), "D")
	require.ErrorIs(t, err, archive.ErrNoRun, "another run may follow instead of D, and archive C")
	s.fail = nil
	require.NoError(t, log.Continue(t.Context(), "demo", next, 9))
	s.runs = s.runs[3:]
	require.Equal(t, lines(1, 9), format(t, log.Events(t.Context(), "demo", "")), "after the retention period")
}

func TestContinueFailsIfTheHistoryIsShort(t *testing.T) {
	a, _ := archived(t, [2]int{1, 6})
	s := threeRuns(t)
	s.runs = append(s.runs, newRun("D", "C"))
	err := eventlog.New(s, "", a).Continue(t.Context(), "demo", archive.Run{ID: "D", After: 10, Behind: "C"}, 10)
	require.EqualError(t, err, "open context demo: no such event: the log ends at demo:0009, before demo:0010")
}
