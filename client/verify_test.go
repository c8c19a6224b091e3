package client_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
)

func TestAValidLogHasNoProblems(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		require.Empty(r, client.Check("demo", eventtest.Log("demo").Draw(r, "log")...))
	})
}

func TestEachDefectIsReportedOnce(t *testing.T) {
	for name, test := range map[string]struct {
		damage func([]event.Event) []event.Event
		want   client.Problem
	}{
		"an event is missing": {
			func(log []event.Event) []event.Event { log[2].ParentID = id(1); return append(log[:1], log[2:]...) },
			client.Problem{Place: "demo:0003", Text: "the id is out of sequence (want demo:0002)"},
		},
		"another parent": {
			func(log []event.Event) []event.Event { log[2].ParentID = id(1); return log },
			client.Problem{Place: "demo:0003", Text: `the parent is "demo:0001" (want the preceding event "demo:0002")`},
		},
		"another context": {
			func(log []event.Event) []event.Event { log[2].ContextName = "other"; return log },
			client.Problem{Place: "demo:0003", Text: `the context name is "other" (want "demo")`},
		},
		"an earlier time": {
			func(log []event.Event) []event.Event {
				log[2].Timestamp = log[2].Timestamp.Add(-time.Second)
				return log[:3]
			},
			client.Problem{Place: "demo:0003", Text: "the timestamp 2026-01-02T15:04:04Z is earlier than 2026-01-02T15:04:05Z of the preceding event"},
		},
		"invalid fields": {
			func(log []event.Event) []event.Event { log[2].Body = event.LLMRequestStarted{}; return log },
			client.Problem{Place: "demo:0003", Text: "LLMRequestStartedEvent.requestId: empty"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, []client.Problem{test.want}, client.Check("demo", test.damage(numbered(4))...))
		})
	}
}

func TestVerifyChecksTheArchiveAndTheLog(t *testing.T) {
	bucket := blobstest.New(t)
	logs := archive.New(bucket.Store)
	log := numbered(9)
	var segments []archive.Segment
	folder, err := logs.Folder(t.Context(), "demo")
	require.NoError(t, err)
	require.NoError(t, folder.Register(t.Context(), archive.Run{ID: "A"}))
	for begin := 0; begin < 9; begin += 3 {
		segment, err := logs.Write(t.Context(), "demo", "A", log[begin:begin+3])
		require.NoError(t, err)
		segments = append(segments, segment)
	}
	demo := archived(t, &temporal{}, logs, "demo")
	got, err := demo.Verify(t.Context())
	require.NoError(t, err)
	require.Equal(t, client.Verification{ContextName: "demo", Events: 9, Segments: 3, Problems: []client.Problem{}}, got)

	bucket.Set("blobs/demo/"+string(segments[1].Blob), nil)
	got, err = demo.Verify(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, got.Events)
	require.Len(t, got.Problems, 2)
	require.Equal(t, "contexts/demo/A/000000000004-000000000006.json", got.Problems[0].Place)
	require.Equal(t, "demo:0004", got.Problems[1].Place)
	require.Contains(t, got.Problems[1].Text, "events from 4 on of context demo are in no history, and the archive cannot be read")

	_, err = archived(t, &temporal{}, logs, "other").Verify(t.Context())
	require.ErrorIs(t, err, client.ErrNoContext)
}
