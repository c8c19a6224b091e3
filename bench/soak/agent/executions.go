package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
)

// Execution is a call that a tool has begun to execute.
type Execution struct {
	ContextName string          `json:"contextName"`
	CallID      string          `json:"callId"`
	Tool        string          `json:"tool"`
	Arguments   json.RawMessage `json:"arguments"`
}

// Executions records the tool calls that the workers execute, and the events that their hook [Observe]
// received. It is safe for concurrent use.
type Executions struct {
	URL    string
	server *http.Server

	mu         sync.Mutex
	all        map[string][]Execution // by context
	delivered  map[string]*Delivered  // by context
	deliveries int
}

const deliveryPath = "/events"

// Record starts recording.
func Record() (*Executions, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e := &Executions{URL: "http://" + listener.Addr().String(), all: map[string][]Execution{}, delivered: map[string]*Delivered{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/", e.serve)
	mux.HandleFunc(deliveryPath, e.deliver)
	e.server = &http.Server{Handler: mux}
	go func() { _ = e.server.Serve(listener) }()
	return e, nil
}

func (e *Executions) Close() error { return e.server.Close() }

// Of returns the executions of a context, in order.
func (e *Executions) Of(contextName string) []Execution {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.all[contextName])
}

func (e *Executions) serve(w http.ResponseWriter, r *http.Request) {
	var begun Execution
	if err := json.NewDecoder(r.Body).Decode(&begun); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 1
	for _, earlier := range e.all[begun.ContextName] {
		if earlier.CallID == begun.CallID {
			n++
		}
	}
	e.all[begun.ContextName] = append(e.all[begun.ContextName], begun)
	_, _ = io.WriteString(w, strconv.Itoa(n)) // an error means that the worker was killed
}

// begin reports an execution and returns its number among those of the same call.
func begin(ctx context.Context, url string, begun Execution) (n int, err error) {
	body, err := post(ctx, url, begun)
	if err != nil {
		return 0, fmt.Errorf("record the execution: %w", err)
	}
	return strconv.Atoi(string(body))
}

func post(ctx context.Context, url string, value any) (body []byte, err error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, bytes.TrimSpace(body))
	}
	return body, err
}
