package repotest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/llm"
)

func TestDocumentationListsEveryCommand(t *testing.T) {
	text, err := os.ReadFile("docs/clients.md")
	require.NoError(t, err)
	use := regexp.MustCompile(`Use:\s+"([a-z]+)`)
	paths, err := filepath.Glob("starter/*.go")
	require.NoError(t, err)
	found := 0
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, match := range use.FindAllStringSubmatch(string(source), -1) {
			found++
			assert.Regexp(t, "`[^`\n]*\\b"+match[1]+`\b`, string(text), "docs/clients.md does not list the command of %s", path)
		}
	}
	require.Greater(t, found, 10)
}

func TestDocumentationListsEveryPreset(t *testing.T) {
	text, err := os.ReadFile("docs/operations.md")
	require.NoError(t, err)
	for _, id := range llm.Presets() {
		assert.Contains(t, string(text), "`"+id+"`", "docs/operations.md does not list a preset")
	}
}
