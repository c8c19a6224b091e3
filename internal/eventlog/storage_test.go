package eventlog_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
)

func TestPayloadsAreStoredWithTheirContext(t *testing.T) {
	bucket := blobstest.New(t)
	driver := eventlog.ExternalStorage(bucket.Store).Drivers[0]
	payload := &commonpb.Payload{Data: []byte("hello")}
	for workflowID, folder := range map[string]string{
		"context:demo": "blobs/demo/sha256/", "context:De mo": "sha256/", "orders-7": "sha256/", "delete:demo": "sha256/",
		"send:acme/demo2/daily": "tenants/acme/blobs/demo2/sha256/", "send:demo3/daily-2026-01-02T09:00:00Z": "blobs/demo3/sha256/",
		"evaluate:acme/demo4:a:b": "tenants/acme/blobs/demo4/sha256/", "offer:demo5:1": "blobs/demo5/sha256/", "evaluate:demo": "sha256/",
	} {
		claims, err := driver.Store(converter.StorageDriverStoreContext{
			Context: t.Context(), Target: converter.StorageDriverWorkflowInfo{WorkflowID: workflowID},
		}, []*commonpb.Payload{payload})
		require.NoError(t, err)
		stored := 0
		for _, name := range bucket.Names() {
			if strings.HasPrefix(name, folder) {
				stored++
			}
		}
		require.Equal(t, 1, stored, workflowID)
		read, err := driver.Retrieve(converter.StorageDriverRetrieveContext{Context: t.Context()}, claims)
		require.NoError(t, err)
		require.Equal(t, "hello", string(read[0].GetData()))
	}
}
