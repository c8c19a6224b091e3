package devserver_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/devserver"
)

// fakeCommand creates a temporal command that reports a server version.
func fakeCommand(t *testing.T, dir, server string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	path := filepath.Join(dir, "temporal")
	script := fmt.Sprintf("#!/bin/sh\necho 'temporal version 1.0.0 (Server %s, UI 2.0.0)'\n", server)
	require.NoError(t, os.WriteFile(path, []byte(script), 0o755))
	return path
}

func TestFindPrefersTheCommandInBinToTheOneOnPath(t *testing.T) {
	root, onPath := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "go.mod"), []byte("module github.com/seed-9ed7edd4/chronicle\n"), 0o644))
	t.Chdir(root)
	t.Setenv("PATH", onPath)
	newer := fakeCommand(t, onPath, "1.99.0")

	found, err := devserver.Find(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, newer, found, "there is none in bin/")

	pinned := fakeCommand(t, filepath.Join(root, "bin"), "1.29.1")
	found, err = devserver.Find(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, pinned, found)

	fakeCommand(t, filepath.Join(root, "bin"), "1.28.0")
	found, err = devserver.Find(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, newer, found, "the one in bin/ is too old")
}

func TestFindOutsideACheckoutListsTheUnusableCommands(t *testing.T) {
	onPath := t.TempDir()
	t.Chdir(t.TempDir())
	t.Setenv("PATH", onPath)
	old := fakeCommand(t, onPath, "1.28.0")
	_, err := devserver.Find(t.Context(), nil)
	require.ErrorContains(t, err, old+" has server 1.28.0 (want 1.29.0 or newer with the same major version)")
	require.ErrorContains(t, err, "not in a checkout of Chronicle")
}
