package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/tool"
)

var _ tool.Source = (*Servers)(nil)

// Offer returns the tools that match one of the patterns. Those of a server that was never connected are withheld. If a
// pattern names an unknown server, the error is a [*activities.ModelError]. The package documentation has the guarantees.
func (s *Servers) Offer(ctx context.Context, r tool.OfferRequest) ([]tool.Tool, error) {
	named := map[*server]bool{}
	for _, pattern := range r.Patterns {
		name, _, _ := strings.Cut(strings.TrimPrefix(pattern, Prefix), "/")
		if strings.Contains(name, "*") {
			for _, server := range s.servers {
				named[server] = true
			}
			continue
		}
		found := s.find(name)
		if found == nil {
			return nil, s.unknown(r.ContextName, pattern)
		}
		named[found] = true
	}
	s.Start()
	lists := make([][]tool.Tool, len(s.servers))
	var waiting sync.WaitGroup
	for i, server := range s.servers {
		if named[server] {
			waiting.Go(func() {
				lists[i] = s.listOf(ctx, server, r)
			})
		}
	}
	waiting.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var offered []tool.Tool
	for _, list := range lists {
		for _, t := range list {
			if matchesAny(r.Patterns, t.Spec().Canonical) {
				offered = append(offered, t)
			}
		}
	}
	return offered, nil
}

func (s *Servers) listOf(ctx context.Context, server *server, r tool.OfferRequest) []tool.Tool {
	tools, err := server.offered(ctx)
	if err == nil {
		return tools
	}
	s.logger.WarnContext(ctx, "the tools of an MCP server are not offered", "server", server.config.Name, "context", r.ContextName, "error", err.Error())
	for _, pattern := range r.Patterns {
		_, name, _ := strings.Cut(strings.TrimPrefix(pattern, Prefix), "/")
		name = canonicalName(server.config.Name, cmp.Or(name, "*"))
		if event.MatchTool(pattern, name) {
			tools = append(tools, tool.Withheld(name, unavailable))
		}
	}
	return tools
}

// unavailable is the reason in the log of a context. The error stays in that of the worker: it may contain internal
// addresses, and a reason that varies would record another ToolsOffered each turn.
const unavailable = "the MCP server is unavailable"

func matchesAny(patterns []string, name string) bool {
	for _, pattern := range patterns {
		if event.MatchTool(pattern, name) {
			return true
		}
	}
	return false
}

func (s *Servers) unknown(contextName, pattern string) error {
	known := "none"
	if names := s.Names(); len(names) > 0 {
		known = strings.Join(names, ", ")
	}
	return &activities.ModelError{Kind: "unknown-tool", Failure: event.FailureBadRequest, Err: fmt.Errorf(
		"tools of context %s: no MCP server matches %q (this worker has %s; want mcp:SERVER/TOOL)", contextName, pattern, known)}
}

// Find returns a tool by its name in requests to models.
func (s *Servers) Find(ctx context.Context, _, name string) (tool.Tool, bool, error) {
	server := s.find(serverOf(name))
	if server == nil {
		return tool.Tool{}, false, nil
	}
	s.Start()
	tools, err := server.offered(ctx)
	if err != nil {
		return tool.Tool{}, false, tool.Retryable(&callError{server: server.config.Name, err: err, isUnsent: true})
	}
	for _, t := range tools {
		if t.Spec().Name == name {
			return t, true, nil
		}
	}
	return tool.Tool{}, false, fmt.Errorf("MCP server %s has no tool %s any more", server.config.Name, name)
}

// retryable marks errors that may not recur. Only calls of idempotent tools are repeated.
func retryable(err error) error {
	var failed *callError
	if errors.As(err, &failed) && !failed.isRejected {
		return tool.Retryable(err)
	}
	return err
}
