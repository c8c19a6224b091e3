package llm

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOperationsListsTheKeysOfThePresets(t *testing.T) {
	operations, err := os.ReadFile("../docs/operations.md")
	require.NoError(t, err)
	for id, preset := range presets {
		if source, name, _ := strings.Cut(preset.keyRef, ":"); source == "env" {
			require.Contains(t, string(operations), "`"+name+"`", id)
		}
	}
}
