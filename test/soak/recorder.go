package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
)

const (
	executionPath = "/executions"
	deliveryPath  = "/events"
	// Every failsEvery-th delivery fails after it was recorded, and is repeated.
	failsEvery = 16
)

// execution is a call that a tool has begun to execute.
type execution struct {
	ContextName, CallID, Tool string
	Arguments                 json.RawMessage
}

// delivered are the events of a context that the hook received.
type delivered struct {
	events   [][]byte
	epoch    int // the highest
	repeated int
	problems []error
}

// recorder records the executions of tools and the deliveries of events, outside of the workers, which are killed.
type recorder struct {
	url    string
	server *http.Server

	mu         sync.Mutex
	executions map[string][]execution // by context
	delivered  map[string]*delivered  // by context
	deliveries int
}

func record() (*recorder, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &recorder{url: "http://" + listener.Addr().String(), executions: map[string][]execution{}, delivered: map[string]*delivered{}}
	mux := http.NewServeMux()
	mux.HandleFunc(executionPath, r.execute)
	mux.HandleFunc(deliveryPath, r.deliver)
	r.server = &http.Server{Handler: mux}
	go func() { _ = r.server.Serve(listener) }()
	return r, nil
}

func (r *recorder) Close() { _ = r.server.Close() }

// execute responds with the number of executions of the call.
func (r *recorder) execute(w http.ResponseWriter, request *http.Request) {
	var begun execution
	if err := json.NewDecoder(request.Body).Decode(&begun); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 1
	for _, earlier := range r.executions[begun.ContextName] {
		if earlier.CallID == begun.CallID {
			n++
		}
	}
	r.executions[begun.ContextName] = append(r.executions[begun.ContextName], begun)
	fmt.Fprint(w, n)
}

func (r *recorder) executionsOf(name string) []execution {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.executions[name])
}

func (r *recorder) deliver(w http.ResponseWriter, request *http.Request) {
	var events hook.Events
	if err := json.NewDecoder(request.Body).Decode(&events); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.delivered[events.ContextName]
	if d == nil {
		d = &delivered{}
		r.delivered[events.ContextName] = d
	}
	d.add(events)
	if r.deliveries++; r.deliveries%failsEvery == 0 {
		http.Error(w, "deliver it again", http.StatusServiceUnavailable)
	}
}

// add takes a delivery as the comment of [hook.Events] requires.
func (d *delivered) add(events hook.Events) {
	if events.Epoch < d.epoch {
		return // of a branch that was replaced
	}
	d.epoch = events.Epoch
	for _, e := range events.Events {
		data, err := e.MarshalJSON()
		n := event.Counter(e.ID)
		switch {
		case err != nil:
			d.problems = append(d.problems, err)
		case n < 1 || n > len(d.events)+1:
			d.problems = append(d.problems, fmt.Errorf("%s was delivered after %d events", e.ID, len(d.events)))
		case n == len(d.events)+1:
			d.events = append(d.events, data)
		case bytes.Equal(d.events[n-1], data):
			d.repeated++
		default:
			d.problems = append(d.problems, fmt.Errorf("%s was delivered again with another content", e.ID))
		}
	}
}

// check compares what the hook received with the log. It may have received newer events.
func (r *recorder) check(name string, log []event.Event) (events, repeated int, problems []error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.delivered[name]
	if d == nil {
		d = &delivered{}
	}
	problems = d.problems
	for i, e := range log {
		if i >= len(d.events) {
			problems = append(problems, fmt.Errorf("%d events from %s on were not delivered", len(log)-i, e.ID))
			break
		}
		if data, err := e.MarshalJSON(); err != nil || !bytes.Equal(data, d.events[i]) {
			problems = append(problems, fmt.Errorf("%s was delivered, but it is not the event in the log", e.ID))
			break
		}
	}
	return len(d.events), d.repeated, problems
}

// post sends a value as JSON, and decodes the response unless out is nil.
func post(ctx context.Context, url string, value, out any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(data))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, bytes.TrimSpace(body))
	}
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(body, out)
}
