package rig

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/blobs"
	"github.com/seed-9ed7edd4/chronicle/stream"
)

func TestMain(m *testing.M) {
	Main()
	os.Exit(m.Run())
}

func TestTheBlobStoreComesBackAsItWas(t *testing.T) {
	r := &Rig{dir: t.TempDir()}
	require.NoError(t, r.prepareBlobs())
	store, err := blobs.Open(t.Context(), r.places.Blobs, "default")
	require.NoError(t, err)
	defer store.Close()
	ref, err := store.Put(t.Context(), []byte("hello"))
	require.NoError(t, err)

	down, back := context.WithCancel(t.Context())
	over := make(chan error)
	require.NoError(t, r.linkBlobs(notAFolder))
	_, err = store.Get(t.Context(), ref)
	require.ErrorIs(t, err, blobs.ErrAway)
	require.NotErrorIs(t, err, blobs.ErrNotFound)
	_, err = store.Put(t.Context(), []byte("more"))
	require.ErrorIs(t, err, blobs.ErrAway)
	go func() { over <- r.TakeBlobsAway(down, time.Hour) }()
	back()
	require.NoError(t, <-over)
	data, err := store.Get(t.Context(), ref)
	require.NoError(t, err)
	require.Equal(t, "hello", string(data))
}

func TestNATSComesBackOnItsPort(t *testing.T) {
	p, err := start(t.Context(), roleNATS, places{}, newNotes())
	require.NoError(t, err)
	r := &Rig{nats: p, Notes: newNotes()}
	r.places.NATS = p.where
	defer func() { r.nats.stop() }()
	require.NoError(t, r.RestartNATS(t.Context(), time.Millisecond))
	require.NotEqual(t, p, r.nats)
	require.Equal(t, r.places.NATS, r.nats.where)
	conn, err := stream.Connect(r.places.NATS, stream.Options{Namespace: "default", Name: "test"})
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.Flush(t.Context()))
}
