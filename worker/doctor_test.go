package main_test

import (
	"bufio"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/internal/doctor"
	"github.com/seed-9ed7edd4/chronicle/internal/version"
)

// diagnose runs all checks as a client of a worker. It returns the findings of the client and those of the
// worker, by check.
func diagnose(t *testing.T, facts map[string]string) (own, workers map[string]doctor.Finding) {
	t.Helper()
	d, err := doctor.ForClient(client.Config{
		Address: facts["temporal"], Namespace: "default", NATSURL: facts["nats"], NATSAuth: natsAuth(facts), BlobURL: facts["blobs"],
	})
	require.NoError(t, err)
	defer d.Close()
	d.Call = true
	own, workers = map[string]doctor.Finding{}, map[string]doctor.Finding{}
	for f := range doctor.Run(t.Context(), d.Checks()) {
		if f.Worker == "" {
			own[f.Check] = f
		} else {
			workers[f.Check] = f
		}
	}
	return own, workers
}

func TestDoctorExaminesADeploymentAndLeavesNothing(t *testing.T) {
	t.Parallel()
	worker := dev(t, t.TempDir())
	facts := worker.ready()
	own, workers := diagnose(t, facts)
	require.Len(t, own, 16)
	for name, f := range own {
		require.NotContains(t, []doctor.Severity{doctor.Error, doctor.Skipped}, f.Severity, "%s: %s", name, f.Measured)
	}
	require.Equal(t, doctor.OK, own["store.identity"].Severity)
	require.Equal(t, version.Build(), own["workers.versions"].Measured, "workers name their version")
	require.Len(t, workers, 6)
	for name, f := range workers {
		require.NotContains(t, []doctor.Severity{doctor.Error, doctor.Skipped}, f.Severity, "%s: %s", name, f.Measured)
	}
	require.Contains(t, workers["provider.default"].Measured, "offline-echo answered in")

	requireNoWorkflows(t, facts)
	worker.signal(syscall.SIGTERM)
	require.Zero(t, worker.exit(), worker.stderr.String())
	probes, err := filepath.Glob(filepath.Join(strings.TrimPrefix(facts["blobs"], "file://"), "default", "cursors", "*"))
	require.NoError(t, err)
	require.Empty(t, probes)
}

func TestWorkerLogsWhatIsWrongAtItsStart(t *testing.T) {
	t.Parallel()
	worker := prepare(t, devArgs(t.TempDir())...)
	executable := worker.cmd.Path
	worker.cmd.Path = "/bin/sh"
	worker.cmd.Args = append([]string{"sh", "-c", `ulimit -n 2000 && exec "$0" "$@"`, executable}, worker.cmd.Args[1:]...)
	worker.cmd.Stderr = nil
	stderr, err := worker.cmd.StderrPipe()
	require.NoError(t, err)
	worker.start()
	worker.ready()
	var logged []map[string]any
	for lines := bufio.NewScanner(stderr); len(logged) == 0 && lines.Scan(); {
		var line map[string]any
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line), lines.Text())
		if line["msg"] == "doctor: files.limit" {
			logged = append(logged, line)
		}
	}
	require.Len(t, logged, 1)
	require.Equal(t, "warn", logged[0]["level"])
	require.Equal(t, "the process may open 2000 files, less than 4096", logged[0]["measured"])
	require.Contains(t, logged[0]["why"], "open files")
	require.Contains(t, logged[0]["fix"], "ulimit -n")
	worker.signal(syscall.SIGTERM)
	_, err = io.Copy(io.Discard, stderr)
	require.NoError(t, err)
	require.Zero(t, worker.exit())
}
