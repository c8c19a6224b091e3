package client_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	sdkclient "go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/client"
)

func TestAConfigWithTemporalOptionsReadsNoVariables(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, value := range map[string]string{
		"TEMPORAL_ADDRESS": "temporal:7233", "TEMPORAL_NAMESPACE": "prod", "NATS_URL": "nats://nats:4222", "NATS_TOKEN": "t", "BLOB_URL": "file:///blobs",
	} {
		t.Setenv(name, value)
	}
	for name, test := range map[string]struct {
		given                          client.Config
		address, namespace, nats, blob string
		token                          string
	}{
		"variables": {client.Config{}, "temporal:7233", "prod", "nats://nats:4222", "file:///blobs", "t"},
		"none":      {client.Config{NATSURL: "none", BlobURL: "none"}, "temporal:7233", "prod", "", "", "t"},
		"fields":    {client.Config{Address: "a:1", Namespace: "n"}, "a:1", "n", "nats://nats:4222", "file:///blobs", "t"},
		"options":   {client.Config{Temporal: &sdkclient.Options{HostPort: "b:1", Namespace: "m"}}, "b:1", "m", "", "", ""},
		"no options": {client.Config{Temporal: &sdkclient.Options{}, NATSURL: "nats://b:2", BlobURL: "mem://", NATSAuth: client.NATSAuth{Token: "u"}},
			"127.0.0.1:7233", "default", "nats://b:2", "mem://", "u"},
		"fields override options": {client.Config{Address: "a:1", Temporal: &sdkclient.Options{HostPort: "b:1", Namespace: "m"}}, "a:1", "m", "", "", ""},
	} {
		got, err := test.given.Resolve()
		require.NoError(t, err, name)
		require.Equal(t, test.address, got.Temporal.HostPort, name)
		require.Equal(t, test.namespace, got.Temporal.Namespace, name)
		require.Equal(t, test.namespace, got.Namespace, name)
		require.Equal(t, test.nats, got.NATSURL, name)
		require.Equal(t, test.blob, got.BlobURL, name)
		require.Equal(t, test.token, got.NATSAuth.Token, name)
	}
}
