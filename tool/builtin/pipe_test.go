//go:build unix

package builtin_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestANamedPipeIsNotOpened(t *testing.T) {
	set, folder := filesOf(t, map[string]string{"text": ""})
	require.NoError(t, syscall.Mkfifo(filepath.Join(folder, "pipe"), 0o600))
	text, result := use(t, set, "read_file", map[string]any{"path": "pipe"})
	require.True(t, result.IsError)
	require.Equal(t, `path "pipe": not a file (use list_files for a folder)`, text)
	text, _ = use(t, set, "list_files", map[string]any{})
	require.Equal(t, "pipe (not a file)\ntext 0", text)
}
