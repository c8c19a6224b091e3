package rig

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/child"
)

// System is a worker and a gateway, the command `starter serve`, with a task queue of their own. Its
// methods send messages and follow contexts through the gateway.
type System struct {
	worker  *Worker
	gateway *child.Process
	url     string
	metrics []string // URLs
	watcher *subprocess
}

// StartSystem starts a system that serves metrics and exports traces to a collector. If the collector
// is nil, the system does neither.
func (r *Rig) StartSystem(ctx context.Context, taskQueue string, collector *Collector) (*System, error) {
	args, env := []string(nil), []string{"OTEL_SDK_DISABLED=true"}
	if collector != nil {
		args = []string{"--metrics", "127.0.0.1:0"}
		env = []string{
			"OTEL_SDK_DISABLED=", "OTEL_METRICS_EXPORTER=none", "OTEL_TRACES_EXPORTER=otlp",
			"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=" + collector.URL,
		}
	}
	worker, err := r.StartWorker(ctx, WorkerOptions{TaskQueue: taskQueue, Args: args, Env: env})
	if err != nil {
		return nil, err
	}
	s := &System{worker: worker, watcher: r.Contexts.watcher}
	gateway, ready, err := r.serve(ctx, taskQueue, args, env)
	if err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	s.gateway, s.url = gateway, ready["url"]
	if collector != nil {
		s.metrics = []string{worker.metrics, ready["metrics"]}
	}
	return s, nil
}

func (s *System) Stop() error {
	var errs []error
	if s.gateway != nil {
		errs = append(errs, s.gateway.Stop(stopTimeout))
	}
	return errors.Join(append(errs, s.worker.Stop())...)
}

// CPU returns the processor time of the worker and of the gateway.
func (s *System) CPU() (worker, gateway time.Duration, err error) {
	worker, err = cpu(s.worker.process.PID())
	gateway, gatewayErr := cpu(s.gateway.PID())
	return worker, gateway, errors.Join(err, gatewayErr)
}

func (s *System) Begin(ctx context.Context, name string) error {
	return s.send(ctx, name, event.New(event.SystemPrompt{Content: "Answer as you are told."}))
}

func (s *System) Send(ctx context.Context, name string, m Message) error {
	return s.send(ctx, name, event.New(event.UserMessage{Content: m.String()}))
}

func (s *System) Watch(name string) error {
	return s.watcher.order(order{Follow: name, Gateway: s.url})
}

func (s *System) send(ctx context.Context, name string, e event.Event) error {
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, eventsURL(s.url, name), bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	_, err = do(request, http.StatusAccepted)
	return err
}

// Scrape reads the metrics, as Prometheus does, and fails if they are not those of Chronicle.
func (s *System) Scrape(ctx context.Context) error {
	for _, url := range s.metrics {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		body, err := do(request, http.StatusOK)
		if err != nil {
			return err
		}
		if !bytes.Contains(body, []byte("\nchronicle_")) {
			return fmt.Errorf("GET %s: no metric of Chronicle in %d bytes", url, len(body))
		}
	}
	return nil
}

func do(request *http.Request, want int) ([]byte, error) {
	response, err := connections.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != want {
		err = fmt.Errorf("%s %s: %s: %s", request.Method, request.URL, response.Status, body)
	}
	return body, err
}

// connections keeps up to 1,000 idle connections to a gateway, one for each context.
var connections = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}

func eventsURL(gateway, name string) string { return gateway + "/contexts/" + name + "/events" }

// eventStream follows a context through a gateway, which coalesces deltas. It splits them into the tokens
// of the model.
func eventStream(ctx context.Context, gateway, name string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		if err := readEvents(ctx, eventsURL(gateway, name), func(e event.Event) bool { return yield(e, nil) }); err != nil {
			yield(event.Event{}, err)
		}
	}
}

func readEvents(ctx context.Context, url string, yield func(event.Event) bool) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "text/event-stream")
	response, err := connections.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, response.Status)
	}
	kind := "" // of a frame; empty: an event
	for lines := bufio.NewReader(response.Body); ; {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return nil // the gateway was stopped
		}
		if err != nil {
			return err
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch {
		case line == "\n":
			kind = ""
		case field == "event":
			kind = value
		case field == "data" && kind == "problem":
			return fmt.Errorf("GET %s: %s", url, value)
		case field == "data" && kind == "":
			var e event.Event
			if err := json.Unmarshal([]byte(value), &e); err != nil {
				return fmt.Errorf("GET %s: event %q: %w", url, value, err)
			}
			for _, e := range tokensOf(e) {
				if !yield(e) {
					return nil
				}
			}
		}
	}
}

func tokensOf(e event.Event) (tokens []event.Event) {
	delta, ok := e.Body.(event.TextDelta)
	if !ok {
		return []event.Event{e}
	}
	for piece := range strings.SplitAfterSeq(delta.Delta, " ") {
		if piece != "" {
			delta.Delta = piece
			e.Body = delta
			tokens = append(tokens, e)
		}
	}
	return tokens
}
