package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
)

func TestAgentOutputIsIngestedLive(t *testing.T) {
	t.Parallel()
	const format = "claude"
	w := newWorld(t)
	w.worker()
	file := "../../internal/formats/agent/testdata/" + format + ".jsonl"
	printed, err := os.ReadFile(file)
	require.NoError(t, err)
	want, err := os.ReadFile("../../internal/formats/agent/testdata/" + format + ".events")
	require.NoError(t, err)
	c := w.open(format)

	agent, stop := w.startIngest(c, format)
	lines := strings.SplitAfter(strings.TrimSuffix(string(printed), "\n"), "\n")
	_, err = io.WriteString(agent, lines[0]+lines[1])
	require.NoError(t, err)
	w.await(c, isTag(event.TagUserMessage))
	_, err = io.WriteString(agent, strings.Join(lines[2:], ""))
	require.NoError(t, err)
	events := strings.Count(string(want), "\n")
	require.Contains(t, stop(), fmt.Sprintf("ingested %d events into context %s", events, c.Name()))

	recorded := slices.Collect(strings.Lines(string(want)))
	var last event.Event
	require.NoError(t, json.Unmarshal([]byte(recorded[events-1]), &last))
	w.await(c, func(e event.Event) bool { return e.ClientEventID == last.ClientEventID })
	require.Equal(t, string(want), w.sent(c))
	var again struct{ Events, Repeated int }
	require.NoError(t, json.Unmarshal([]byte(w.starter("", "ingest", "-n", c.Name(), "--format", format, file, "--json")), &again))
	require.Zero(t, again.Events)
	require.Equal(t, events, again.Repeated)
	require.Equal(t, string(want), w.sent(c), "a repeated import must add nothing")
	require.Empty(t, w.model.Requests())
	w.replay(c, "")
}

func TestALongAgentLogIsIngestedOnce_Alone(t *testing.T) {
	large(t)
	const calls, megabytes = 600, 3
	w := newWorld(t)
	w.worker()
	c := w.open("long")
	var log strings.Builder
	for n := range calls {
		fmt.Fprintf(&log, `{"type":"tool_call","id":"%[1]d","toolName":"Execute","parameters":{"command":"step %[1]d"}}`+"\n", n)
		fmt.Fprintf(&log, `{"type":"tool_result","id":"%d","toolId":"Execute","value":"%s"}`+"\n", n, strings.Repeat("x", megabytes<<20/calls))
	}
	fmt.Fprintf(&log, `{"type":"tool_call","id":"last","toolName":"Read"}`+"\n"+`{"type":"tool_result","id":"last","value":"%s"}`+"\n", strings.Repeat("x", 5<<20))
	const events = 2*calls + 2 // more than the session deduplicates
	for _, want := range []string{
		fmt.Sprintf(`"events":%d,"repeated":0,"warnings":0,"refused":0`, events), fmt.Sprintf(`"events":0,"repeated":%d,"warnings":0,"refused":0`, events),
	} {
		require.Contains(t, w.starter(log.String(), "ingest", "-n", c.Name(), "--format", "droid", "--json"), want)
		w.await(c, func(e event.Event) bool {
			result, ok := e.Body.(event.ToolResult)
			return ok && result.ToolCallID == "last"
		})
	}
	require.Equal(t, events, strings.Count(w.sent(c), "\n"))
}

// startIngest runs starter ingest on the output of an agent. stop closes the output, waits
// for the command, and returns its standard error.
func (w *world) startIngest(c *client.Context, format string) (agent io.Writer, stop func() string) {
	w.t.Helper()
	file, err := built()
	require.NoError(w.t, err)
	cmd := exec.CommandContext(w.ctx, file, w.withAddresses([]string{"ingest", "-n", c.Name(), "--format", format})...)
	var note bytes.Buffer
	cmd.Stderr = &note
	in, err := cmd.StdinPipe()
	require.NoError(w.t, err)
	require.NoError(w.t, cmd.Start())
	return in, func() string {
		require.NoError(w.t, in.Close())
		require.NoError(w.t, cmd.Wait(), note.String())
		return note.String()
	}
}

// sent returns the events that clients sent, one per line, without assigned fields.
func (w *world) sent(c *client.Context) string {
	w.t.Helper()
	var b bytes.Buffer
	for _, e := range w.from(c, "") {
		if e.ClientEventID == "" {
			continue // written by the session
		}
		line, err := event.Event{ClientEventID: e.ClientEventID, Body: e.Body, Extra: e.Extra}.MarshalJSON()
		require.NoError(w.t, err)
		b.Write(append(line, '\n'))
	}
	return b.String()
}
