// Package aisdk is a page with useChat, for tests.
package aisdk

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/seed-9ed7edd4/chronicle/internal/npmtest"
)

// Build bundles the page with a major version of the SDK and the program of docs/clients.md, and returns the folder to serve.
// Root is the path of the repository. It skips the test without node or the packages.
func Build(tb testing.TB, root, sdk string) (dist string) {
	tb.Helper()
	source := npmtest.Folder(tb, root, "aisdk", filepath.Join(root, "test/clients/aisdk"))
	docs, err := os.ReadFile(filepath.Join(root, "docs/clients.md"))
	if err != nil {
		tb.Fatal(err)
	}
	program := regexp.MustCompile("(?s)```jsx\n(.*?)```").FindSubmatch(docs)
	if program == nil {
		tb.Fatal("docs/clients.md has no program for useChat")
	}
	if err := os.WriteFile(filepath.Join(source, "documented.jsx"), program[1], 0o644); err != nil {
		tb.Fatal(err)
	}
	dist = tb.TempDir()
	vite := exec.CommandContext(tb.Context(), "node", "node_modules/vite/bin/vite.js", "build")
	vite.Dir, vite.Env = source, append(os.Environ(), "SDK="+sdk, "OUT="+dist)
	if out, err := vite.CombinedOutput(); err != nil {
		tb.Fatalf("build the page: %v: %s", err, out)
	}
	return dist
}
