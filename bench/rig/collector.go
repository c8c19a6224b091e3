package rig

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Collector receives spans by OTLP in this process.
type Collector struct {
	URL    string
	server *http.Server

	mu       sync.Mutex // guards received
	received [][]byte   // decoded by Spans, to leave the processors to the measured programs
}

func StartCollector() (*Collector, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &Collector{URL: "http://" + listener.Addr().String() + "/v1/traces"}
	c.server = &http.Server{Handler: http.HandlerFunc(c.receive)}
	go func() { _ = c.server.Serve(listener) }() // it ends with Stop
	return c, nil
}

func (c *Collector) Stop() { _ = c.server.Close() }

func (c *Collector) receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received = append(c.received, body)
	w.Header().Set("Content-Type", "application/x-protobuf") // an empty body is a success
}

// Spans returns the number of spans received since the last call.
func (c *Collector) Spans() (n int, err error) {
	c.mu.Lock()
	received := c.received
	c.received = nil
	c.mu.Unlock()
	for _, body := range received {
		var export collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &export); err != nil {
			return 0, fmt.Errorf("decode exported spans: %w", err)
		}
		for _, resource := range export.GetResourceSpans() {
			for _, scope := range resource.GetScopeSpans() {
				n += len(scope.GetSpans())
			}
		}
	}
	return n, nil
}
