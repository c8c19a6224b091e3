package rig

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/stream"
)

func TestMain(m *testing.M) {
	Main()
	os.Exit(m.Run())
}

func TestABlobStoreOutageLosesNothing(t *testing.T) {
	r := &Rig{dir: t.TempDir()}
	require.NoError(t, r.prepareBlobs())
	store, err := blobs.Open(t.Context(), r.addresses.Blobs, "default")
	require.NoError(t, err)
	defer store.Close()
	ref, err := store.Put(t.Context(), []byte("hello"))
	require.NoError(t, err)

	down, back := context.WithCancel(t.Context())
	over := make(chan error)
	require.NoError(t, r.linkBlobs(notADirectory))
	_, err = store.Get(t.Context(), ref)
	require.ErrorIs(t, err, blobs.ErrUnavailable)
	require.NotErrorIs(t, err, blobs.ErrNotFound)
	_, err = store.Put(t.Context(), []byte("more"))
	require.ErrorIs(t, err, blobs.ErrUnavailable)
	go func() { over <- r.DisconnectBlobs(down, time.Hour) }()
	back()
	require.NoError(t, <-over)
	data, err := store.Get(t.Context(), ref)
	require.NoError(t, err)
	require.Equal(t, "hello", string(data))
}

func TestNATSRestartsOnTheSamePort(t *testing.T) {
	p, err := start(t.Context(), roleNATS, addresses{}, newObservations())
	require.NoError(t, err)
	r := &Rig{nats: p, Observations: newObservations()}
	r.addresses.NATS = p.address
	defer func() { r.nats.stop() }()
	require.NoError(t, r.RestartNATS(t.Context(), time.Millisecond))
	require.NotEqual(t, p, r.nats)
	require.Equal(t, r.addresses.NATS, r.nats.address)
	conn, err := stream.Connect(r.addresses.NATS, stream.Options{Namespace: "default", Name: "test"})
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.Flush(t.Context()))
}
