package connect_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/connect"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
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

func TestTheTokenOfADevWorkerIsFound(t *testing.T) {
	const file = ".chronicle/nats.token"
	tests := []struct {
		name string
		urls string
		auth stream.Auth
		env  map[string]string
		want stream.Auth
	}{
		{name: "the default URL", urls: connect.DefaultNATSURL, want: stream.Auth{TokenFile: file}},
		{name: "without a scheme", urls: "localhost:4222", want: stream.Auth{TokenFile: file}},
		{name: "several local servers", urls: "nats://127.0.0.1:1, nats://[::1]:2", want: stream.Auth{TokenFile: file}},
		{name: "with TLS settings", urls: "tls://127.0.0.1:1", auth: stream.Auth{CAFile: "ca"}, want: stream.Auth{CAFile: "ca", TokenFile: file}},
		{name: "another host", urls: "nats://nats:4222"},
		{name: "a host whose name begins with an address", urls: "nats://127.0.0.1.example.com"},
		{name: "one of two hosts", urls: "nats://127.0.0.1:1,nats://nats:4222"},
		{name: "a user in the URL", urls: "nats://me:pw@127.0.0.1:1"},
		{name: "a malformed URL", urls: "nats://127.0.0.1:port"},
		{name: "no NATS", urls: ""},
		{name: "a setting", urls: connect.DefaultNATSURL, auth: stream.Auth{CredsFile: "c"}, want: stream.Auth{CredsFile: "c"}},
		{name: "a variable", urls: connect.DefaultNATSURL, env: map[string]string{"NATS_TOKEN": "t"}, want: stream.Auth{Token: "t"}},
		{name: "a variable with a file", urls: connect.DefaultNATSURL, env: map[string]string{"NATS_TOKEN_FILE": "t"}, want: stream.Auth{TokenFile: "t"}},
	}
	for _, exists := range []bool{true, false} {
		t.Chdir(t.TempDir())
		if exists {
			require.NoError(t, os.Mkdir(".chronicle", 0o700))
			require.NoError(t, os.WriteFile(file, []byte("token"), 0o600))
		}
		for _, tt := range tests {
			want := tt.want
			if !exists && want.TokenFile == file {
				want.TokenFile = ""
			}
			require.Equal(t, want, connect.NATSAuth(tt.auth, tt.urls, func(name string) string { return tt.env[name] }), tt.name)
		}
	}
}
