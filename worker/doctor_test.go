package main_test

import (
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
	require.Len(t, own, 7)
	for name, f := range own {
		require.NotContains(t, []doctor.Severity{doctor.Error, doctor.Skipped}, f.Severity, "%s: %s", name, f.Measured)
	}
	require.Contains(t, own["workers.polling"].Measured, "("+version.Build()+")", "workers name their version")
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
