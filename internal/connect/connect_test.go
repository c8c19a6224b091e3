package connect_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/connect"
)

func TestTemporalOptions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "temporal.toml")
	require.NoError(t, os.WriteFile(file, []byte("[profile.default]\naddress = \"default:1\"\n[profile.prod]\naddress = \"file:1\"\nnamespace = \"from-file\"\n"), 0o600))
	for _, tt := range []struct {
		name                        string
		flags                       connect.Temporal
		noFile                      bool
		address, namespace, profile string // of the environment
		wantAddress                 string
		wantNamespace               string
	}{
		{name: "defaults", noFile: true, wantAddress: "127.0.0.1:7233", wantNamespace: "default"},
		{name: "the default profile", wantAddress: "default:1", wantNamespace: "default"},
		{name: "the profile of the environment", profile: "prod", wantAddress: "file:1", wantNamespace: "from-file"},
		{name: "a profile", flags: connect.Temporal{Profile: "prod"}, wantAddress: "file:1", wantNamespace: "from-file"},
		{
			name: "the environment overrides the profile", flags: connect.Temporal{Profile: "prod"},
			address: "env:1", namespace: "from-env", wantAddress: "env:1", wantNamespace: "from-env",
		},
		{
			name: "flags override the environment", flags: connect.Temporal{Address: "flag:1", Namespace: "from-flag"},
			address: "env:1", namespace: "from-env", wantAddress: "flag:1", wantNamespace: "from-flag",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("TEMPORAL_CONFIG_FILE", file)
			if tt.noFile {
				t.Setenv("TEMPORAL_CONFIG_FILE", filepath.Join(t.TempDir(), "missing.toml"))
			}
			for name, value := range map[string]string{
				"TEMPORAL_ADDRESS": tt.address, "TEMPORAL_NAMESPACE": tt.namespace, "TEMPORAL_PROFILE": tt.profile,
			} {
				t.Setenv(name, value)
				if value == "" {
					// An empty variable hides the profile.
					require.NoError(t, os.Unsetenv(name))
				}
			}
			options, err := tt.flags.Options()
			require.NoError(t, err)
			require.Equal(t, tt.wantAddress, options.HostPort)
			require.Equal(t, tt.wantNamespace, options.Namespace)
		})
	}
	t.Run("an unknown profile", func(t *testing.T) {
		t.Setenv("TEMPORAL_CONFIG_FILE", file)
		options, err := connect.Temporal{Profile: "missing", Address: "flag:1"}.Options()
		require.ErrorContains(t, err, "load the configuration of the Temporal client")
		require.Equal(t, "flag:1", options.HostPort)
	})
}

func TestNATSURL(t *testing.T) {
	for _, tt := range []struct{ flag, env, want string }{
		{want: "nats://127.0.0.1:4222"},
		{env: "nats://env:4222", want: "nats://env:4222"},
		{flag: "nats://flag:4222", env: "nats://env:4222", want: "nats://flag:4222"},
		{env: "none"},
		{flag: "none", env: "nats://env:4222"},
	} {
		getenv := func(name string) string {
			require.Equal(t, "NATS_URL", name)
			return tt.env
		}
		require.Equal(t, tt.want, connect.NATSURL(tt.flag, getenv), tt)
	}
}
