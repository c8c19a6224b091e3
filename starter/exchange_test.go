package main

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
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

// attached has an image in the blob store, and one that the store has lost.
func attached(t *testing.T) *fakeContext {
	f := newFake(t)
	image := []byte("PNG of a quay")
	f.files = map[string][]byte{event.RefOf(image): image}
	f.recordBodies(event.FileAttachment{Source: event.Source{Type: event.SourceBlob, Ref: event.RefOf(image)}, MediaType: "image/png", Size: 13},
		event.UserMessage{Content: "What is this?"})
	return f
}

func TestExportCarriesAttachments(t *testing.T) {
	inline := base64.StdEncoding.EncodeToString([]byte("PNG of a quay"))
	for format, want := range map[string]string{
		"jsonl":    `"source":{"type":"blob","data":"` + inline + `"}`,
		"openai":   `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + inline + `"}}`,
		"markdown": "![image](data:image/png;base64," + inline + ")",
	} {
		got := starter(t, attached(t), "", "export", "-n", "demo", "--format", format)
		require.Zero(t, got.code, got.errOut)
		require.Contains(t, got.out, want)
		require.Empty(t, got.errOut)

		got = starter(t, attached(t), "", "export", "-n", "demo", "--format", format, "--no-attachments")
		require.Zero(t, got.code, got.errOut)
		require.NotContains(t, got.out, inline)
		require.Contains(t, got.out, "sha256/")
		require.Equal(t, "left out the bytes of 1 reference\n", got.errOut)

		f := attached(t)
		f.recordBodies(event.FileAttachment{Source: event.Source{Type: event.SourceBlob, Ref: event.RefOf([]byte("lost"))}, MediaType: "image/png", Size: 4},
			event.UserMessage{Content: "And this?"})
		file := filepath.Join(t.TempDir(), "demo")
		got = starter(t, f, "", "export", "-n", "demo", "--format", format, "-o", file)
		require.Equal(t, outcome{exit.Failure, "", "starter: export context demo: the output lacks the bytes of 1 reference (\"starter verify -n demo\" lists the events whose bytes are missing in the blob store)\n"}, got)
		written, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Contains(t, string(written), want)
		require.Contains(t, string(written), event.RefOf([]byte("lost")))

		f = attached(t)
		f.files = nil
		got = starter(t, f, "", "export", "-n", "demo", "--format", format)
		require.Equal(t, exit.Failure, got.code)
		require.Contains(t, got.errOut, "event demo:000")
		require.Contains(t, got.errOut, "; or add --no-attachments")
	}
}

func TestImportListsMissingBytes(t *testing.T) {
	f := newFake(t)
	f.lacks = []string{"demo:0001"}
	const log = `{"_tag":"UserMessage","content":"Hello"}`
	require.Equal(t, outcome{exit.Failure, "", "starter: the blob store lacks the bytes\n"}, starter(t, f, log, "import", "-n", "demo", "-"))
	require.Equal(t, outcome{0, "", "imported 1 event into context demo\nthe blob store lacks the bytes of demo:0001\n"},
		starter(t, f, log, "import", "-n", "demo", "-", "--allow-missing"))
	require.Equal(t, outcome{0, `{"contextName":"demo","events":1,"missing":["demo:0001"]}` + "\n", ""},
		starter(t, f, log, "import", "-n", "demo", "-", "--allow-missing", "--json"))
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
	require.Equal(t, outcome{0, `{"contextName":"copy","events":3}` + "\n", ""}, starter(t, f, log, "import", "-n", "copy", "--json"))
	require.Equal(t, strings.ReplaceAll(log, "demo", "copy"), starter(t, f, "", "export", "-n", "copy").out)
}

func TestIncompleteInputImportsNothing(t *testing.T) {
	f := newFake(t)
	got := starter(t, f, `{"_tag":"UserMessage","content":"Hello"}`+"\nnonsense", "import", "-n", "demo", "-")
	require.Equal(t, exit.Failure, got.code)
	require.Contains(t, got.errOut, "starter: read -: line 2: ")
	require.Equal(t, exit.Usage, starter(t, f, "", "import", "-n", "demo", filepath.Join(t.TempDir(), "missing")).code)
	got = runStarter(t, t.Context(), &fakeClient{context: f}, streams{in: strings.NewReader(""), inTerminal: true}, "import", "-n", "demo")
	require.Equal(t, exit.Usage, got.code)
	require.Contains(t, got.errOut, "FILE: missing")
	require.Empty(t, f.asked)
}

func TestRejectedImportSaysWhatToDo(t *testing.T) {
	f := newFake(t)
	f.err = client.ErrExists
	require.Equal(t, outcome{exit.Failure, "", "starter: context already exists (choose another name)\n"},
		starter(t, f, `{"_tag":"UserMessage","content":"Hello"}`, "import", "-n", "demo", "-"))
}

func TestImportSkipsInvalidConversations(t *testing.T) {
	const message = `"mapping":{"a":{"message":{"author":{"role":"user"},"content":{"parts":["Hi"]}}}}`
	export := `[{"title":"First","id":"1",` + message + `},{"title":"Broken","id":"2"},{"title":"Last","id":"3",` + message + `}]`
	c := &fakeClient{context: newFakeOf(t, "first-1"), others: []*fakeContext{newFakeOf(t, "broken-2"), newFakeOf(t, "last-3")}}
	require.Equal(t, outcome{exit.Failure, "", "imported 2 events into context first-1\n" +
		"starter: conversation \"Broken\": element 2 of the export: mapping: missing\n" +
		"imported 2 events into context last-3\n" +
		"starter: import -: 1 conversation not imported\n"},
		starterWith(t, t.Context(), c, strings.NewReader(export), "import", "-", "--all"))
	require.Equal(t, outcome{0, "", "imported 2 events into context last-3\n"},
		starterWith(t, t.Context(), c, strings.NewReader(export), "import", "-", "--conversation", "Last"))
}

func TestAnImportReportsWhereAnExportIsDamaged(t *testing.T) {
	const message = `"mapping":{"a":{"message":{"author":{"role":"user"},"content":{"parts":["Hi"]}}}}`
	const first = `[{"title":"First","id":"1",` + message + `}`
	export := first + `,{"title":"Damaged","id":2,,` + message + `},{"title":"Last","id":"3",` + message + `}]`
	c := &fakeClient{context: newFakeOf(t, "first-1")}
	place := fmt.Sprintf("starter: read -: element 2, after byte %d: is not JSON: invalid character ',' looking for beginning of object key string", len(first))
	require.Equal(t, outcome{exit.Failure, "", "imported 2 events into context first-1\n" +
		place + " (correct the file there and repeat the command: it skips the contexts that exist)\n"},
		starterWith(t, t.Context(), c, strings.NewReader(export), "import", "-", "--all"))
	require.Equal(t, outcome{exit.Failure, "", place + "\n"},
		starterWith(t, t.Context(), c, strings.NewReader(export), "import", "-", "--conversation", "Last"))
	require.Equal(t, outcome{0, "", "imported 2 events into context first-1\n"},
		starterWith(t, t.Context(), c, strings.NewReader(export), "import", "-", "--conversation", "1"))
}

const exportOfChatGPT = "../internal/formats/chat/testdata/conversations.json"

func TestImportReadsAnExportOfChatGPT(t *testing.T) {
	const firstName, secondName = "trip-to-k-ln-trains-hotels-695746e5", "chatgpt-11111111"
	for _, choice := range []string{"trip to KÖLN: trains & hotels", "695746e5-8c14-8333-9f2a-0a1b2c3d4e5f"} {
		require.Equal(t, outcome{0, "", "imported 8 events into context " + firstName + "\n"},
			starter(t, newFakeOf(t, firstName), "", "import", exportOfChatGPT, "--conversation", choice))
	}
	require.Equal(t, outcome{0, `{"contextName":"demo","events":2}` + "\n", ""},
		starter(t, newFake(t), "", "import", "-n", "demo", exportOfChatGPT, "--conversation", "11111111-2222", "--json"))
	require.Equal(t, outcome{exit.Failure, "", `starter: --conversation "Paris": not among the 3 conversations of ` + exportOfChatGPT + "\n"},
		starter(t, newFake(t), "", "import", "-n", "demo", exportOfChatGPT, "--conversation", "Paris"))
	got := starter(t, newFake(t), "", "import", "-n", "demo", exportOfChatGPT)
	require.Equal(t, exit.Failure, got.code)
	require.Contains(t, got.errOut, "set --conversation or --all")
	require.Equal(t, exit.Usage, starter(t, newFake(t), "", "import", exportOfChatGPT).code)

	first, second, empty := newFakeOf(t, firstName), newFakeOf(t, secondName), newFakeOf(t, "empty-33333333")
	c := &fakeClient{context: first, others: []*fakeContext{second, empty}}
	all := []string{"import", exportOfChatGPT, "--all"}
	require.Equal(t, outcome{0, "", "imported 8 events into context " + firstName + "\nimported 2 events into context " + secondName + "\n" +
		"skipped 1 empty conversation\n"},
		starterWith(t, t.Context(), c, strings.NewReader(""), all...))
	first.err, second.err = client.ErrExists, client.ErrExists
	require.Contains(t, starterWith(t, t.Context(), c, strings.NewReader(""), all...).errOut, "skipped 2 existing contexts\n")
	require.Equal(t, exit.Usage, starterWith(t, t.Context(), c, strings.NewReader(""), append(all, "-n", "demo")...).code)
	first.err = errors.New("too large")
	require.Equal(t, outcome{exit.Failure, "", "starter: too large\nskipped 1 existing context\nskipped 1 empty conversation\n" +
		"starter: import " + exportOfChatGPT + ": 1 conversation not imported\n"}, starterWith(t, t.Context(), c, strings.NewReader(""), all...))
	first.err = client.ErrUnreachable
	require.Equal(t, exit.Unreachable, starterWith(t, t.Context(), c, strings.NewReader(""), all...).code)
}
