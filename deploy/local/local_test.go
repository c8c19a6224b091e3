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
	for _, name := range []string{"temporal-sql-tool", "temporal-server", "temporal", "nats-server", "versitygw", "worker", "starter", "prometheus"} {
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

func TestTheS3ServerHasItsOwnPortAndDirectories(t *testing.T) {
	args, err := main.S3Arguments(filepath.Join("..", "..", "docker-compose.yml"), "/tmp/s3", "127.0.0.1:10000")
	require.NoError(t, err)
	require.Equal(t, []string{"--port", "127.0.0.1:10000", "--health", "/health", "--quiet", "--keep-alive", "posix", "--sidecar", "/tmp/s3/metadata", "/tmp/s3/objects"}, args)
}

func TestTheBucketMovesToTheLocalEndpoint(t *testing.T) {
	moved, err := main.WithEndpoint("s3://chronicle?endpoint=http://s3:7070&region=us-east-1", "http://127.0.0.1:10000")
	require.NoError(t, err)
	require.Equal(t, "s3://chronicle?endpoint=http%3A%2F%2F127.0.0.1%3A10000&region=us-east-1", moved)
	for _, other := range []string{"file:///var/lib/chronicle", "s3://chronicle"} {
		_, err := main.WithEndpoint(other, "http://127.0.0.1:10000")
		require.ErrorContains(t, err, "BLOB_URL "+other+": want s3://BUCKET?endpoint=URL")
	}
}
