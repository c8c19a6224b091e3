package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
)

// Names of the tools in requests to the model. Clients execute toolAsk. None is idempotent.
const (
	toolOnce    = "mcp__soak__once"
	toolGuarded = "mcp__soak__guarded" // requires an approval
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

// tools is the MCP server of the workers. It counts the executions, because workers are killed.
type tools struct {
	http *httptest.Server
	dir  string

	mu       sync.Mutex
	executed map[string]int // by key
}

func startTools() (*tools, error) {
	dir, err := os.MkdirTemp("", "chronicle-soak-")
	if err != nil {
		return nil, err
	}
	t := &tools{dir: dir, executed: map[string]int{}}
	server := mcp.NewServer(&mcp.Implementation{Name: "soak", Version: "1"}, nil)
	for _, name := range []string{"once", "guarded"} {
		mcp.AddTool(server, &mcp.Tool{Name: name, Description: "Test " + name}, t.execute)
	}
	t.http = httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	return t, os.WriteFile(t.config(), fmt.Appendf(nil, `{"mcpServers":{"soak":{"url":%q}}}`, t.http.URL), 0o600)
}

// config is the file for worker --mcp.
func (t *tools) config() string { return filepath.Join(t.dir, "mcp.json") }

func (t *tools) stop() {
	t.http.CloseClientConnections()
	t.http.Close()
	_ = os.RemoveAll(t.dir)
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
