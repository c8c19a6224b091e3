package repotest

import (
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExamplesImportPublicPackagesOnly(t *testing.T) {
	files, err := filepath.Glob("*/example_test.go")
	require.NoError(t, err)
	nested, err := filepath.Glob("*/*/example_test.go")
	require.NoError(t, err)
	files = append(files, nested...)
	require.NotEmpty(t, files)
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, imported := range parsed.Imports {
			require.NotContains(t, imported.Path.Value, module+"/internal/", file)
		}
	}
}

func TestPublicPackagesHaveAnExample(t *testing.T) {
	for _, pkg := range []string{"activities", "client", "event", "gateway", "gateway/auth", "hook", "llm", "reducer", "tool", "workflows", "worker/contexts"} {
		example, err := os.ReadFile(filepath.Join(pkg, "example_test.go"))
		if err == nil {
			require.Contains(t, string(example), "// Output:", pkg)
			continue
		}
		doc, err := os.ReadFile(filepath.Join(pkg, "doc.go"))
		require.NoError(t, err)
		require.Contains(t, string(doc), "so this package has no example of its own", pkg)
	}
}

// A module cannot import the internal packages of another one.
func TestAProgramOfAnotherModuleCompiles(t *testing.T) {
	root, err := os.Getwd()
	require.NoError(t, err)
	dir := t.TempDir()
	copyTo := func(name, from string, change func(string) string) {
		content, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(change(string(content))), 0o600))
	}
	same := func(text string) string { return text }
	copyTo("go.mod", "go.mod", func(text string) string {
		return strings.Replace(text, "module "+module+"\n", "module example.com/shop\n", 1) +
			"\nrequire " + module + " v0.0.0\n\nreplace " + module + " => " + root + "\n"
	})
	copyTo("go.sum", "go.sum", same)
	copyTo("main.go", "examples/support/main.go", same)
	copyTo("main_test.go", "examples/support/main_test.go", same)
	cmd := exec.Command("go", "vet", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	output, err := cmd.CombinedOutput()
	require.NoError(t, err, string(output))
}
