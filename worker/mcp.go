package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/seed-9ed7edd4/chronicle/internal/doctor"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/internal/logging"
	"github.com/seed-9ed7edd4/chronicle/internal/metrics"
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
func (a *app) startMCP(servers []mcp.Server, meters metric.MeterProvider, log *zap.Logger) (*mcp.Servers, error) {
	if len(servers) == 0 {
		return nil, nil
	}
	quirks := &metrics.New(meters).Quirks
	started, err := mcp.New(mcp.Options{
		Servers: servers, Getenv: a.getenv, Logger: logging.Structured(log, "mcp", zap.InfoLevel),
		OnQuirk: func(kind string) { quirks.Add(1, kind) },
	})
	if err != nil {
		return nil, fmt.Errorf("--mcp: %w", err)
	}
	started.Start()
	return started, nil
}

// mcpChecks returns a check for each server.
func mcpChecks(servers *mcp.Servers) (checks []doctor.Check) {
	if servers == nil {
		return nil
	}
	for _, name := range servers.Names() {
		checks = append(checks, doctor.Check{
			Name:    "mcp." + name,
			Why:     "models use the tools of the server",
			Timeout: mcpTimeout,
			Run:     func(ctx context.Context) doctor.Result { return checkMCP(servers.Status(ctx, name)) },
		})
	}
	return checks
}

const mcpTimeout = 15 * time.Second

func checkMCP(s mcp.Status) doctor.Result {
	if s.Error != nil {
		return doctor.Result{Severity: doctor.Error, Measured: s.Error.Error(), Fix: "correct the server in the file of --mcp; the log of the worker has its output"}
	}
	result := doctor.Result{Severity: doctor.OK, Measured: "1 tool"}
	if s.Tools != 1 {
		result.Measured = fmt.Sprintf("%d tools", s.Tools)
	}
	for _, t := range s.Withheld {
		result.Severity, result.Fix = doctor.Warning, "correct the tools in the server"
		result.Measured += fmt.Sprintf("; %s is not offered: %s", t.Name, t.Reason)
	}
	var quirks []string
	for _, kind := range slices.Sorted(maps.Keys(s.Quirks)) {
		quirks = append(quirks, fmt.Sprintf("%s %d", kind, s.Quirks[kind]))
	}
	if len(quirks) > 0 {
		result.Measured += "; worked around: " + strings.Join(quirks, ", ")
	}
	return result
}

// mcpNames returns the patterns of all tools of servers.
func mcpNames(servers []mcp.Server) (names []string) {
	for _, s := range servers {
		names = append(names, mcp.Prefix+s.Name+"/*")
	}
	return names
}
