package eventlog_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
)

func TestARunOpensWhenTheDeletionHasEnded(t *testing.T) {
	a, bucket := archived(t, [2]int{1, 9})
	s := threeRuns(t)
	s.runs = append(s.runs, newRun("D", ""))
	log := eventlog.New(s, "", a)
	before := bucket.Names()
	s.deletion = enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	_, err := log.Open(t.Context(), "demo", "D", "")
	require.EqualError(t, err, "open context demo: it is being deleted (the run opens when the deletion has ended)")
	require.Error(t, log.Continue(t.Context(), "demo", archive.Run{ID: "D", After: 9, Behind: "C"}, 9))
	require.Equal(t, before, bucket.Names())
	require.Empty(t, s.read)

	s.deletion = enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	opened, err := log.Open(t.Context(), "demo", "D", "")
	require.NoError(t, err)
	require.Len(t, opened.Events, 9)
}

// Its memo names the deleted run, whose input is not lost.
func TestAContextBeginsAgainAfterADeletion(t *testing.T) {
	s := newServer(t, newRun("D", ""))
	log := eventlog.New(s, "", archive.New(blobstest.New(t).Store))
	opened, err := log.Open(t.Context(), "demo", "D", "")
	require.NoError(t, err)
	require.Empty(t, opened.Events)
	unrecorded, err := log.Unrecorded(t.Context(), "demo", opened, "deleted")
	require.NoError(t, err)
	require.Empty(t, unrecorded)
}

func TestLastActivityOmitsTheEndOfASession(t *testing.T) {
	for name, test := range map[string]struct {
		archived []event.Body // the n-th event was recorded n hours after the epoch
		recorded []event.Body // at the epoch, after the archived ones
		want     time.Duration
	}{
		"one event":                   {archived: says("a"), want: 1},
		"many events":                 {archived: says("a", "b", "c", "d"), want: 4},
		"an ended session":            {archived: append(says("a", "b", "c"), event.SessionEnded{}), want: 3},
		"a short session":             {archived: append(says("a"), event.SessionEnded{}), want: 1},
		"an event that is unarchived": {archived: append(says("a"), event.SessionEnded{}), recorded: says("b"), want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			a := archive.New(blobstest.New(t).Store)
			register(t, a, "demo", "A", "", 0)
			var events []event.Event
			for i, body := range test.archived {
				events = append(events, event.Event{
					ID: event.FormatID("demo", i+1), ContextName: "demo", Timestamp: epoch.Add(time.Duration(i+1) * time.Hour), Body: body,
				})
			}
			_, err := a.Write(t.Context(), "demo", "A", events)
			require.NoError(t, err)
			s := newServer(t)
			if test.recorded != nil {
				s.runs = append(s.runs, newRun("A", "", record(t, len(events)+1, test.recorded...)))
			}
			last, err := eventlog.New(s, "", a).LastActivity(t.Context(), "demo")
			require.NoError(t, err)
			require.Equal(t, test.want*time.Hour, last.Sub(epoch))
		})
	}
	_, err := eventlog.New(newServer(t), "", archive.New(blobstest.New(t).Store)).LastActivity(t.Context(), "demo")
	require.ErrorIs(t, err, eventlog.ErrNoContext)
}
