package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/tool"
)

// buildTags are the build tags for binaries built by tests.
var buildTags string

// The programs are those of make build. They are built once for all tests, and only if they have changed.
var (
	built       = builds("starter")
	builtWorker = builds("worker")
)

func builds(program string) func() (file string, err error) {
	return sync.OnceValues(func() (string, error) {
		file := filepath.Join("..", "..", "bin", program)
		out, err := exec.Command("go", "build", "-tags", buildTags, "-ldflags", "-s -w", "-o", file, "../../"+program).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("build the %s: %w: %s", program, err, out)
		}
		return file, err
	})
}

func (w *world) starter(stdin string, args ...string) string {
	w.t.Helper()
	out, errOut, err := w.tryStarter(stdin, args...)
	require.NoError(w.t, err, errOut)
	return out
}

func (w *world) tryStarter(stdin string, args ...string) (out, errOut string, err error) {
	w.t.Helper()
	file, err := built()
	require.NoError(w.t, err)
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(w.ctx, file, w.withAddresses(args)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err = cmd.Run()
	return stdout.String(), stderr.String(), err
}

func (w *world) withAddresses(args []string) []string {
	return append(args, "--address", w.on.temporal, "--nats-url", w.on.nats, "--task-queue", w.queue, "--blob-url", w.blobURL)
}

func (w *world) script(c *client.Context, lines ...string) []event.Event {
	w.t.Helper()
	var events []event.Event
	for line := range strings.Lines(w.starter(strings.Join(lines, "\n")+"\n", "script", "-n", c.Name())) {
		var e event.Event
		require.NoError(w.t, json.Unmarshal([]byte(line), &e), line)
		events = append(events, e)
	}
	return events
}

// printed returns the tag, clientEventId and counter of each event that a client sent.
func printed(events []event.Event) []string {
	var out []string
	for _, e := range events {
		if e.ClientEventID != "" {
			out = append(out, strings.TrimSuffix(string(e.Tag()), "Event")+" "+e.ClientEventID+" "+
				fmt.Sprint(event.Counter(e.ID)))
		}
	}
	return out
}

func TestAnExportCarriesFilesAndResultsToAnotherStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Calls(llmtest.Call{ID: "log", Name: "read_log", Arguments: `{"name":"nightly"}`}), llmtest.Answer("Read."))
	readLog := func(context.Context, namedLog) (string, error) {
		return strings.Repeat("all quiet at the quay\n", 5000), nil
	}
	w.worker(w.withTools(tool.Must(tool.New("read_log", "Read a log", readLog))))
	c := w.open("carried")
	w.setTools(c, "read_log")
	picture := strings.Repeat("PNG of the quay ", 1000)
	w.say(c, "What happened?", attached("quay.png", "image/png", picture))
	require.Contains(t, w.starter("", "verify", "-n", c.Name()), "ok: ")
	exported := w.starter("", "export", "-n", c.Name())
	references, errOut, err := w.tryStarter("", "export", "-n", c.Name(), "--no-attachments")
	require.NoError(t, err)
	require.Equal(t, "left out the bytes of 2 references\n", errOut)

	elsewhere := newWorld(t, llmtest.Answer("Still there."))
	elsewhere.worker()
	copied := elsewhere.open("copied")
	_, errOut, err = elsewhere.tryStarter(references, "import", "-n", copied.Name(), "-")
	require.Error(t, err)
	require.Contains(t, errOut, "the blob store lacks the bytes of 2 events: ")

	elsewhere.starter(exported, "import", "-n", copied.Name(), "-")
	require.Contains(t, elsewhere.starter("", "verify", "-n", copied.Name()), "ok: ")
	again := elsewhere.starter("", "export", "-n", copied.Name())
	require.True(t, strings.HasPrefix(again, strings.ReplaceAll(exported, c.Name(), copied.Name())), "the same log with the same bytes")
	for _, e := range elsewhere.from(copied, "") {
		if e.Tag() == event.TagFileAttachment {
			file, err := copied.Attachment(elsewhere.ctx, e.ID)
			require.NoError(t, err)
			require.Equal(t, picture, string(file.Source.Data))
		}
	}
	elsewhere.say(copied, "Is the picture there?")

	lost := elsewhere.open("lost")
	elsewhere.starter(references, "import", "-n", lost.Name(), "-", "--allow-missing")
	out, errOut, err := elsewhere.tryStarter("", "verify", "-n", lost.Name())
	require.Error(t, err)
	require.Contains(t, out, ": blob "+event.RefOf([]byte(picture))+" is not in the store\n", "another context has it")
	require.Contains(t, errOut, "problems found: 2")
}

func TestStarterSaysWhichToolsNoWorkerHas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.open("lacking")
	args := []string{"tools", "-n", c.Name(), "probe", "nothing_*"}
	w.worker()
	_, errOut, err := w.tryStarter("", args...)
	require.NoError(t, err, errOut)
	require.Contains(t, errOut, "no tool of the worker matches nothing_* at present\n")
	w.await(c, isTag(event.TagSetTools))
}
