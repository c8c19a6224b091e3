package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sample is a module whose packages pass, fail, panic, skip and do not compile.
var sample = map[string]string{
	"go.mod":             "module sample\n\ngo 1.26\n",
	"none/none.go":       "package none\n",
	"passes/a_test.go":   test("passes", `func TestA(t *testing.T) { t.Log("a") }`),
	"fails/a_test.go":    test("fails", `func TestA(t *testing.T) { t.Log("a") }; func TestB(t *testing.T) { t.Run("sub", func(t *testing.T) { t.Error("b: is wrong"); t.Run("deep", func(t *testing.T) { t.Error("two", "words") }) }) }`),
	"panics/a_test.go":   test("panics", `func TestA(t *testing.T) { panic("at the disco") }`),
	"broken/a_test.go":   test("broken", `func TestA(t *testing.T) { undefined() }`),
	"skips/a_test.go":    test("skips", `func TestA(t *testing.T) { t.Skip("slow tests, not today") }; func TestB(t *testing.T) { t.Run("sub", func(t *testing.T) { t.Skip("slow tests, not today") }) }; func TestC(t *testing.T) { t.SkipNow() }; func TestD(t *testing.T) { t.Skip("a: b") }`),
	"skips/fine_test.go": test("skips", `func TestE(t *testing.T) {}`),
}

func test(name, code string) string {
	return "package " + name + "\n\nimport \"testing\"\n\n" + strings.ReplaceAll(code, "; func", "\n\nfunc") + "\n"
}

func TestOutputAndExitCodeAreThoseOfGoTest(t *testing.T) {
	dir := t.TempDir()
	for name, content := range sample {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
	}
	gotest := filepath.Join(dir, "gotest")
	out, err := exec.Command("go", "build", "-o", gotest, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	const skipped = "skipped: 1 test, a: b; 2 slow tests, not today; 1 test, no reason given\n"
	for _, tt := range []struct {
		name, args, skipped string
		exit                int
	}{
		{name: "all", args: "./...", skipped: skipped, exit: 1},
		{name: "verbose", args: "-v -run Test[A-D] ./none ./passes ./skips", skipped: skipped},
		{name: "no such package", args: "./missing", exit: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := append([]string{"-p=1", "-count=1"}, strings.Fields(tt.args)...)
			want, exit := run(t, dir, "go", append([]string{"test"}, args...)...)
			require.Equal(t, tt.exit, exit)
			got, exit := run(t, dir, gotest, args...)
			require.Equal(t, tt.exit, exit)
			require.Equal(t, stable(want)+tt.skipped, stable(got))
		})
	}
	t.Run("several runs at a time", func(t *testing.T) {
		passing, failing := []string{"-count=1", "./passes"}, []string{"-count=1", "-run=TestB", "./fails"}
		passes, exit := run(t, dir, gotest, passing...)
		require.Zero(t, exit)
		fails, exit := run(t, dir, gotest, failing...)
		require.Equal(t, 1, exit)
		for _, tt := range []struct {
			args []string
			want string
			exit int
		}{
			{slices.Concat(passing, []string{"+"}, passing), passes + passes, 0},
			{slices.Concat(failing, []string{"+"}, passing), fails + passes, 1},
			{slices.Concat(passing, []string{"+"}, failing, []string{"+"}, passing), passes + fails + passes, 1},
		} {
			got, exit := run(t, dir, gotest, tt.args...)
			require.Equal(t, tt.exit, exit)
			require.Equal(t, stable(tt.want), stable(got))
		}
	})
}

// run returns the output and the exit code of a command.
func run(t *testing.T, dir, name string, args ...string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
	if err := cmd.Run(); err != nil {
		require.ErrorAs(t, err, new(*exec.ExitError))
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

// stable replaces times and addresses.
func stable(output string) string {
	output = regexp.MustCompile(`\d+\.\d+s`).ReplaceAllString(output, "TIME")
	return regexp.MustCompile(`0x[0-9a-f]+\??|goroutine \d+`).ReplaceAllString(output, "ADDRESS")
}
