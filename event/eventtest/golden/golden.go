// Package golden compares what a test prints with what was wanted of it. `make
// golden` writes what is printed now as what is wanted; read the difference
// before you commit it.
package golden

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write what the tests print as what they want")

// File compares what was printed with a file.
func File(t *testing.T, file, printed string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(printed), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), printed)
}

// Stories tells each story of the txtar files that match a pattern, like
// "testdata/*.txtar": a comment that says what it is about, a "script", and in
// "want" what tell prints of it.
func Stories(t *testing.T, pattern string, tell func(t *testing.T, script string) string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			story, err := txtar.ParseFile(file)
			require.NoError(t, err)
			require.NotEmpty(t, bytes.TrimSpace(story.Comment), "a story begins with a comment that tells it")
			require.NotEmpty(t, story.Files)
			require.Equal(t, "script", story.Files[0].Name)
			printed := tell(t, string(story.Files[0].Data))
			story.Files = append(story.Files[:1], txtar.File{Name: "want", Data: []byte(printed)})
			File(t, file, string(txtar.Format(story)))
		})
	}
}
