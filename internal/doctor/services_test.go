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
	"github.com/seed-9ed7edd4/chronicle/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/eventlog/blobs/blobstest"
	"github.com/seed-9ed7edd4/chronicle/internal/natsserver"
	"github.com/seed-9ed7edd4/chronicle/stream"
	"github.com/seed-9ed7edd4/chronicle/stream/streamtest"
)

func natsCheck(t *testing.T, url string) Finding {
	t.Helper()
	d, err := ForClient(client.Config{Address: "127.0.0.1:1", Namespace: "default", NATSURL: url})
	require.NoError(t, err)
	return examine(t, d.roundTrip())["nats.roundtrip"]
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
	check := d.roundTrip()
	check.Timeout = 10 * time.Millisecond
	requireFinding(t, examine(t, check)["nats.roundtrip"], Error, "no response")
	d.Publishes = true
	check = d.roundTrip()
	check.Timeout = 10 * time.Millisecond
	requireFinding(t, examine(t, check)["nats.roundtrip"], Error, "did not arrive")
}

// storeChecks examines the store of a bucket in a namespace with another store, "store-1".
func storeChecks(t *testing.T, store *blobs.Store) map[string]Finding {
	t.Helper()
	d := newServer().deployment()
	d.Store = func(context.Context) (*blobs.Store, error) { return store, nil }
	return examine(t, d.connection(), d.namespace(), d.access(), d.identity())
}

func TestTheStoreIsProbedAndLeftUnchanged(t *testing.T) {
	bucket := blobstest.New(t)
	bucket.Set("store.json", []byte(`{"version":1,"id":"store-1"}`))
	found := storeChecks(t, bucket.Store)
	requireFinding(t, found[checkAccess], OK, "write, read, list and delete")
	requireFinding(t, found["store.identity"], OK, "store-1")
	require.Equal(t, []string{"store.json"}, bucket.Names())
}

func TestTheStoreIsThatOfAnotherNamespace(t *testing.T) {
	bucket := blobstest.New(t)
	requireFinding(t, storeChecks(t, bucket.Store)["store.identity"], Error, "has no identity, but namespace \"default\" uses store store-1")
	require.Empty(t, bucket.Names(), "the check does not give the store an identity")
	bucket = blobstest.New(t)
	bucket.Set("store.json", []byte(`{"version":1,"id":"store-2"}`))
	requireFinding(t, storeChecks(t, bucket.Store)["store.identity"], Error, "is store-2, but namespace \"default\" uses store-1")
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
	found := storeChecks(t, store)
	requireFinding(t, found[checkAccess], Error, "cannot write")
	requireFinding(t, found["store.identity"], Skipped, "requires store.access")
}

func TestTheStoreIsDown(t *testing.T) {
	bucket := blobstest.New(t)
	bucket.Fail(errors.New("connection refused"))
	requireFinding(t, storeChecks(t, bucket.Store)[checkAccess], Error, "connection refused")
	bucket.Fail(fs.ErrPermission)
	requireFinding(t, storeChecks(t, bucket.Store)[checkAccess], Error, "cannot write")
}

func TestTheURLOfTheStoreIsInvalid(t *testing.T) {
	d, err := ForClient(client.Config{Address: "127.0.0.1:1", BlobURL: "s4://bucket?secret=abc"})
	require.NoError(t, err)
	defer d.Close()
	found := examine(t, d.access())[checkAccess]
	requireFinding(t, found, Error, "s4")
	require.NotContains(t, found.Measured, "abc")
}

func TestTheFolderOfTheStoreIsMissing(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "missing")
	d, err := ForClient(client.Config{Address: "127.0.0.1:1", BlobURL: "file://" + filepath.ToSlash(folder)})
	require.NoError(t, err)
	defer d.Close()
	requireFinding(t, examine(t, d.access())[checkAccess], Error, "the folder does not exist")
	require.NoDirExists(t, folder)
}

func TestNoStoreIsSet(t *testing.T) {
	t.Setenv("BLOB_URL", "")
	d, err := ForClient(client.Config{Address: "127.0.0.1:1"})
	require.NoError(t, err)
	found := examine(t, d.access(), d.disk())
	requireFinding(t, found[checkAccess], Skipped, "no blob store is set")
	requireFinding(t, found["disk.space"], Skipped, "no local folder is used")
}
