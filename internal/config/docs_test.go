package config_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event/eventtest/golden"
	"github.com/seed-9ed7edd4/chronicle/internal/config"
)

const operations = "../../docs/operations.md"

// TestOperationsListsAllSettings compares the tables of settings in docs/operations.md with the flags.
func TestOperationsListsAllSettings(t *testing.T) {
	var connection config.Connection
	var worker config.Worker
	var gateway config.Gateway
	const header = "| setting | default | meaning |\n|---|---|---|\n"
	content := "All programs:\n\n" + header + "| `--config FILE`, `CHRONICLE_CONFIG` | none | the file |\n" +
		connection.Table(config.WorkerWords).Markdown() +
		"\nWorkers, in the table `[worker]` of the file:\n\n" + header + worker.Table("in [Keys and base URLs](#keys-and-base-urls)").Markdown() +
		"\nGateways, in the table `[gateway]`:\n\n" + header + gateway.Table().Markdown()
	text, err := os.ReadFile(operations)
	require.NoError(t, err)
	const first, last = "<!-- settings -->\n", "<!-- end of settings -->"
	before, rest, found := strings.Cut(string(text), first)
	require.True(t, found, first)
	_, after, found := strings.Cut(rest, last)
	require.True(t, found, last)
	golden.File(t, operations, before+first+"\n"+content+"\n"+last+after)
}
