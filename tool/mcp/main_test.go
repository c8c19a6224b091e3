package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/tool"
	"github.com/seed-9ed7edd4/chronicle/tool/mcp"
)

// deadline bounds tests that hang.
func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// worker is the tools of a worker with MCP servers.
type worker struct {
	*mcp.Servers
	set *tool.Set
	log *log
}

func newWorker(t *testing.T, getenv func(string) string, servers ...mcp.Server) *worker {
	t.Helper()
	w := &worker{log: &log{}}
	logger := slog.New(slog.NewTextHandler(w.log, nil))
	var err error
	w.Servers, err = mcp.New(mcp.Options{Servers: servers, Getenv: getenv, Logger: logger})
	require.NoError(t, err)
	t.Cleanup(w.Close)
	w.Hurry()
	w.set, err = tool.NewSet(tool.Options{Sources: map[string]tool.Source{mcp.Prefix: w.Servers}, Logger: logger})
	require.NoError(t, err)
	return w
}

func offerOf(patterns ...string) activities.OfferRequest {
	r := activities.OfferRequest{ContextName: "demo"}
	for _, pattern := range patterns {
		r.Config.Tools = append(r.Config.Tools, event.Tool{Pattern: pattern})
	}
	return r
}

// offer returns the tools that a request offers, without the built-in one.
func (w *worker) offer(ctx context.Context, patterns ...string) ([]activities.Tool, error) {
	offered, err := w.set.Offer(ctx, offerOf(patterns...))
	return slices.DeleteFunc(offered, func(t activities.Tool) bool { return t.Withheld != "" || t.Name == tool.ReadResult }), err
}

func namesOf(tools []activities.Tool) (names []string) {
	for _, t := range tools {
		names = append(names, t.Canonical)
	}
	return names
}

// call calls a tool and returns its value or error as JSON.
func (w *worker) call(ctx context.Context, name, arguments string) (result string, isError bool) {
	r := w.set.Call(ctx, activities.ToolCallRequest{ContextName: "demo", RequestID: "r", ToolCallID: "c", Name: name, Arguments: json.RawMessage(arguments)})
	if r.IsError {
		return string(r.Error), true
	}
	return string(r.Value), false
}

// value calls a tool that succeeds.
func (w *worker) value(t *testing.T, name, arguments string) string {
	t.Helper()
	result, isError := w.call(deadline(t), name, arguments)
	require.False(t, isError, result)
	return result
}

// failure calls a tool that fails.
func (w *worker) failure(t *testing.T, name, arguments string) string {
	t.Helper()
	result, isError := w.call(deadline(t), name, arguments)
	require.True(t, isError, result)
	return result
}

// log is the log of a worker.
type log struct {
	mu      sync.Mutex
	written bytes.Buffer
	changed chan struct{}
}

func (l *log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
	return l.written.Write(line)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.written.String()
}

// await waits until the log contains a text.
func (l *log) await(ctx context.Context, t *testing.T, text string) {
	t.Helper()
	for {
		l.mu.Lock()
		found := bytes.Contains(l.written.Bytes(), []byte(text))
		if l.changed == nil {
			l.changed = make(chan struct{})
		}
		changed := l.changed
		l.mu.Unlock()
		if found {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("the log lacks %q:\n%s", text, l)
		}
	}
}

// inMemory connects the server with a name to s, which runs in this process.
func (w *worker) inMemory(t *testing.T, name string, s *sdk.Server) {
	w.Dial(name, func() (io.ReadWriteCloser, error) {
		ours, theirs := net.Pipe()
		_, err := s.Connect(t.Context(), &sdk.IOTransport{Reader: theirs, Writer: theirs}, nil)
		return ours, err
	})
}

// inProcess returns a worker with server "a", which runs in this process and has one tool.
func inProcess(t *testing.T, name string, result func(*sdk.CallToolRequest) (*sdk.CallToolResult, error)) *worker {
	w := newWorker(t, nil, mcp.Server{Name: "a", Command: "unused"})
	s := newServer()
	addTool(s, &sdk.Tool{Name: name}, result)
	w.inMemory(t, "a", s)
	return w
}

func newServer() *sdk.Server {
	return sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
}

var anyObject = map[string]any{"type": "object"}

// addTool adds a tool that returns blocks of content.
func addTool(s *sdk.Server, t *sdk.Tool, result func(*sdk.CallToolRequest) (*sdk.CallToolResult, error)) {
	if t.InputSchema == nil {
		t.InputSchema = anyObject
	}
	s.AddTool(t, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return result(r) })
}

func textResult(text string) (*sdk.CallToolResult, error) {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil
}

func returns(text string) func(*sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	return func(*sdk.CallToolRequest) (*sdk.CallToolResult, error) { return textResult(text) }
}
