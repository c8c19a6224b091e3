package agentlog_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/agentlog"
	"github.com/seed-9ed7edd4/chronicle/event"
)

var update = flag.Bool("update", false, "write the events of the logs in testdata as what they want")

func TestLogsAreReadAsTheseEvents(t *testing.T) {
	logs, err := filepath.Glob("testdata/*.jsonl")
	require.NoError(t, err)
	require.NotEmpty(t, logs)
	for _, log := range logs {
		name := strings.TrimSuffix(filepath.Base(log), ".jsonl")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(log)
			require.NoError(t, err)
			format, _, _ := strings.Cut(name, "-")
			got := written(t, read(t, agentlog.Format(format), string(text)))
			file := filepath.Join("testdata", name+".events")
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), got)
		})
	}
}

// read reads a log to its end.
func read(t *testing.T, format agentlog.Format, log string) []event.Event {
	t.Helper()
	var events []event.Event
	for e, err := range agentlog.Read(strings.NewReader(log), format) {
		require.NoError(t, err)
		events = append(events, e)
	}
	return events
}

// written is one event per line.
func written(t *testing.T, events []event.Event) string {
	t.Helper()
	var b bytes.Buffer
	for _, e := range events {
		line, err := e.MarshalJSON()
		require.NoError(t, err)
		b.Write(append(line, '\n'))
	}
	return b.String()
}

