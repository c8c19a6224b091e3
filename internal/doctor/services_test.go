package doctor

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
	"github.com/seed-9ed7edd4/chronicle/internal/natsserver"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
	"github.com/seed-9ed7edd4/chronicle/internal/stream/streamtest"
)

func natsCheck(t *testing.T, url string) Finding {
	t.Helper()
	d, err := ForClient(client.Config{Address: "127.0.0.1:1", Namespace: "default", NATSURL: url})
	require.NoError(t, err)
	return examine(t, check(d, "nats.roundtrip"))["nats.roundtrip"]
}

func TestNATSRoundTrip(t *testing.T) {
	server, err := natsserver.Start(natsserver.Options{})
	require.NoError(t, err)
	defer server.Shutdown()
	requireFinding(t, natsCheck(t, server.URL()), OK, "a message takes")
	requireFinding(t, natsCheck(t, "none"), Skipped, "--nats-url none")
}

func TestNATSIsDown(t *testing.T) {
	found := natsCheck(t, "nats://user:secret@127.0.0.1:1")
	requireFinding(t, found, Error, "NATS is not connected")
	require.NotContains(t, found.Measured, "secret")
	requireFinding(t, natsCheck(t, "nats://:x y"), Error, "nats at")
}

func TestNATSRefusesTheClient(t *testing.T) {
	server, err := natsserver.Start(natsserver.Options{Token: "s3cr3t"})
	require.NoError(t, err)
	defer server.Shutdown()
	found := natsCheck(t, server.URL())
	requireFinding(t, found, Error, "set NATS_TOKEN_FILE")
	require.Equal(t, "set the credentials that the server accepts", found.Fix)
}

func TestNATSDeliversNothing(t *testing.T) {
	server, err := natsserver.Start(natsserver.Options{})
	require.NoError(t, err)
	defer server.Shutdown()
	tunnel := streamtest.Start(t, server.URL())
	conn, err := stream.Connect(tunnel.URL(), stream.Options{})
	require.NoError(t, err)
	defer conn.Close()
	tunnel.Silence()
	d := &Deployment{NATS: func() (*stream.Conn, error) { return conn, nil }}
	for _, want := range []string{"did not arrive", "no response"} {
		c := check(d, "nats.roundtrip")
		c.Timeout = 10 * time.Millisecond
		requireFinding(t, examine(t, c)["nats.roundtrip"], Error, want)
		d.IsClient = true // the last check closes the connection
	}
}

// storeCheck examines the store of a bucket in a namespace with the store "store-1".
func storeCheck(t *testing.T, store *blobs.Store) Finding {
	t.Helper()
	d := newServer().deployment()
	d.Store = func(context.Context) (*blobs.Store, error) { return store, nil }
	return examine(t, d.ConnectionChecks()...)["store.access"]
}

func TestTheStoreIsProbedAndLeftUnchanged(t *testing.T) {
	bucket := blobstest.New(t)
	bucket.Set("store.json", []byte(`{"version":1,"id":"store-1"}`))
	requireFinding(t, storeCheck(t, bucket.Store), OK, "write, read, list and delete")
	require.Equal(t, []string{"store.json"}, bucket.Names())
}

func TestTheStoreIsThatOfAnotherNamespace(t *testing.T) {
	bucket := blobstest.New(t)
	requireFinding(t, storeCheck(t, bucket.Store), Error, "has no identity, but namespace \"default\" uses store store-1")
	require.Empty(t, bucket.Names(), "the check does not give the store an identity")
	bucket = blobstest.New(t)
	bucket.Set("store.json", []byte(`{"version":1,"id":"store-2"}`))
	requireFinding(t, storeCheck(t, bucket.Store), Error, "is store-2, but namespace \"default\" uses store-1")
}

func TestTheStoreIsReadOnly(t *testing.T) {
	dir := t.TempDir()
	place := (&url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}).String()
	store, err := blobs.Open(t.Context(), place, "default")
	require.NoError(t, err)
	defer store.Close()
	// Files below a file cannot be created, not even by root, whom permissions do not stop.
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "default"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "default", strings.TrimSuffix(probeFolder, "/")), nil, 0o600))
	requireFinding(t, storeCheck(t, store), Error, "cannot write")
}

func TestTheStoreIsDown(t *testing.T) {
	bucket := blobstest.New(t)
	bucket.Fail(errors.New("connection refused"))
	requireFinding(t, storeCheck(t, bucket.Store), Error, "connection refused")
	bucket.Fail(fs.ErrPermission)
	requireFinding(t, storeCheck(t, bucket.Store), Error, "cannot write")
}

func storeOf(t *testing.T, blobURL string) Finding {
	t.Helper()
	d, err := ForClient(client.Config{Address: "127.0.0.1:1", BlobURL: blobURL})
	require.NoError(t, err)
	return examine(t, check(d, "store.access"))["store.access"]
}

func TestTheURLOfTheStoreIsInvalid(t *testing.T) {
	found := storeOf(t, "s4://bucket?secret=abc")
	requireFinding(t, found, Error, "s4")
	require.NotContains(t, found.Measured, "abc")
}

func TestTheFolderOfTheStoreIsMissing(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "missing")
	requireFinding(t, storeOf(t, "file://"+filepath.ToSlash(folder)), Error, "the folder does not exist")
	require.NoDirExists(t, folder)
}

func TestNoStoreIsSet(t *testing.T) {
	t.Setenv("BLOB_URL", "")
	requireFinding(t, storeOf(t, ""), Skipped, "no blob store is set")
}
