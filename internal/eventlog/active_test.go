package eventlog_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	historypb "go.temporal.io/api/history/v1"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
)

func TestActivityTellsWhetherAContextIsArchived(t *testing.T) {
	archive, restore := event.SetDetails{Archived: new(true)}, event.SetDetails{Archived: new(false)}
	title := event.SetDetails{Title: new("A plan")}
	hi := event.UserMessage{Content: "Hi"}
	results := make([]*historypb.HistoryEvent, 300)
	for i := range results {
		results[i] = record(t, 4+i, event.Note{Kind: event.NoteThinking, Content: "more"})
	}
	for name, test := range map[string]struct {
		runs [][]event.Body
		want bool
	}{
		"no details":                    {[][]event.Body{{session(""), hi}}, false},
		"archived":                      {[][]event.Body{{session(""), hi, archive}}, true},
		"archived during an answer":     {[][]event.Body{{session(""), hi, archive, event.AssistantMessage{Content: "Ho"}}}, true},
		"titled since":                  {[][]event.Body{{session(""), hi, archive, title}}, true},
		"restored":                      {[][]event.Body{{session(""), hi, archive, restore}}, false},
		"restored by a message":         {[][]event.Body{{session(""), archive, hi}}, false},
		"in the session before":         {[][]event.Body{{session(""), hi, archive}, {session("0"), title}}, true},
		"not in the session before":     {[][]event.Body{{session(""), hi}, {session("0"), title}}, false},
		"a fork of an archived context": {[][]event.Body{{session(""), archive, event.SessionStarted{LoadedEventCount: 2, ForkedFrom: "demo:0002"}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, first := newServer(t), 1
			for i, bodies := range test.runs {
				s.runs = append(s.runs, newRun(string(rune('0'+i)), "", record(t, first, bodies...)))
				first += len(bodies)
			}
			got, err := eventlog.New(s, "", nil).Activity(t.Context(), "demo")
			require.NoError(t, err)
			require.Equal(t, test.want, got.Archived)
		})
	}
	long := newRun("run", "", slices.Concat([]*historypb.HistoryEvent{record(t, 1, session(""), hi, archive)}, results)...)
	got, err := eventlog.New(newServer(t, long), "", nil).Activity(t.Context(), "demo")
	require.NoError(t, err)
	require.Equal(t, eventlog.Activity{At: epoch, Archived: true}, got)
	_, err = eventlog.New(newServer(t), "", nil).Activity(t.Context(), "demo")
	require.ErrorIs(t, err, eventlog.ErrNoContext)
}
