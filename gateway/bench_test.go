package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
)

// BenchmarkViewers streams an answer of 50 tokens per second to 1000 viewers of its
// transcript. It reports the delay of a token and the cost of a viewer. The cost includes
// the client side, which runs in the same process and uses most of the CPU time.
func BenchmarkViewers(b *testing.B) {
	const (
		viewers = 1000
		every   = 20 * time.Millisecond
	)
	log := newLog(answering("Hello")...)
	g := gateway.New(fakeClient{log: log}, gateway.Options{Rate: -1, Log: slog.New(slog.DiscardHandler)})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	served := make(chan error, 1)
	go func() { served <- g.Serve(ctx, listener) }()

	empty := heap()
	var watching, gone sync.WaitGroup
	var mu sync.Mutex
	var latencies []time.Duration
	for range viewers {
		watching.Add(1)
		gone.Go(func() {
			seen := watch(ctx, listener.Addr().String(), watching.Done)
			mu.Lock()
			defer mu.Unlock()
			latencies = append(latencies, seen...)
		})
	}
	watching.Wait()
	full := heap()
	busy := processorTime(b)
	pace := time.NewTicker(every)
	defer pace.Stop()
	tokens := 0
	for b.Loop() {
		<-pace.C
		log.record(delta(tokens, fmt.Sprintf("@%d;", time.Now().UnixNano())))
		tokens++
	}
	busy = processorTime(b) - busy
	after := heap()
	log.record(event.AssistantMessage{RequestID: "demo:r0001", Content: "over", ThroughEventID: eventID(1)})
	gone.Wait()
	cancel()
	if err := <-served; err != nil {
		b.Fatal(err)
	}
	slices.Sort(latencies)
	report := func(name string, quantile float64) {
		b.ReportMetric(float64(latencies[int(quantile*float64(len(latencies)-1))])/1e6, name)
	}
	report("p50-ms", 0.5)
	report("p95-ms", 0.95)
	report("p99-ms", 0.99)
	b.ReportMetric(float64(len(latencies))/float64(viewers*tokens), "seen/token")
	b.ReportMetric(float64(busy.Microseconds())/float64(viewers*tokens), "cpu-µs/seen")
	b.ReportMetric(float64(full-empty)/viewers, "B/viewer")
	b.ReportMetric(float64(after-full)/viewers/float64(tokens), "B/viewer/token")
}

// processorTime is the CPU time of the process. Unlike latency, it does not depend on
// the load of the machine.
func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// watch reads a transcript until the answer ends, and returns the delay of each token. It
// calls begun when the stream has begun.
func watch(ctx context.Context, address string, begun func()) (latencies []time.Duration) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+transcriptPath, nil)
	if err != nil {
		panic(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	response, err := (&http.Transport{}).RoundTrip(r)
	if err != nil {
		panic(err)
	}
	defer response.Body.Close()
	begun()
	latencies = make([]time.Duration, 0, 1<<10)
	buffer, kept := make([]byte, 16<<10), 0
	for {
		n, err := response.Body.Read(buffer[kept:])
		now := time.Now().UnixNano()
		rest := buffer[:kept+n]
		if err == io.EOF || bytes.Contains(rest, []byte("over")) {
			return latencies
		}
		if err != nil {
			panic(err)
		}
		for {
			_, token, found := bytes.Cut(rest, []byte("@"))
			number, behind, ended := bytes.Cut(token, []byte(";"))
			if !found || !ended {
				break
			}
			at, err := strconv.ParseInt(string(number), 10, 64)
			if err != nil {
				panic(err)
			}
			latencies, rest = append(latencies, time.Duration(now-at)), behind
		}
		kept = copy(buffer, rest[max(0, len(rest)-64):])
	}
}
