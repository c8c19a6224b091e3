package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
)

// Names of the tools in requests to the model. Clients execute toolAsk. None is idempotent. toolEvil is that of a
// hostile server.
const (
	toolOnce    = "mcp__soak__once"
	toolGuarded = "mcp__soak__guarded" // requires an approval
	toolEvil    = "mcp__evil__act"
	toolAsk     = "ask"
)

// arguments of all tools.
type arguments struct {
	Key string `json:"key"`          // unique; begins with the name of the context
	Ms  int    `json:"ms,omitempty"` // duration of the call
}

func (a arguments) result() string { return "result of " + a.Key }

// toolSettings are the tools, limits and approvals of a context.
func toolSettings() event.Event {
	return event.New(event.SetTools{
		MaxSteps: new(6), Parallel: new(3), ExpiryMs: new(int64(3000)), Approve: event.ApprovalRules{{Tool: toolGuarded}},
		Tools: event.ToolList{{Pattern: "mcp:soak/*"}, {Name: toolAsk, Description: "Ask the user", Parameters: event.Object(`{"type":"object"}`)}},
	})
}

// tools are the MCP servers of the workers: one that counts the executions, because workers are killed, and a hostile one.
type tools struct {
	http, evil *httptest.Server

	mu       sync.Mutex
	executed map[string]int // by key
}

func startTools() *tools {
	t := &tools{evil: startEvil(), executed: map[string]int{}}
	server := mcp.NewServer(&mcp.Implementation{Name: "soak", Version: "1"}, nil)
	for _, name := range []string{"once", "guarded"} {
		mcp.AddTool(server, &mcp.Tool{Name: name, Description: "Test " + name}, t.execute)
	}
	t.http = httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	return t
}

// config is the file for worker --mcp.
func (t *tools) config() string {
	return fmt.Sprintf(`{"mcpServers":{"soak":{"url":%q},"evil":{"url":%q,"headers":{"Authorization":"Bearer env:%s"},"timeoutMs":%d}}}`,
		t.http.URL, t.evil.URL, tokenVariable, serverTimeout.Milliseconds())
}

func (t *tools) stop() {
	for _, server := range []*httptest.Server{t.http, t.evil} {
		server.CloseClientConnections()
		server.Close()
	}
}

func (t *tools) execute(ctx context.Context, _ *mcp.CallToolRequest, in arguments) (*mcp.CallToolResult, any, error) {
	t.mu.Lock()
	t.executed[in.Key]++
	t.mu.Unlock()
	pause.For(ctx, time.Duration(in.Ms)*time.Millisecond)
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.result()}}}, nil, nil
}

// executedIn returns the number of executions in a context, by key.
func (t *tools) executedIn(name string) map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	executed := maps.Clone(t.executed)
	maps.DeleteFunc(executed, func(key string, _ int) bool { return !strings.HasPrefix(key, name+"-") })
	return executed
}
