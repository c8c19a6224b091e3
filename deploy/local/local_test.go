package main_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	main "github.com/seed-9ed7edd4/chronicle/deploy/local"
)

// TestStartFailsEarlyIfAPrerequisiteIsMissing covers failures; `make e2e-postgres` covers
// the services.
func TestStartFailsEarlyIfAPrerequisiteIsMissing(t *testing.T) {
	compose := filepath.Join("..", "..", "docker-compose.yml")
	programs := t.TempDir()
	for _, name := range []string{"temporal-sql-tool", "temporal-server", "temporal", "nats-server", "worker", "starter", "prometheus"} {
		require.NoError(t, os.WriteFile(filepath.Join(programs, name), nil, 0o755))
	}
	occupied := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(occupied, "file"), nil, 0o600))
	tests := []struct {
		name string
		args []string
		want string
	}{
		{name: "a compose file", args: []string{"-file", "missing.yml"}, want: "missing.yml"},
		{name: "the programs", args: []string{"-file", compose, "-bin", t.TempDir()}, want: "`make e2e-postgres` builds it"},
		{name: "the S3 server", args: []string{"-s3", "-bin", t.TempDir()}, want: "`make e2e-s3` builds it"},
		{name: "an empty directory", args: []string{"-file", compose, "-bin", programs, "-dir", occupied}, want: "not empty"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := main.Run(append(tt.args, "--", "true"))
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestPortsFitTheTemporalSchema(t *testing.T) {
	ports, err := main.FreePorts(9)
	require.NoError(t, err)
	slices.Sort(ports)
	require.Len(t, slices.Compact(ports), 9)
	require.GreaterOrEqual(t, ports[0], 1024)
	require.LessOrEqual(t, ports[8], 1<<15-1)
}
