package client_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
)

func TestTheStoreUsageIsThatOfTheTenant(t *testing.T) {
	logs := archive.New(blobstest.New(t).Store)
	c := client.New(client.Options{Temporal: &temporal{}, Archive: logs})
	for _, name := range []string{"acme/demo", "other/demo", "demo"} {
		_, err := logs.Blobs(name).Put(t.Context(), make([]byte, len(name)))
		require.NoError(t, err)
		folder, err := logs.Folder(t.Context(), name)
		require.NoError(t, err)
		require.NoError(t, folder.Register(t.Context(), archive.Run{ID: "A"}))
	}
	measure := func(c *client.Client) client.StoreUsage {
		usage, err := c.StoreUsage(t.Context())
		require.NoError(t, err)
		return usage
	}
	acme, none := measure(tenantOf(t, c, "acme")), measure(tenantOf(t, c, ""))
	require.Equal(t, 1, acme.Contexts)
	require.Equal(t, int64(len("acme/")), acme.Bytes-none.Bytes)
	require.Zero(t, measure(tenantOf(t, c, "new")))
	usage, err := tenantOf(t, c, "acme").StoreUsage(t.Context(), "demo", "else")
	require.NoError(t, err)
	require.Equal(t, []string{"else"}, usage.Missing)

	without := client.New(client.Options{Temporal: &temporal{}})
	_, err = without.StoreUsage(t.Context())
	require.ErrorIs(t, err, client.ErrNoArchive)
}
