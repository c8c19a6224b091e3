package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
)

func greeted(t *testing.T) *fakeContext {
	f := newFake(t)
	f.recordBodies(event.SessionStarted{}, event.UserMessage{Content: "Hello"}, event.AssistantMessage{Content: "Hi"})
	return f
}

func TestExportWritesTheSelectedFormat(t *testing.T) {
	for format, want := range map[string]string{
		"":         `{"_tag":"SessionStartedEvent","id":"demo:0001","timestamp":"2026-01-02T15:04:01Z","contextName":"demo","loadedEventCount":0}` + "\n",
		"jsonl":    `"parentEventId":"demo:0002","content":"Hi"}` + "\n",
		"openai":   `{"messages":[{"role":"user","content":"Hello"},{"role":"assistant","content":"Hi"}]}` + "\n",
		"markdown": "# demo\n\n## User\n\n> Hello\n\n## Assistant\n\n> Hi\n",
	} {
		t.Run(format, func(t *testing.T) {
			args := []string{"export", "-n", "demo"}
			if format != "" {
				args = append(args, "--format", format)
			}
			got := starter(t, greeted(t), "", args...)
			require.Zero(t, got.code, got.errOut)
			require.Contains(t, got.out, want)
			require.Empty(t, got.errOut)

			file := filepath.Join(t.TempDir(), "demo")
			require.Equal(t, outcome{}, starter(t, greeted(t), "", append(args, "-o", file)...))
			written, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, got.out, string(written))
		})
	}
}

func TestFailedExportLeavesTheFileUnchanged(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "demo.jsonl")
	require.NoError(t, os.WriteFile(file, []byte("before"), 0o600))
	f := newFake(t)
	f.missing = true
	require.Equal(t, exit.NoContext, starter(t, f, "", "export", "-n", "demo", "-o", file).code)
	require.Equal(t, exit.Usage, starter(t, f, "", "export", "-n", "demo", "-o", file, "--format", "xml").code)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "before", string(written))
}

func TestLongExportShowsProgress(t *testing.T) {
	f := newFake(t)
	for range 2 * countedEvents {
		f.recordBodies(event.UserMessage{})
	}
	for name, test := range map[string]struct {
		streams streams
		want    string
	}{
		"on a terminal": {streams{errTerminal: true}, "\r1000 events\r2000 events\r\x1b[K"},
		"not on standard output that is a terminal": {streams{errTerminal: true, outTerminal: true}, ""},
		"not on standard error that is a file":      {streams{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			test.streams.out, test.streams.err = &out, &errOut
			a := &app{streams: test.streams, dial: dialFake(f)}
			require.Zero(t, execute(t.Context(), a, []string{"export", "-n", "demo"}))
			require.Equal(t, test.want, errOut.String())
			require.Equal(t, 2*countedEvents, strings.Count(out.String(), "\n"))
		})
	}
}

func TestLongImportShowsProgress(t *testing.T) {
	log := strings.Repeat(`{"_tag":"UserMessage","content":"Hello"}`+"\n", 2*countedEvents)
	for name, test := range map[string]struct {
		errTerminal bool
		want        string
	}{
		"on a terminal":                        {true, "\r1000 events\r2000 events\r\x1b[K"},
		"not on standard error that is a file": {false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			a := &app{
				streams: streams{in: strings.NewReader(log), out: &out, err: &errOut, errTerminal: test.errTerminal},
				dial:    dialFake(newFake(t)),
			}
			require.Zero(t, execute(t.Context(), a, []string{"import", "-n", "demo", "-", "--json"}))
			require.Equal(t, test.want, errOut.String())
		})
	}
}

func TestImportReadsAnExport(t *testing.T) {
	log := starter(t, greeted(t), "", "export", "-n", "demo").out
	file := filepath.Join(t.TempDir(), "demo.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(log), 0o600))

	f := newFake(t)
	require.Equal(t, outcome{0, "", "imported 3 events into context demo\n"}, starter(t, f, "", "import", "-n", "demo", file))
	require.Equal(t, log, starter(t, f, "", "export", "-n", "demo").out)

	f = newFake(t)
	f.Rename("copy")
	require.Equal(t, outcome{0, `{"contextName":"copy","events":3}` + "\n", ""}, starter(t, f, log, "import", "-n", "copy", "-", "--json"))
	require.Equal(t, strings.ReplaceAll(log, "demo", "copy"), starter(t, f, "", "export", "-n", "copy").out)
}

func TestIncompleteInputImportsNothing(t *testing.T) {
	f := newFake(t)
	got := starter(t, f, `{"_tag":"UserMessage","content":"Hello"}`+"\nnonsense", "import", "-n", "demo", "-")
	require.Equal(t, exit.Failure, got.code)
	require.Contains(t, got.errOut, "starter: read -: line 2: ")
	require.Equal(t, exit.Usage, starter(t, f, "", "import", "-n", "demo", filepath.Join(t.TempDir(), "missing")).code)
	require.Equal(t, exit.Usage, starter(t, f, "", "import", "-n", "demo").code)
	require.Empty(t, f.asked)
}

func TestRejectedImportSaysWhatToDo(t *testing.T) {
	f := newFake(t)
	f.err = client.ErrExists
	require.Equal(t, outcome{exit.Failure, "", "starter: context already exists (choose another name)\n"},
		starter(t, f, `{"_tag":"UserMessage","content":"Hello"}`, "import", "-n", "demo", "-"))
}
