package e2e

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
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

// buildTimeout is the timeout of a test that may build a program.
const buildTimeout = 5 * time.Minute

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

func TestAnExportedLogIsImportedUnchanged(t *testing.T) {
	t.Parallel()
	w := newWorldOn(t, environment{timeout: buildTimeout}, llmtest.Func(echo))
	w.worker(shortRuns)
	c := w.open("exported")
	for _, text := range []string{"One", "Two", "Three"} {
		w.say(c, text)
	}
	w.close(c, "for today")
	exported := w.starter("", "export", "-n", c.Name())
	count := strings.Count(exported, "\n")

	copied := w.open("copied")
	w.starter(exported, "import", "-n", copied.Name(), "-")
	state, err := copied.State(w.ctx)
	require.NoError(t, err)
	require.Equal(t, 6, state.MessageCount)
	w.await(copied, func(e event.Event) bool { return e.Body == event.Body(event.SessionStarted{LoadedEventCount: count}) })
	moved := w.starter("", "export", "-n", copied.Name())
	require.Equal(t, count+1, strings.Count(moved, "\n"))
	require.True(t, strings.HasPrefix(moved, strings.ReplaceAll(exported, c.Name(), copied.Name())), moved)

	w.say(copied, "Four")
	require.Len(t, w.model.Requests()[3].Messages, 7)
	_, errOut, err := w.tryStarter(exported, "import", "-n", copied.Name(), "-")
	require.Error(t, err)
	require.Contains(t, errOut, "context already exists (choose another name)")
}
