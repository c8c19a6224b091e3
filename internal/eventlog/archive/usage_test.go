package archive_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
)

func TestTheUsageOfATenant(t *testing.T) {
	bucket := blobstest.New(t)
	a := archive.New(bucket.Store)
	usage := func(tenant string) archive.Usage {
		u, err := a.Usage(t.Context(), tenant)
		require.NoError(t, err)
		return u
	}
	require.Zero(t, usage("acme"))
	for _, name := range []string{"acme/demo", "acme/demo-2", "acme/demo.3", "acme/Demo", "Acme/demo", "acme2/demo", "acme"} {
		require.NoError(t, register(t.Context(), a, name, archive.Run{ID: "A"}))
		require.NoError(t, register(t.Context(), a, name, archive.Run{ID: "B", Behind: "A"}))
		_, err := a.Blobs(name).Put(t.Context(), []byte("PNG of a harbour"))
		require.NoError(t, err)
	}
	one := usage("acme2")
	require.Equal(t, 1, one.Contexts)
	require.NoError(t, fork(t.Context(), a, "acme2/copy", "acme2/demo", 1))
	require.Equal(t, 2, usage("acme2").Contexts)
	require.Equal(t, 4, usage("acme").Contexts)
	acme, err := a.Usage(t.Context(), "acme", "new", "Demo", "demo.3", "demo-4")
	require.NoError(t, err)
	require.Equal(t, []string{"demo-4", "new"}, acme.Missing)
	require.Equal(t, 1, usage("").Contexts, "those without a tenant")
	var total, all int64
	for _, tenant := range []string{"", "acme", "Acme", "acme2"} {
		total += usage(tenant).Bytes
	}
	for o, err := range bucket.Store.Objects(t.Context(), "") {
		require.NoError(t, err)
		all += o.Bytes
	}
	require.Equal(t, all, total)
	_, err = a.Delete(t.Context(), "acme/demo")
	require.NoError(t, err)
	require.Equal(t, 3, usage("acme").Contexts)

	bucket.Fail(errors.New("down"))
	_, err = a.Usage(t.Context(), "acme")
	require.ErrorContains(t, err, `measure the archive of tenant "acme": `)
}
