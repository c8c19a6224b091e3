package main

import (
	"fmt"

	"go.uber.org/zap"

	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/internal/logging"
	"github.com/seed-9ed7edd4/chronicle/tool/mcp"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// mcpServers returns the servers of --mcp. An invalid server is a usage error at startup, not a
// failure of a call.
func (a *app) mcpServers() ([]mcp.Server, error) {
	if a.settings.MCPFile == "" {
		return nil, nil
	}
	servers, err := mcp.ReadServers(a.settings.MCPFile)
	if err != nil {
		return nil, exit.UsageError{Err: fmt.Errorf("%s: %w", a.config.Label("mcp"), err)}
	}
	if a.settings.part() == contexts.OnlyWorkflows {
		return nil, nil // calls are activities
	}
	return servers, nil
}

// startMCP starts servers without waiting for them; nil if there are none.
func (a *app) startMCP(servers []mcp.Server, log *zap.Logger) (*mcp.Servers, error) {
	if len(servers) == 0 {
		return nil, nil
	}
	started, err := mcp.New(mcp.Options{Servers: servers, Getenv: a.getenv, Logger: logging.Structured(log, "mcp", zap.InfoLevel)})
	if err != nil {
		return nil, fmt.Errorf("--mcp: %w", err)
	}
	started.Start()
	return started, nil
}

// mcpNames returns the patterns of all tools of servers.
func mcpNames(servers []mcp.Server) (names []string) {
	for _, s := range servers {
		names = append(names, mcp.Prefix+s.Name+"/*")
	}
	return names
}
