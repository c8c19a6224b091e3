package repotest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMakeUsesAnInstalledTemporal runs make bin/temporal in a copy of the Makefile, with
// scripts instead of the go and temporal commands.
func TestMakeUsesAnInstalledTemporal(t *testing.T) {
	command, err := exec.LookPath("make")
	if err != nil {
		t.Skip("Makefile tests, no make on PATH")
	}
	pins, err := os.ReadFile("tools/temporal/go.mod")
	require.NoError(t, err)
	match := regexp.MustCompile(`go\.temporal\.io/server v(\S+)`).FindSubmatch(pins)
	require.NotNil(t, match)
	pinned := string(match[1])
	makefile, err := os.ReadFile("Makefile")
	require.NoError(t, err)

	for _, tt := range []struct {
		name      string
		installed string // server version; empty: no temporal on PATH
		builds    bool
	}{
		{name: "of the pinned version", installed: pinned},
		{name: "of another version", installed: pinned + "0", builds: true},
		{name: "not installed", builds: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root, bin := t.TempDir(), t.TempDir()
			write := func(path, text string) {
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
			}
			write(filepath.Join(root, "Makefile"), string(makefile))
			write(filepath.Join(root, "tools/temporal/go.mod"), string(pins))
			write(filepath.Join(bin, "go"), "#!/bin/sh\ntest \"$1\" = build && echo built >\"$3\"\n")
			temporal := "#!/bin/sh\necho 'temporal version 1.0.0 (Server %s, UI 2.0.0)'\n"
			if tt.installed != "" {
				write(filepath.Join(bin, "temporal"), fmt.Sprintf(temporal, tt.installed))
			}
			for _, tool := range []string{"awk", "grep", "ln", "mkdir", "rm", "touch"} {
				path, err := exec.LookPath(tool)
				require.NoError(t, err)
				require.NoError(t, os.Symlink(path, filepath.Join(bin, tool)))
			}
			// A stale build in a directory that is on PATH, as the README suggests.
			stale := filepath.Join(root, "bin/temporal")
			write(stale, fmt.Sprintf(temporal, pinned))
			require.NoError(t, os.Chtimes(stale, time.Unix(0, 0), time.Unix(0, 0)))

			run := exec.Command(command, "bin/temporal")
			run.Dir = root
			run.Env = append(os.Environ(), "PATH="+filepath.Join(root, "bin")+":"+bin, "MAKEFLAGS=", "MAKELEVEL=")
			output, err := run.CombinedOutput()
			require.NoError(t, err, "%s", output)

			target, err := os.Readlink(stale)
			if tt.builds {
				require.Error(t, err, "a link to %s", target)
				require.Contains(t, string(output), "building bin/temporal")
				built, err := os.ReadFile(stale)
				require.NoError(t, err)
				require.Equal(t, "built\n", string(built))
				return
			}
			require.NoError(t, err)
			require.Equal(t, filepath.Join(bin, "temporal"), target)
			require.Equal(t, fmt.Sprintf("using %s with Temporal %s\n", target, pinned), string(output))
		})
	}
}
