package workflows_test

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/version"
)

const historiesDir = "testdata/histories"

var pinHistories = flag.Bool("histories", false, "add new histories to the manifest of this version")

// A history replays on every later release, so it never changes. Each release lists its
// histories with their SHA-256 in VERSION.sum; `make check` compares these files with
// the tags of the releases.
func TestReplayHistoriesAreUnchanged(t *testing.T) {
	if *pinHistories {
		require.NoError(t, pin(historiesDir, strings.TrimSuffix(version.Version, "-dev")))
	}
	require.NoError(t, verifyManifests(historiesDir))
}

// An end-to-end test names the story of a history. Of a computed name, only the literal prefix is
// checked here; the end-to-end test checks the rest when it runs.
func TestReplayHistoriesOfAllStoriesAreRecorded(t *testing.T) {
	files, err := filepath.Glob("../test/e2e/*_test.go")
	require.NoError(t, err)
	stories := 0
	for _, file := range files {
		for story, isPrefix := range storiesIn(t, file) {
			stories++
			pattern := story + ".json"
			if isPrefix {
				pattern = story + "*.json"
			}
			recorded, err := filepath.Glob(filepath.Join(historiesDir, pattern))
			require.NoError(t, err)
			require.NotEmpty(t, recorded, "%s: no history %s (run make histories)", file, pattern)
		}
	}
	require.Greater(t, stories, 20)
}

// storiesIn returns the stories that a file of end-to-end tests names, and whether only their prefix
// is known.
func storiesIn(t *testing.T, file string) map[string]bool {
	t.Helper()
	source, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	stories := map[string]bool{}
	ast.Inspect(source, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		function, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !strings.HasPrefix(function.Sel.Name, "replay") {
			return true
		}
		argument := call.Args[len(call.Args)-1]
		sum, isPrefix := argument.(*ast.BinaryExpr)
		if isPrefix {
			argument = sum.X
		}
		literal, ok := argument.(*ast.BasicLit)
		if !ok {
			return true
		}
		if story, err := strconv.Unquote(literal.Value); err == nil && story != "" {
			stories[story] = isPrefix
		}
		return true
	})
	return stories
}

func TestReplayDetectsAChangedHistory(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
	}
	write("a.json", "1")
	require.ErrorContains(t, verifyManifests(dir), "history a.json: in no manifest")
	require.NoError(t, pin(dir, "0.1.0"))
	write("b.json", "2")
	require.NoError(t, pin(dir, "0.2.0"))
	require.NoError(t, verifyManifests(dir))
	released, err := os.ReadFile(filepath.Join(dir, "0.1.0.sum"))
	require.NoError(t, err)
	require.Equal(t, "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b  a.json\n", string(released))

	write("a.json", "3")
	require.ErrorContains(t, verifyManifests(dir), "history a.json: changed since 0.1.0")
	require.NoError(t, pin(dir, "0.2.0"))
	require.ErrorContains(t, verifyManifests(dir), "history a.json: changed since 0.1.0", "recording does not hide it")
	require.NoError(t, os.Remove(filepath.Join(dir, "a.json")))
	require.ErrorContains(t, verifyManifests(dir), "history a.json: missing, but part of 0.1.0")
}

// manifests returns the SHA-256 of each listed history, by version and file name.
func manifests(dir string) (map[string]map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.sum"))
	if err != nil {
		return nil, err
	}
	out := map[string]map[string]string{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		sums := map[string]string{}
		for line := range strings.Lines(string(data)) {
			sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
			if !ok {
				return nil, fmt.Errorf("%s: malformed line %q (want SHA-256, two spaces, file name)", file, line)
			}
			sums[name] = sum
		}
		out[strings.TrimSuffix(filepath.Base(file), ".sum")] = sums
	}
	return out, nil
}

// sums returns the SHA-256 of each history in a directory.
func sums(dir string) (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		out[filepath.Base(file)] = fmt.Sprintf("%x", sha256.Sum256(data))
	}
	return out, nil
}

func verifyManifests(dir string) error {
	present, err := sums(dir)
	if err != nil {
		return err
	}
	listed, err := manifests(dir)
	if err != nil {
		return err
	}
	pinned := map[string]bool{}
	for _, version := range slices.Sorted(maps.Keys(listed)) {
		for name, sum := range listed[version] {
			pinned[name] = true
			switch got, ok := present[name]; {
			case !ok:
				return fmt.Errorf("history %s: missing, but part of %s (restore it)", name, version)
			case got != sum:
				return fmt.Errorf("history %s: changed since %s (restore it)", name, version)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(present)) {
		if !pinned[name] {
			return fmt.Errorf("history %s: in no manifest (run make histories)", name)
		}
	}
	return nil
}

// pin adds the histories that are in no manifest to the manifest of a version.
func pin(dir, version string) error {
	present, err := sums(dir)
	if err != nil {
		return err
	}
	listed, err := manifests(dir)
	if err != nil {
		return err
	}
	for _, names := range listed {
		for name := range names {
			delete(present, name)
		}
	}
	if len(present) == 0 {
		return nil
	}
	maps.Copy(present, listed[version])
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(present)) {
		fmt.Fprintf(&b, "%s  %s\n", present[name], name)
	}
	return os.WriteFile(filepath.Join(dir, version+".sum"), []byte(b.String()), 0o644)
}
