package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
)

// heapMeter is a response that keeps nothing and records the largest heap during its writes.
type heapMeter struct {
	header  http.Header
	written int
	heap    uint64
}

func (m *heapMeter) Header() http.Header { return m.header }

func (m *heapMeter) WriteHeader(int) {}

func (m *heapMeter) Flush() {}

func (m *heapMeter) Write(b []byte) (int, error) {
	if m.written>>20 != (m.written+len(b))>>20 {
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		m.heap = max(m.heap, stats.HeapAlloc)
	}
	m.written += len(b)
	return len(b), nil
}

// A transcript of 144 MB is sent to four clients under a memory limit below its size.
func TestALongTranscriptIsSentInLittleMemory(t *testing.T) {
	const limit = 100 << 20
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(limit))
	text := strings.Repeat("x", 6_000_000)
	log := newLog()
	for range 24 {
		log.record(event.UserMessage{Content: text}) // all share the text
	}
	g := gateway.New(fakeClient{log: log}, gateway.Options{AnswerBytes: 32 << 20, Rate: -1})
	defer g.Close()
	var meters [4]heapMeter
	var requests sync.WaitGroup
	for i := range meters {
		m := &meters[i]
		m.header = http.Header{}
		requests.Go(func() {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+transcriptPath, http.NoBody)
			g.ServeHTTP(m, r)
		})
	}
	requests.Wait()
	for _, m := range meters {
		require.Greater(t, m.written, 24*len(text))
		require.Less(t, m.heap, uint64(limit+25<<20))
	}
}
