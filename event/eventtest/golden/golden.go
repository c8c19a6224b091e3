// Package golden compares test output with golden files. `make golden` updates the files;
// review the diff before committing.
package golden

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "update the golden files")

// File compares printed with the content of file.
func File(t *testing.T, file, printed string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(printed), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), printed)
}

// Stories runs each story in the txtar files that match a pattern like "testdata/*.txtar".
// A story has a comment, a "script", and in "want" the expected output of tell.
func Stories(t *testing.T, pattern string, tell func(t *testing.T, script string) string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			story, err := txtar.ParseFile(file)
			require.NoError(t, err)
			require.NotEmpty(t, bytes.TrimSpace(story.Comment), "a story needs a comment")
			require.NotEmpty(t, story.Files)
			require.Equal(t, "script", story.Files[0].Name)
			printed := tell(t, string(story.Files[0].Data))
			story.Files = append(story.Files[:1], txtar.File{Name: "want", Data: []byte(printed)})
			File(t, file, string(txtar.Format(story)))
		})
	}
}
