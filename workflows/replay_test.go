package workflows_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/workflows/replaytest"
)

// The end-to-end tests recorded these histories on a real server, one per story. They
// never change. docs/architecture.md describes how to add one.
func histories(t *testing.T) map[string]*historypb.History {
	files, err := filepath.Glob("testdata/histories/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	out := map[string]*historypb.History{}
	for _, file := range files {
		history, err := replaytest.Load(file)
		require.NoError(t, err)
		out[strings.TrimSuffix(filepath.Base(file), ".json")] = history
	}
	return out
}

func TestReplayOfEveryRecordedHistory(t *testing.T) {
	for story, history := range histories(t) {
		t.Run(story, func(t *testing.T) {
			require.NoError(t, replaytest.Replay(history, converter.ExternalStorage{}))
		})
	}
}

func TestReplayDetectsALogThatDiffersFromTheCode(t *testing.T) {
	history := proto.CloneOf(histories(t)["conversation"])
	forged := false
	for _, e := range history.Events {
		marker := e.GetMarkerRecordedEventAttributes()
		if e.EventType != enumspb.EVENT_TYPE_MARKER_RECORDED || marker.MarkerName != wire.MarkerName {
			continue
		}
		for _, p := range marker.Details[wire.MarkerData].Payloads {
			was := string(p.Data)
			p.Data = []byte(strings.Replace(was, ":0003", ":0009", 1))
			forged = forged || was != string(p.Data)
		}
	}
	require.True(t, forged)
	require.ErrorContains(t, replaytest.Replay(history, converter.ExternalStorage{}), "where this code makes")
}
