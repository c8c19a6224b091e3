package llmtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	"github.com/sashabaranov/go-openai"

	"github.com/seed-9ed7edd4/chronicle/internal/pause"
)

// TB is the part of [testing.TB] that a server needs; programs can implement it, too.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Cleanup(func())
}

// Request is a request that the server received.
type Request struct {
	openai.ChatCompletionRequest
	Header http.Header
	At     time.Time // arrival
	Body   []byte
}

// OutputLimit returns the maximum number of output tokens; 0: none.
func (r Request) OutputLimit() int {
	//lint:ignore SA1019 providers other than OpenAI receive the older field
	return max(r.MaxTokens, r.MaxCompletionTokens)
}

// LastUser returns the text, or the first text part, of the last user message; "" without one.
func (r Request) LastUser() string {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role != openai.ChatMessageRoleUser {
			continue
		}
		for _, part := range m.MultiContent {
			if part.Text != "" {
				return part.Text
			}
		}
		return m.Content
	}
	return ""
}

// ToolNames returns the names of the tools that the request offers, in order; nil for none.
func (r Request) ToolNames() (names []string) {
	for _, tool := range r.Tools {
		if tool.Function != nil {
			names = append(names, tool.Function.Name)
		}
	}
	return names
}

// Results returns the results of the newest tool calls, in order, if they end the conversation.
func (r Request) Results() (results []string) {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role != openai.ChatMessageRoleTool {
			break
		}
		results = append(results, m.Content)
	}
	slices.Reverse(results)
	return results
}

// Server is a scripted model server. It is safe for concurrent use.
type Server struct {
	URL string // base URL, including the version

	tb   TB
	http *httptest.Server
	stop context.CancelFunc
	done context.Context

	mu       sync.Mutex
	steps    []Step
	requests []Request
	aborted  map[int]bool
	changed  chan struct{} // closed and replaced when requests or aborted change
}

// Start serves one step per request, in order of arrival, until the end of the test.
func Start(tb TB, steps ...Step) *Server {
	tb.Helper()
	return StartAt(tb, "127.0.0.1:0", steps...)
}

// StartAt is [Start] at a TCP address. It panics if it cannot listen there.
func StartAt(tb TB, address string, steps ...Step) *Server {
	tb.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		panic(fmt.Sprintf("llmtest: %v", err))
	}
	s := &Server{tb: tb, aborted: map[int]bool{}, changed: make(chan struct{})}
	s.done, s.stop = context.WithCancel(context.Background())
	s.Then(steps...)
	s.http = &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(s.serve)}}
	s.http.Start()
	s.URL = s.http.URL + "/v1"
	tb.Cleanup(s.close)
	return s
}

// Then appends steps to the script. It panics if a [Func] precedes them.
func (s *Server) Then(steps ...Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, step := range steps {
		if n := len(s.steps); n > 0 && s.steps[n-1].each != nil {
			panic("llmtest: a step after a Func is never reached")
		}
		s.steps = append(s.steps, step)
	}
}

// Requests returns the requests so far, in order of arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Request waits for the n-th request, counted from 1.
func (s *Server) Request(ctx context.Context, n int) (Request, error) {
	err := s.waitUntil(ctx, fmt.Sprintf("request %d has not arrived", n), func() bool { return len(s.requests) >= n })
	if err != nil {
		return Request{}, err
	}
	return s.Requests()[n-1], nil
}

// Aborted waits until the server notices that the client has aborted the n-th request, counted from 1. The server
// notices it while it holds, stalls or waits between tokens.
func (s *Server) Aborted(ctx context.Context, n int) error {
	return s.waitUntil(ctx, fmt.Sprintf("request %d was not aborted", n), func() bool { return s.aborted[n] })
}

func (s *Server) waitUntil(ctx context.Context, complaint string, isSo func() bool) error {
	for {
		s.mu.Lock()
		so, changed := isSo(), s.changed
		s.mu.Unlock()
		if so {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("llmtest: %s: %w", complaint, context.Cause(ctx))
		}
	}
}

func (s *Server) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Server) close() {
	s.stop()
	s.http.CloseClientConnections()
	s.http.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	left := len(s.steps)
	if left > 0 && s.steps[left-1].each != nil {
		left--
	}
	if left > 0 {
		s.tb.Errorf("llmtest: %d unused step(s) after %d request(s)", left, len(s.requests))
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		// The client disconnected before sending a request.
		return
	}
	if r.Method == "PRI" {
		return // HTTP/2, from a client of a server that had the port before
	}
	request := Request{Header: r.Header.Clone(), At: time.Now(), Body: body}
	if r.Method != http.MethodPost || r.URL.Path != "/v1/chat/completions" {
		s.refuse(w, "%s %s: only POST /v1/chat/completions is served", r.Method, r.URL.Path)
		return
	}
	if err := json.Unmarshal(body, &request.ChatCompletionRequest); err != nil {
		s.refuse(w, "a request that is not a chat completion: %v", err)
		return
	}
	step, n, ok := s.take(request)
	if !ok {
		s.refuse(w, "request %d comes after the end of the script: %s", n, body)
		return
	}
	s.perform(step, n, w, r)
}

func (s *Server) take(request Request) (step Step, n int, ok bool) {
	s.change(func() {
		s.requests = append(s.requests, request)
		n = len(s.requests)
		if len(s.steps) == 0 {
			return
		}
		step, ok = s.steps[0], true
		if step.each == nil {
			s.steps = s.steps[1:]
		}
	})
	if step.each != nil {
		step = step.each(request)
	}
	for _, check := range step.checks {
		if err := check(request); err != nil {
			s.tb.Errorf("llmtest: request %d: %v: %s", n, err, request.Body)
		}
	}
	return step, n, ok
}

func (s *Server) refuse(w http.ResponseWriter, format string, args ...any) {
	complaint := fmt.Sprintf("llmtest: "+format, args...)
	s.tb.Errorf("%s", complaint)
	http.Error(w, complaint, http.StatusInternalServerError)
}

func (s *Server) perform(step Step, n int, w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.done, cancel)()

	if s.write(ctx, step, w) == nil {
		return
	}
	if s.done.Err() == nil && r.Context().Err() != nil {
		s.change(func() { s.aborted[n] = true })
	}
	// Break the connection instead of ending the response.
	panic(http.ErrAbortHandler)
}

var errBroken = fmt.Errorf("the step breaks the connection")

// write returns an error if the response is incomplete.
func (s *Server) write(ctx context.Context, step Step, w http.ResponseWriter) error {
	switch step.end {
	case endStall:
		<-ctx.Done()
		return ctx.Err()
	case endDrop:
		return errBroken
	}
	if gate := step.gates[0]; gate != nil {
		if err := gate.wait(ctx); err != nil {
			return err
		}
	}
	for name, values := range step.header {
		w.Header()[name] = values
	}
	w.WriteHeader(step.status)
	written := 0
	for i, piece := range step.pieces() {
		if i > 0 && !pause.For(ctx, step.pace) {
			return ctx.Err()
		}
		isCut := step.isCut && written+len(piece) >= step.cutAt
		if isCut {
			piece = piece[:step.cutAt-written]
		}
		if _, err := io.WriteString(w, piece); err != nil {
			return err
		}
		written += len(piece)
		if err := http.NewResponseController(w).Flush(); err != nil {
			return err
		}
		if isCut {
			return errBroken
		}
		if gate := step.gates[i+1]; gate != nil {
			if err := gate.wait(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}
