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
	maxPages           = 128
	idempotentAttempts = 3 // of a call that may be repeated
)

func (s *server) list(ctx context.Context, l *link) error {
	ctx, cancel := context.WithTimeout(ctx, s.timing.connect)
	defer cancel()
	var tools []*sdk.Tool
	cursors := map[string]bool{}
	for cursor := ""; ; {
		page, err := l.session.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		if err != nil && len(tools) == 0 {
			return l.reason(fmt.Errorf("list tools: %w", l.explain(ctx, err)))
		}
		if err != nil {
			s.logger.Warn("an MCP server did not list all of its tools", "server", s.config.Name, "error", l.explain(ctx, err).Error())
			break
		}
		tools = append(tools, page.Tools...)
		if cursor = page.NextCursor; cursor == "" {
			break
		}
		if cursors[cursor] || len(cursors)+1 == maxPages {
			s.quirk(quirkCursor)
			s.logger.Warn("an MCP server lists tools without an end; those so far are offered", "server", s.config.Name)
			break
		}
		cursors[cursor] = true
	}
	definitions := s.definitions(tools, l.secrets)
	s.set(func() { s.tools, s.isListed = definitions, true })
	return nil
}

// definitions returns the tools in the order of their names; those that cannot be offered are withheld.
func (s *server) definitions(listed []*sdk.Tool, known *secrets) (tools []tool.Tool) {
	seen := map[string]*sdk.Tool{}
	withhold := func(name string, err error) {
		reason := event.Redact(cleanLine(err.Error()), maxErrorBytes)
		s.logger.Warn("a tool of an MCP server is not offered", "server", s.config.Name, "tool", name, "error", reason)
		tools = append(tools, tool.Withheld(canonicalName(s.config.Name, name), reason))
	}
	for i, t := range listed {
		if len(tools) == maxTools {
			withhold(fmt.Sprintf("%d more", len(listed)-i), fmt.Errorf("at most %d tools of a server are listed", maxTools))
			break
		}
		name := fittedName(cleanLine(known.scrub(t.Name)))
		defined, err := s.definition(t, known)
		canonical := defined.Spec().Canonical
		switch earlier := seen[canonical]; {
		case err != nil:
			withhold(name, err)
		case earlier != nil && !reflect.DeepEqual(earlier, t):
			withhold(name, errors.New("another tool of the server has this name"))
		case earlier == nil:
			seen[canonical] = t
			tools = append(tools, defined)
		}
	}
	slices.SortFunc(tools, func(a, b tool.Tool) int { return strings.Compare(a.Spec().Canonical, b.Spec().Canonical) })
	return tools
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
