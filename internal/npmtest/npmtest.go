// Package npmtest runs programs with npm packages for tests.
package npmtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Folder copies the programs in a folder to a temporary one, next to the packages that `make bin/NAME` installs. Root is the
// path of the repository. It skips the test without node or the packages.
func Folder(tb testing.TB, root, name, programs string) (dir string) {
	tb.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		tb.Skip("npm clients, no node on PATH")
	}
	packages, err := filepath.Abs(filepath.Join(root, "bin", name, "node_modules"))
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := os.Stat(packages); err != nil {
		tb.Skipf("npm clients, run make bin/%s", name)
	}
	dir = tb.TempDir()
	if err := os.CopyFS(dir, os.DirFS(programs)); err != nil {
		tb.Fatal(err)
	}
	if err := os.Symlink(packages, filepath.Join(dir, "node_modules")); err != nil {
		tb.Fatal(err)
	}
	return dir
}
