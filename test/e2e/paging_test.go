package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	sdkclient "go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// historyMeter counts the history events that a client reads.
type historyMeter struct {
	mu sync.Mutex
	historyReads
}

type historyReads struct{ requests, entries, bytes int }

func (m *historyMeter) count(ctx context.Context, method string, request, response any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	err := invoke(ctx, method, request, response, conn, options...)
	if page, ok := response.(*workflowservice.GetWorkflowExecutionHistoryResponse); ok {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.requests++
		m.entries += len(page.GetHistory().GetEvents())
		m.bytes += proto.Size(page)
	}
	return err
}

func (m *historyMeter) take() historyReads {
	m.mu.Lock()
	defer m.mu.Unlock()
	reads := m.historyReads
	m.historyReads = historyReads{}
	return reads
}

func (w *world) meteredClient() (*client.Client, *historyMeter) {
	w.t.Helper()
	meter := &historyMeter{}
	temporal, err := sdkclient.DialContext(w.ctx, sdkclient.Options{
		HostPort: w.on.temporal, ExternalStorage: blobs.ExternalStorage(w.archive.Store()),
		ConnectionOptions: sdkclient.ConnectionOptions{DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(meter.count)}},
	})
	require.NoError(w.t, err)
	w.t.Cleanup(temporal.Close)
	return client.New(client.Options{Temporal: temporal, Archive: w.archive, TaskQueue: w.queue}), meter
}

// readPage reads events after from, as a page of the gateway does.
func (w *world) readPage(c *client.Context, from string, limit int) (ids []string) {
	w.t.Helper()
	for e, err := range c.Events(w.ctx, from) {
		require.NoError(w.t, err)
		if len(ids) == limit {
			break // there is a next page
		}
		ids = append(ids, e.ID)
	}
	return ids
}

func (w *world) readPages(c *client.Context, limit int) (ids []string) {
	w.t.Helper()
	for from := ""; ; from = ids[len(ids)-1] {
		page := w.readPage(c, from, limit)
		ids = append(ids, page...)
		if len(page) < limit {
			return ids
		}
	}
}

func firstIDs(c *client.Context, n int) (ids []string) {
	for counter := range n {
		ids = append(ids, event.FormatID(c.Name(), counter+1))
	}
	return ids
}

// fill sends events one by one. Every tenth is a file.
func (w *world) fill(c *client.Context, events int) {
	w.t.Helper()
	no := false
	for i := range events {
		e := event.New(event.UserMessage{Content: fmt.Sprintf("Message %d", i), TriggersTurn: &no})
		if i%10 == 9 {
			e = event.New(event.FileAttachment{
				Source: event.Source{Type: event.SourceBlob, Data: []byte("a file")}, MediaType: "text/plain", FileName: "a.txt",
			})
		}
		w.send(c, e)
	}
}

func TestLogPagesReadAHistoryOnceInTotal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.worker()
	c := w.open("pages")
	w.fill(c, 300)
	measured, meter := w.meteredClient()
	reader, err := measured.Open(c.Name())
	require.NoError(t, err)
	length := func() int {
		d, err := w.temporal.DescribeWorkflowExecution(w.ctx, wire.WorkflowID(c.Name()), "")
		require.NoError(t, err)
		return int(d.GetWorkflowExecutionInfo().GetHistoryLength())
	}

	// One request reads at most 64 batches of 3 entries.
	const page = 3 * 64
	require.Equal(t, firstIDs(c, 301), w.readPages(reader, 20))
	reads := meter.take()
	t.Logf("16 pages of a history of %d entries: %+v", length(), reads)
	require.LessOrEqual(t, reads.entries, length()+16*page)

	for _, counter := range []int{151, 11, 291} {
		_, err := reader.Attachment(w.ctx, event.FormatID(c.Name(), counter))
		require.NoError(t, err)
		reads := meter.take()
		t.Logf("attachment of event %d: %+v", counter, reads)
		require.LessOrEqual(t, reads.requests, 2)
		require.LessOrEqual(t, reads.entries, 2*page)
	}

	// The history has grown since the first reading.
	w.fill(c, 100)
	require.Equal(t, firstIDs(c, 401)[301:], w.readPage(reader, event.FormatID(c.Name(), 301), 500))
	reads = meter.take()
	t.Logf("100 new events: %+v", reads)
	require.LessOrEqual(t, reads.entries, 100*7+page)
	require.Empty(t, w.readPage(reader, event.FormatID(c.Name(), 401), 10))
	require.LessOrEqual(t, meter.take().entries, page)

	// A closed context is read from the archive.
	w.close(c, "")
	require.Equal(t, firstIDs(c, 402), w.readPages(reader, 50))
	require.LessOrEqual(t, meter.take().entries, 9*page)
}
