package repotest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPackagesTestedWithoutRaceDetectorAreSequential checks the packages that make test
// runs without the race detector.
func TestPackagesTestedWithoutRaceDetectorAreSequential(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	require.NoError(t, err)
	list := regexp.MustCompile(`(?m)^sequential = (.+)$`).FindSubmatch(makefile)
	require.NotNil(t, list, "the Makefile has no line: sequential = PACKAGES")
	for _, pkg := range strings.Fields(string(list[1])) {
		files, err := filepath.Glob(pkg + "/*.go")
		require.NoError(t, err)
		require.NotEmpty(t, files, pkg)
		for _, file := range files {
			source, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Empty(t, concurrency(t, string(source)), "%s: remove %s from sequential in the Makefile", file, pkg)
		}
	}
}

// TestTestsWithoutRaceDetectorHaveUniqueNames: make test skips them by name in the pass with the
// race detector, in all packages.
func TestTestsWithoutRaceDetectorHaveUniqueNames(t *testing.T) {
	places := map[string][]string{}
	large := map[string]bool{}
	files, err := exec.Command("find", ".", "-name", "*_test.go").Output()
	require.NoError(t, err)
	for _, file := range strings.Fields(string(files)) {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, test := range regexp.MustCompile(`(?m)^((?://.*\n)*)func (Test\w+)\(.*\n(\t(?:large|needsTimelyHeartbeats)\(t\)\n)?`).FindAllStringSubmatch(string(source), -1) {
			places[test[2]] = append(places[test[2]], file)
			large[test[2]] = large[test[2]] || strings.Contains(test[1], "//test:large\n") || test[3] != ""
		}
	}
	for name, isLarge := range large {
		if isLarge {
			require.Len(t, places[name], 1, name)
		}
	}
}

func TestConcurrencyIsFound(t *testing.T) {
	for source, want := range map[string]string{
		"func f() { go f() }":              "go statement",
		"var c chan int":                   "channel",
		"func f(<-chan int) {}":            "channel",
		`import "sync/atomic"`:             `import "sync/atomic"`,
		`import "testing/synctest"`:        `import "testing/synctest"`,
		"func f(t T) { t.Parallel() }":     "parallel test",
		`import "net/http"`:                `import "net/http"`,
		"func f() { g() }; var go1 = `go`": "",
		"var n = settings.Parallel":        "",
	} {
		require.Equal(t, want, concurrency(t, "package p\n"+source), source)
	}
}

// concurrency returns the first sign of concurrency in a Go file; "" if there is none.
func concurrency(t *testing.T, source string) (found string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
	require.NoError(t, err)
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.GoStmt:
			found = "go statement"
		case *ast.ChanType:
			found = "channel"
		case *ast.CallExpr:
			if method, ok := n.Fun.(*ast.SelectorExpr); ok && method.Sel.Name == "Parallel" {
				found = "parallel test"
			}
		case *ast.ImportSpec:
			switch path := strings.Trim(n.Path.Value, `"`); {
			case path == "sync", path == "sync/atomic", path == "testing/synctest",
				path == "os/exec", path == "net", path == "net/http", path == "net/http/httptest":
				found = "import " + n.Path.Value
			}
		}
		return found == ""
	})
	return found
}
