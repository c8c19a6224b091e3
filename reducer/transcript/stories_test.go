package transcript_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest/golden"
	"github.com/seed-9ed7edd4/chronicle/reducer/transcript"
)

// A story in testdata has a script of events, and in "want" the patch of each. A line
// of a script is one of
//
//	JSON            the next event of the log
//	again N         repeat event N
//	delta JSON      a delta, which is not part of the log
//	since VERSION   the patch from that version to the newest
//	show            the document, abbreviated
//
// Events have ids from demo:0001 and are one second apart.
func TestStories(t *testing.T) { golden.Stories(t, "testdata/*.txtar", run) }

func run(t *testing.T, script string) string {
	var out strings.Builder
	patcher := transcript.NewPatcher()
	var log []event.Event
	for line := range strings.Lines(script) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fmt.Fprintf(&out, "> %s\n", line)
		command, rest, _ := strings.Cut(line, " ")
		switch command {
		case "again":
			var n int
			_, err := fmt.Sscan(rest, &n)
			require.NoError(t, err)
			printPatch(t, &out, patcher.Apply(log[n-1]))
		case "delta":
			var e event.Event
			if !strings.Contains(rest, "_tag") {
				rest = `{"_tag":"TextDelta",` + strings.TrimPrefix(rest, "{")
			}
			require.NoError(t, e.UnmarshalJSON([]byte(rest)))
			printPatch(t, &out, patcher.Apply(e))
		case "since":
			var version int
			_, err := fmt.Sscan(rest, &version)
			require.NoError(t, err)
			patch, ok := patcher.Since(version)
			require.True(t, ok)
			printPatch(t, &out, patch)
		case "show":
			for i, item := range patcher.Document().Entries {
				e := item.Content
				fmt.Fprintf(&out, "  %d %s %s%s: %s\n", i, e.EntryType.Type, e.EntryType.Subtype, e.EntryType.Status, e.Text())
			}
		default:
			e := logged(t, len(log)+1, line)
			log = append(log, e)
			printPatch(t, &out, patcher.Apply(e))
		}
	}
	return out.String()
}

// logged returns event n of a log.
func logged(t require.TestingT, n int, line string) event.Event {
	var e event.Event
	require.NoError(t, e.UnmarshalJSON([]byte(line)), line)
	e.ID, e.ContextName = event.FormatID("demo", n), "demo"
	e.Timestamp = eventtest.Epoch.Add(time.Duration(n) * time.Second)
	return e
}

func printPatch(t *testing.T, out *strings.Builder, patch []transcript.Operation) {
	if len(patch) == 0 {
		out.WriteString("  nothing\n")
	}
	for _, operation := range patch {
		var line bytes.Buffer
		encoder := json.NewEncoder(&line)
		encoder.SetEscapeHTML(false)
		require.NoError(t, encoder.Encode(operation))
		fmt.Fprintf(out, "  %s", &line)
	}
}
