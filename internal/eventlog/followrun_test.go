package eventlog_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
)

// followRun formats the log of a run with the run of each event, and each element without an event as
// "|".
func followRun(t *testing.T, log *eventlog.Log, runID string, from archive.Position) string {
	t.Helper()
	var texts []string
	for e, err := range log.FollowRun(t.Context(), "demo", runID, from) {
		require.NoError(t, err)
		if e.ID == "" {
			texts = append(texts, "|")
			continue
		}
		texts = append(texts, fmt.Sprint(e.RunID, line(e.Event)))
	}
	return strings.Join(texts, " ")
}

func TestFollowRunNamesTheRunsOfEvents(t *testing.T) {
	a, _ := archived(t, [2]int{1, 4})
	s := threeRuns(t)
	s.runs[2].onEnd = func() { s.runs[2].history = append(s.runs[2].history, record(t, 10, says("more")...)) }
	require.Equal(t, "A2:m2 A3:m3 B4:m4 B5:m5 B6:m6 C7:m7 C8:m8 C9:m9 | C10:more |",
		strings.TrimSuffix(followRun(t, eventlog.New(s, "", a), "C", archive.Position{RunID: "A", After: 1}), " |"))
}

func TestFollowRunEndsWithItsRun(t *testing.T) {
	a, _ := archived(t)
	require.Equal(t, "A3:m3 B4:m4 B5:m5 B6:m6", strings.ReplaceAll(followRun(t, eventlog.New(threeRuns(t), "", a), "B", archive.Position{RunID: "A", After: 2}), " |", ""))
}

func TestFollowRunStartsAtTheResetPoint(t *testing.T) {
	a, _ := archived(t)
	s := threeRuns(t)
	s.runs = append(s.runs, newRun("R", "A", record(t, 4, messages(4, 4)...), record(t, 5, says("other")...)))
	register(t, a, "demo", "R", "B", 4)
	require.Equal(t, "R5:other", strings.ReplaceAll(followRun(t, eventlog.New(s, "", a), "R", archive.Position{RunID: "C", After: 8}), " |", ""))
}

func TestFollowRunOmitsLostEvents(t *testing.T) {
	a, _ := archived(t, [2]int{1, 3})
	s := threeRuns(t)
	s.runs[1].isDeleted = true
	require.Equal(t, "A3:m3 C7:m7 C8:m8 C9:m9", strings.ReplaceAll(followRun(t, eventlog.New(s, "", a), "C", archive.Position{RunID: "A", After: 2}), " |", ""))
}
