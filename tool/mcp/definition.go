package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
	"github.com/seed-9ed7edd4/chronicle/tool"
)

const (
	maxTools           = 127 // of a server; with [tool.ReadResult], the maximum of a request
	maxWithheld        = 32  // tools that are named with the reason
	idempotentAttempts = 3   // of a call that may be repeated
)

// definitions returns the tools that can be offered, in the order of their names, and the others.
func (s *server) definitions(listed []*sdk.Tool, known *secrets) (tools []tool.Tool, withheld []Withheld) {
	seen := map[string]*sdk.Tool{}
	others := 0
	for _, t := range listed {
		name := cleanLine(truncate(known.scrub(t.Name), maxToolName))
		defined, err := s.definition(t, known)
		earlier := seen[defined.Spec().Canonical]
		switch {
		case err == nil && earlier != nil && reflect.DeepEqual(earlier, t):
			continue // listed again
		case err == nil && earlier != nil:
			err = errors.New("another tool of the server has this name")
		case len(tools) == maxTools || err != nil && len(withheld) == maxWithheld:
			others++
			continue
		}
		if err == nil {
			seen[defined.Spec().Canonical] = t
			tools = append(tools, defined)
			continue
		}
		reason := event.Redact(cleanLine(err.Error()), maxErrorBytes)
		s.logger.Warn("a tool of an MCP server is not offered", "server", s.config.Name, "tool", name, "error", reason)
		withheld = append(withheld, Withheld{Name: name, Reason: reason})
	}
	if others > 0 {
		reason := fmt.Sprintf("at most %d tools of a server are offered, and at most %d others named", maxTools, maxWithheld)
		s.logger.Warn("an MCP server has too many tools; the rest is not offered", "server", s.config.Name, "rest", others, "max", maxTools)
		withheld = append(withheld, Withheld{Name: fmt.Sprintf("%d more", others), Reason: reason})
	}
	slices.SortFunc(tools, func(a, b tool.Tool) int { return strings.Compare(a.Spec().Canonical, b.Spec().Canonical) })
	return tools, withheld
}

// definition bounds the untrusted description and schema, and removes control and invisible
// characters.
func (s *server) definition(t *sdk.Tool, known *secrets) (tool.Tool, error) {
	name := fittedName(t.Name)
	if name == "" {
		return tool.Tool{}, errors.New("it has no name")
	}
	if name != t.Name {
		s.quirk(quirkTool)
	}
	description := clean(known.scrub(t.Description), event.MaxDescriptionBytes)
	if description == "" {
		description = "Tool " + name + " of the MCP server " + s.config.Name
	}
	schema, isRepaired, err := repaired(t.InputSchema)
	if err != nil {
		return tool.Tool{}, err
	}
	if isRepaired {
		s.quirk(quirkSchema)
	}
	parameters := encoded(mapStrings(schema, func(text string) string { return terminal.Strip(known.scrub(text)) }))
	options := []tool.Option{tool.Canonical(canonicalName(s.config.Name, name)), tool.Parameters(event.Object(parameters))}
	if s.config.Timeout != 0 {
		options = append(options, tool.Timeout(s.config.Timeout))
	}
	if a := t.Annotations; a != nil && (a.ReadOnlyHint || a.IdempotentHint) {
		options = append(options, tool.Idempotent(), tool.Attempts(idempotentAttempts))
	}
	call := func(ctx context.Context, arguments json.RawMessage) (any, error) {
		return s.call(ctx, t.Name, arguments, func(text string) { tool.Progress(ctx, text) })
	}
	return tool.New(sentName(s.config.Name, t.Name), description, call, options...)
}
