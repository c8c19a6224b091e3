package config_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event/eventtest/golden"
	"github.com/seed-9ed7edd4/chronicle/internal/config"
	"github.com/seed-9ed7edd4/chronicle/llm"
)

const operations = "../../docs/operations.md"

// TestOperationsListsAllSettings compares the table of settings and the example in docs/operations.md
// with the flags and examples/config/chronicle.toml.
func TestOperationsListsAllSettings(t *testing.T) {
	var connection config.Connection
	var worker config.Worker
	var gateway config.Gateway
	tables := []*config.Table{connection.Table(config.WorkerWords), worker.Table(llm.Presets()...), gateway.Table()}
	var b strings.Builder
	b.WriteString("| flag | environment | key in the file | default | meaning |\n|---|---|---|---|---|\n")
	b.WriteString("| `--config FILE` | `CHRONICLE_CONFIG` | | none | the file |\n")
	for _, table := range tables {
		b.WriteString(table.Markdown())
	}
	text, err := os.ReadFile(operations)
	require.NoError(t, err)
	example, err := os.ReadFile(exampleFile)
	require.NoError(t, err)
	printed := section(t, string(text), "settings", b.String())
	printed = section(t, printed, "example", "```toml\n"+string(example)+"```\n")
	golden.File(t, operations, printed)
}

// section replaces the text between <!-- NAME --> and <!-- end of NAME -->.
func section(t *testing.T, text, name, content string) string {
	t.Helper()
	first, last := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->"
	before, rest, found := strings.Cut(text, first)
	require.True(t, found, first)
	_, after, found := strings.Cut(rest, last)
	require.True(t, found, last)
	return before + first + "\n" + content + "\n" + last + after
}
