package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

func TestTheGoExampleOfTheDocumentationShowsTheOutcome(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Answer("Good", " day"), llmtest.Error(401, "invalid_api_key", "who are you"))
	w.worker()
	c := w.open("documented")
	_, err := c.Send(w.ctx, event.New(event.SystemPrompt{Content: "Briefly."})) // the example does not know the task queue
	require.NoError(t, err)
	docs, err := os.ReadFile("../../docs/clients.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```go\n([^`]*chronicle/client\"[^`]*)```").FindSubmatch(docs)
	require.NotNil(t, block)
	source := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(source, []byte(strings.Replace(string(block[1]), `"demo"`, `"`+c.Name()+`"`, 1)), 0o600))
	program := filepath.Join(t.TempDir(), "example")
	out, err := exec.CommandContext(w.ctx, "go", "build", "-tags", buildTags, "-o", program, source).CombinedOutput()
	require.NoError(t, err, "%s", out)
	run := func() (string, error) {
		cmd := exec.CommandContext(w.ctx, program)
		cmd.Env = append(os.Environ(), "TEMPORAL_ADDRESS="+w.on.temporal, "NATS_URL=none", "BLOB_URL="+w.blobURL)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	answer, err := run()
	require.NoError(t, err, answer)
	require.Equal(t, "Good day\n", answer, "without NATS")
	failure, err := run()
	require.ErrorAs(t, err, new(*exec.ExitError), failure)
	require.Contains(t, failure, "who are you")
}
