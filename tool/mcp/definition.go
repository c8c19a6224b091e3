package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
	"github.com/seed-9ed7edd4/chronicle/tool"
)

const (
	maxTools           = 127 // of a server; with [tool.ReadResult], the maximum of a request
	idempotentAttempts = 3   // of a call that may be repeated
)

// definitions returns the tools that can be offered, in the order of their names.
func (s *server) definitions(listed []*sdk.Tool, known *secrets) []tool.Tool {
	var tools []tool.Tool
	seen := map[string]bool{}
	for _, t := range listed {
		defined, err := s.definition(t, known)
		if err == nil && seen[defined.Spec().Name] {
			err = errors.New("another tool of the server has this name")
		}
		if err != nil {
			s.logger.Warn("a tool of an MCP server is not offered", "server", s.config.Name,
				"tool", cleanLine(truncate(t.Name, maxToolName)), "error", event.Redact(err.Error(), maxErrorBytes))
			continue
		}
		seen[defined.Spec().Name] = true
		tools = append(tools, defined)
	}
	slices.SortFunc(tools, func(a, b tool.Tool) int { return strings.Compare(a.Spec().Canonical, b.Spec().Canonical) })
	return tools
}

// definition bounds the untrusted description and schema, and removes control and invisible
// characters.
func (s *server) definition(t *sdk.Tool, known *secrets) (tool.Tool, error) {
	if !isToolName(t.Name) {
		return tool.Tool{}, errors.New("invalid name (1 to 128 bytes without spaces, control characters and *)")
	}
	description := clean(known.scrub(t.Description), event.MaxDescriptionBytes)
	if description == "" {
		description = "Tool " + t.Name + " of the MCP server " + s.config.Name
	}
	parameters, err := parametersOf(t.InputSchema, known)
	if err != nil {
		return tool.Tool{}, err
	}
	options := []tool.Option{tool.Canonical(canonicalName(s.config.Name, t.Name)), tool.Parameters(parameters)}
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

func parametersOf(inputSchema any, known *secrets) (event.Object, error) {
	schema, isObject := inputSchema.(map[string]any)
	if !isObject || schema["type"] != "object" {
		return nil, errors.New(`the input schema is not of type "object"`)
	}
	schema = mapStrings(schema, func(text string) string { return terminal.Clean(known.scrub(text)) }).(map[string]any)
	// Some providers reject $schema; OpenAI rejects a schema without properties.
	delete(schema, "$schema")
	if schema["properties"] == nil {
		schema["properties"] = map[string]any{}
	}
	return json.Marshal(schema)
}
