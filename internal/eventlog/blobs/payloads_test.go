package blobs_test

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
	"github.com/seed-9ed7edd4/chronicle/internal/references"
)

// sdk passes payloads through the SDK, to Temporal ("encode") or back ("decode").
func sdk(t testing.TB, store *blobs.Store, way string, payloads ...*commonpb.Payload) ([]*commonpb.Payload, error) {
	t.Helper()
	handler, err := converter.NewPayloadHTTPHandler(converter.PayloadHTTPHandlerOptions{ExternalStorage: blobs.ExternalStorage(store, nil)})
	require.NoError(t, err)
	body, err := protojson.Marshal(&commonpb.Payloads{Payloads: payloads})
	require.NoError(t, err)
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/"+way, bytes.NewReader(body)))
	if answer.Code != http.StatusOK {
		return nil, errors.New(answer.Body.String())
	}
	var out commonpb.Payloads
	require.NoError(t, protojson.Unmarshal(answer.Body.Bytes(), &out))
	return out.GetPayloads(), nil
}

func payload(t testing.TB, value any) *commonpb.Payload {
	t.Helper()
	p, err := converter.GetDefaultDataConverter().ToPayload(value)
	require.NoError(t, err)
	return p
}

func TestLargePayloadsAreStored(t *testing.T) {
	bucket := blobstest.New(t)
	small := payload(t, strings.Repeat("s", blobs.PayloadThreshold/2))
	large := payload(t, strings.Repeat("l", blobs.PayloadThreshold))
	other := payload(t, strings.Repeat("o", 2*blobs.PayloadThreshold))

	stored, err := sdk(t, bucket.Store, "encode", small, large, other)
	require.NoError(t, err)
	require.True(t, proto.Equal(small, stored[0]), "a small payload stays in the history")
	require.False(t, references.Is(stored[0]))
	for _, reference := range stored[1:] {
		require.True(t, references.Is(reference))
		require.Less(t, proto.Size(reference), 500)
	}
	require.Len(t, bucket.Names(), 3, "two payloads and the identity")

	again, err := sdk(t, bucket.Store, "encode", small, large, other)
	require.NoError(t, err)
	require.Equal(t, 3, bucket.Writes(), "a retry writes nothing")
	require.True(t, proto.Equal(stored[1], again[1]), "the reference is the same")

	for name, read := range map[string]func() ([]*commonpb.Payload, error){
		"by the SDK": func() ([]*commonpb.Payload, error) { return sdk(t, bucket.Store, "decode", stored...) },
		"in a raw history": func() ([]*commonpb.Payload, error) {
			inline, err := bucket.Store.Inline(t.Context(), &commonpb.Payloads{Payloads: stored})
			return inline.GetPayloads(), err
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := read()
			require.NoError(t, err)
			require.Len(t, got, 3)
			for i, want := range []*commonpb.Payload{small, large, other} {
				require.True(t, proto.Equal(want, got[i]))
			}
		})
	}
}

func TestAnUnresolvableReferenceIsAnError(t *testing.T) {
	bucket := blobstest.New(t)
	stored, err := sdk(t, bucket.Store, "encode", payload(t, strings.Repeat("l", blobs.PayloadThreshold)))
	require.NoError(t, err)
	reference := stored[0]
	for name, tc := range map[string]struct {
		corrupt func(reference *commonpb.Payload)
		want    string
	}{
		"the blob is missing":      {func(*commonpb.Payload) { bucket.Set(bucket.Names()[0], nil) }, "is not in the store"},
		"the blob is damaged":      {func(*commonpb.Payload) { bucket.Set(bucket.Names()[0], []byte("x")) }, "is damaged"},
		"the store is unavailable": {func(*commonpb.Payload) { bucket.Fail(errors.New("no route")) }, "no route"},
		"another driver": {func(r *commonpb.Payload) {
			r.Data = bytes.Replace(r.GetData(), []byte("chronicle-blobs"), []byte("someone-elses"), 1)
		}, "someone-elses"},
		"an invalid reference": {func(r *commonpb.Payload) {
			r.Data = bytes.Replace(r.GetData(), []byte("sha256/"), []byte("sha512/"), 1)
		}, "want sha256/ and 64 of 0-9 a-f"},
		"invalid JSON": {func(r *commonpb.Payload) { r.Data = []byte("no") }, "reference"},
	} {
		t.Run(name, func(t *testing.T) {
			ref := bucket.Names()[0]
			whole, err := bucket.Store.Read(t.Context(), ref)
			require.NoError(t, err)
			defer func() { bucket.Fail(nil); bucket.Set(ref, whole) }()
			corrupted := proto.CloneOf(reference)
			tc.corrupt(corrupted)
			_, err = sdk(t, bucket.Store, "decode", corrupted)
			require.ErrorContains(t, err, tc.want)
			_, err = bucket.Store.Inline(t.Context(), &commonpb.Payloads{Payloads: []*commonpb.Payload{corrupted}})
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestEncodingFailsWhileTheStoreIsUnavailable(t *testing.T) {
	bucket := blobstest.New(t)
	bucket.Fail(errors.New("no route"))
	_, err := sdk(t, bucket.Store, "encode", payload(t, strings.Repeat("l", blobs.PayloadThreshold)))
	require.ErrorContains(t, err, "no route")
}

func TestATemporalClientAcceptsTheStorage(t *testing.T) {
	c, err := client.NewLazyClient(client.Options{ExternalStorage: blobs.ExternalStorage(blobstest.New(t).Store, nil)})
	require.NoError(t, err)
	c.Close()
}

func TestWithoutAStorePayloadsStayInline(t *testing.T) {
	large := payload(t, strings.Repeat("l", 2*blobs.PayloadThreshold))
	sent, err := sdk(t, nil, "encode", large)
	require.NoError(t, err)
	require.True(t, proto.Equal(large, sent[0]))
	got, err := sdk(t, nil, "decode", sent...)
	require.NoError(t, err)
	require.True(t, proto.Equal(large, got[0]))

	stored, err := sdk(t, blobstest.New(t).Store, "encode", large)
	require.NoError(t, err)
	_, err = sdk(t, nil, "decode", stored...)
	require.ErrorContains(t, err, "is in a blob store, and this process has none (set --blob-url or BLOB_URL to the store of the workers, or use the gateway)")
}
