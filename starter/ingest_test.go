package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

const (
	droidLog  = "../internal/formats/agent/testdata/droid.jsonl"
	claudeLog = "../internal/formats/agent/testdata/claude.jsonl"
)

// taking returns a context that accepts all inputs.
func taking(t *testing.T) *fakeContext {
	f := newFake(t)
	f.take = func([]event.Event) error { return nil }
	return f
}

func TestIngestDeduplicatesEvents(t *testing.T) {
	f := taking(t)
	f.missing = true
	require.Equal(t, outcome{0, "", "ingested 17 events into context demo\n"},
		starter(t, f, "", "ingest", "-n", "demo", "--format", "droid", droidLog))
	f.missing = false
	log, err := os.ReadFile(droidLog)
	require.NoError(t, err)
	more := string(log) + "done\n{\n"
	require.Equal(t, outcome{0, `{"contextName":"demo","events":2,"repeated":17,"warnings":1,"refused":0,"skipped":0}` + "\n", ""},
		starter(t, f, more, "ingest", "-n", "demo", "--format", "droid", "--json"))
	require.Equal(t, outcome{0, "", "ingested 0 events into context demo; already recorded: 19\n"},
		starter(t, f, more, "ingest", "-n", "demo", "--format", "droid", "-"))
	require.Equal(t, outcome{0, "", "ingested 19 events into context demo; lines not recorded: 1\n"},
		starter(t, f, "", "ingest", "-n", "demo", claudeLog))
	require.Len(t, f.all(), 38)
	for _, e := range f.all() {
		if m, ok := e.Body.(event.UserMessage); ok {
			require.False(t, m.Triggers(), "no model is called")
		}
	}
}

func TestIngestSendsEachLineAtOnce(t *testing.T) {
	f := taking(t)
	stdin, write := io.Pipe()
	var errOut bytes.Buffer
	code := make(chan int, 1)
	go func() {
		a := &app{streams: streams{in: stdin, out: io.Discard, err: &errOut}, dial: dialFake(f)}
		code <- execute(t.Context(), a, []string{"ingest", "-n", "demo", "--format", "droid"})
	}()
	for n := range 3 {
		fmt.Fprintf(write, `{"type":"message","role":"user","text":"%d"}`+"\n", n)
		f.await(t, n+1)
	}
	require.NoError(t, write.Close())
	require.Zero(t, <-code)
	require.Equal(t, "ingested 3 events into context demo\n", errOut.String())
}

func TestInterruptedIngestReportsTheEventsSent(t *testing.T) {
	f := taking(t)
	ctx, cancel := context.WithCancel(t.Context())
	stdin, write := io.Pipe()
	defer write.Close()
	go func() {
		fmt.Fprintln(write, `{"type":"message","role":"user","text":"Hello"}`)
		f.await(t, 1)
		cancel()
	}()
	require.Equal(t, outcome{exit.Interrupted, "", "ingested 1 event into context demo\n"},
		starterWith(t, ctx, &fakeClient{context: f}, stdin, "ingest", "-n", "demo", "--format", "droid"))
}

// await waits until a number of events is recorded.
func (f *fakeContext) await(t *testing.T, count int) {
	for e := range f.Follow(t.Context(), client.FollowOptions{}) {
		if event.Counter(e.ID) >= count {
			return
		}
	}
}

func TestIngestInputsFitIntoUpdates(t *testing.T) {
	long := strings.Repeat("x", wire.MaxAppendBytes)
	var log strings.Builder
	for n := range 2000 {
		fmt.Fprintf(&log, `{"type":"tool_call","id":"%[1]d","toolName":"Read"}`+"\n"+`{"type":"tool_result","id":"%[1]d","value":"%[2]s"}`+"\n", n, long[:n/4])
	}
	fmt.Fprintf(&log, `{"type":"message","role":"assistant","text":"%s"}`+"\n", long)
	f := taking(t)
	inputs := 0
	f.take = func(events []event.Event) error {
		inputs++
		input, err := wire.JSON(events)
		require.NoError(t, err)
		size := len(input.Payload().GetData())
		require.True(t, size <= wire.MaxAppendBytes || len(events) == 1, "%d events of %d bytes", len(events), size)
		require.LessOrEqual(t, len(events), maxBatchEvents)
		return nil
	}
	require.Zero(t, starter(t, f, log.String(), "ingest", "-n", "demo", "--format", "droid").code)
	require.Len(t, f.all(), 4001)
	require.Greater(t, inputs, 4001/maxBatchEvents)
}

func TestIngestContinuesAfterRejectedEvents(t *testing.T) {
	f := newFake(t)
	f.take = func(events []event.Event) error {
		for _, e := range events {
			if call, ok := e.Body.(event.ToolCall); ok && call.ToolName == "Execute" {
				return fmt.Errorf("%w: no commands", client.ErrRefused)
			}
		}
		return nil
	}
	got := starter(t, f, "", "ingest", "-n", "demo", "--format", "droid", droidLog)
	require.Equal(t, outcome{exit.Failure, "", "ingested 16 events into context demo\n" +
		"starter: ingest into context demo: events rejected: 1 (see why with \"starter events -n demo\")\n"}, got)
}

func TestIngestRetriesWhileTemporalIsUnreachable(t *testing.T) {
	for name, test := range map[string]struct {
		outage time.Duration
		code   int
		events int
	}{
		"in time":  {time.Hour, exit.OK, 17},
		"too late": {0, exit.Unreachable, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			left := 3
			f.take = func([]event.Event) error {
				if left--; left >= 0 {
					return client.ErrUnreachable
				}
				return nil
			}
			var errOut bytes.Buffer
			err := runIngest(t.Context(), ingestOptions{
				app:  &app{streams: streams{err: &errOut}, dial: dialFake(f)},
				name: "demo", format: "droid", file: droidLog, outage: test.outage, tryAgain: time.Nanosecond,
			})
			require.Equal(t, test.code, exitCode(err))
			require.Len(t, f.all(), test.events)
			if test.code == exit.OK {
				require.Equal(t, "Temporal is unreachable; retrying\ningested 17 events into context demo\n", errOut.String())
			}
		})
	}
}

func TestIngestRequiresAFileOnATerminal(t *testing.T) {
	err := runIngest(t.Context(), ingestOptions{app: &app{streams: streams{inTerminal: true}}, name: "demo", format: "droid", file: "-"})
	require.Equal(t, exit.Usage, exitCode(err))
	require.EqualError(t, err, "log: missing (name a FILE, or pipe the log to standard input)")
}

func TestIngestRefusesOtherFilesBeforeAnythingIsRecorded(t *testing.T) {
	notes := filepath.Join(t.TempDir(), "notes.jsonl")
	require.NoError(t, os.WriteFile(notes, []byte(`{"note":"Buy bread"}`+"\n"), 0o600))
	const formats = "Claude Code: --output-format stream-json, or a file of ~/.claude/projects; Codex CLI: a rollout file of ~/.codex/sessions; " +
		"Droid CLI: --output-format stream-json, or a file of ~/.factory/sessions"
	dir := t.TempDir()
	for name, c := range map[string]struct {
		stdin, want string
		args        []string
	}{
		"a directory":          {args: []string{dir}, want: dir + ": is a directory (want a file)"},
		"a followed directory": {args: []string{"--follow", dir}, want: dir + ": is a directory (want a file)"},
		"a file": {args: []string{notes},
			want: notes + ": log not recognized (want " + formats + ")"},
		"a followed file": {args: []string{"--follow", notes},
			want: notes + ": log not recognized (want " + formats + ")"},
		"standard input": {stdin: "Hello\n",
			want: "standard input: log not recognized (want " + formats + ")"},
		"nothing": {
			want: "standard input: log not recognized (want " + formats + ")"},
		"the log of another agent": {args: []string{"--format", "claude", droidLog},
			want: droidLog + ": log not recognized: not of format claude (it is of format droid)"},
		"what cannot be followed": {args: []string{"--follow"}, want: "--follow: requires a FILE"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t) // fails on any input
			f.missing = true
			got := starter(t, f, c.stdin, append([]string{"ingest", "-n", "demo"}, c.args...)...)
			require.Equal(t, outcome{exit.Usage, "", "starter ingest: " + c.want + "\nRun 'starter ingest --help' for usage.\n"}, got)
		})
	}
}

func TestIngestFollowsAFile(t *testing.T) {
	line := func(n int) string { return fmt.Sprintf(`{"type":"message","role":"user","text":"%d"}`+"\n", n) }
	log := filepath.Join(t.TempDir(), "log.jsonl")
	write := func(text string) {
		file, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		require.NoError(t, err)
		_, err = file.WriteString(text)
		require.NoError(t, err)
		require.NoError(t, file.Close())
	}
	write("")
	f := taking(t)
	ctx, cancel := context.WithCancel(t.Context())
	var errOut bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- exitCode(runIngest(ctx, ingestOptions{
			app: &app{streams: streams{err: &errOut}, dial: dialFake(f)}, name: "demo", file: log, follow: true, poll: time.Millisecond,
		}))
	}()
	write(line(1))
	f.await(t, 1)
	write(line(2)[:9])
	write(line(2)[9:] + line(3))
	f.await(t, 3)

	require.NoError(t, os.Truncate(log, 0))
	write(line(4))
	f.await(t, 4)

	require.NoError(t, os.Rename(log, log+".1"))
	write(line(4) + line(5))
	f.await(t, 5)
	cancel()
	require.Equal(t, exit.Interrupted, <-code)
	var said []string
	for _, e := range f.all() {
		said = append(said, e.Body.(event.UserMessage).Content)
	}
	require.Equal(t, []string{"1", "2", "3", "4", "5"}, said)
	require.Equal(t, "ingested 5 events into context demo; already recorded: 1\n", errOut.String())
}
