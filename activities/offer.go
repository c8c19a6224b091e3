package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/activity"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/schema"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

type toolbox struct {
	tools    []offeredTool
	refused  []offeredTool       // by the model
	approve  event.ApprovalRules // of the context
	always   event.ApprovalRules // of the worker, for its own tools
	recorded *event.ToolsOffered // tools of the worker that the log lacks; nil: none
}

type offeredTool struct {
	Tool
	isClient bool
	noSchema bool // the provider refuses the schema, so its text is a part of the description
}

// forModel removes the tools that the model refuses, and marks those whose schema it refuses.
func (b toolbox) forModel(c reducer.ReducedContext, providerID, model string) toolbox {
	all := b.tools
	b.tools = nil
	for _, t := range all {
		isOffered, hasSchema := c.ToolFor(t.Name, providerID, model)
		if t.noSchema = !hasSchema; isOffered {
			b.tools = append(b.tools, t)
		} else {
			b.refused = append(b.refused, t)
		}
	}
	return b
}

// definition is what the model receives.
func (t offeredTool) definition() ToolDefinition {
	d := t.ToolDefinition
	if t.noSchema {
		d.Description = strings.TrimSpace(d.Description + "\nThe arguments match this JSON Schema: " + string(d.Parameters))
		d.Parameters = event.Object(`{"type":"object"}`)
	}
	return d
}

// offer returns the tools of the worker, and then those of clients.
func (g *generation) offer(ctx context.Context, session reducer.Session) (toolbox, error) {
	config := session.Reduced.Config.Tools
	if config == nil {
		return toolbox{}, nil
	}
	box := toolbox{approve: config.Approve, always: g.options.Approve}
	tools, recorded, err := g.workerTools(ctx, session, *config)
	if err != nil {
		return box, err
	}
	box.recorded = recorded
	for _, tool := range tools {
		tool.Canonical = cmp.Or(tool.Canonical, tool.Name)
		box.tools = append(box.tools, offeredTool{Tool: tool})
	}
	for _, tool := range config.Tools {
		if tool.IsClient() {
			// The context declares this tool by its name, so it replaces a tool of the worker with that name.
			box.tools = slices.DeleteFunc(box.tools, func(t offeredTool) bool { return t.Name == tool.Name })
			definition := ToolDefinition{Name: tool.Name, Description: tool.Description, Parameters: tool.Parameters}
			if definition.Parameters == nil {
				definition.Parameters = event.Object(`{"type":"object"}`)
			}
			if _, err := schema.CompileParameters(definition.Parameters); err != nil {
				return box, toolError("tool %s: invalid JSON Schema in its parameters: %s (correct it in a SetToolsEvent)", tool.Name, event.Redact(err.Error(), 300))
			}
			box.tools = append(box.tools, offeredTool{Tool: Tool{ToolDefinition: definition, Canonical: tool.Name}, isClient: true})
		}
	}
	return box, nil
}

func toolError(format string, args ...any) error {
	return &ModelError{Kind: "tools", Failure: event.FailureBadRequest, Err: fmt.Errorf(format, args...)}
}

func (b toolbox) definitions() []ToolDefinition {
	var out []ToolDefinition
	for _, t := range b.tools {
		out = append(out, t.definition())
	}
	return out
}

func (b toolbox) list() (names []string) {
	for _, t := range b.tools {
		names = append(names, t.Name)
	}
	return names
}

func (b toolbox) names() string { return cmp.Or(strings.Join(b.list(), ", "), "none") }

// choose replaces a canonical name in the tool choice by the name that models know. It lets the model choose if it refuses
// the tool.
func (b toolbox) choose(settings event.RequestSettings) (event.RequestSettings, error) {
	if len(b.tools) == 0 || settings.ToolChoice == nil || settings.ToolChoice.Name == "" {
		return settings, nil
	}
	name := settings.ToolChoice.Name
	isNamed := func(t offeredTool) bool { return t.Name == name || t.Canonical == name }
	i := slices.IndexFunc(b.tools, isNamed)
	if i < 0 && slices.ContainsFunc(b.refused, isNamed) {
		settings.ToolChoice = nil
		return settings, nil
	}
	if i < 0 {
		return settings, toolError("toolChoice: the tool %s is not offered (want one of: %s)", name, b.names())
	}
	settings.ToolChoice = &event.ToolChoice{Name: b.tools[i].Name}
	return settings, nil
}

const maxArgumentsBytes = 256 << 10 // of a call; all together at most [event.MaxAnswerBytes]

// called resolves the calls of an answer, at most [reducer.MaxCalls]. A mistake of the model becomes
// the error of the call, which the model reads.
func (b toolbox) called(ctx context.Context, calls []reducer.ToolCall) []reducer.CalledTool {
	var out []reducer.CalledTool
	room := event.MaxAnswerBytes
	for _, call := range calls[:min(len(calls), reducer.MaxCalls)] {
		called := b.resolve(ctx, call, min(room, maxArgumentsBytes))
		room -= len(called.Arguments)
		out = append(out, called)
	}
	return out
}

func (b toolbox) resolve(ctx context.Context, call reducer.ToolCall, room int) reducer.CalledTool {
	called := reducer.CalledTool{ID: call.ID, Name: call.Name}
	mistake := func(format string, args ...any) reducer.CalledTool {
		called.Error = event.Redact(fmt.Sprintf(format, args...), 1000)
		return called
	}
	var err error
	if called.Arguments, err = arguments(call.Arguments, room); err != nil {
		return mistake("invalid arguments: %v", err)
	}
	i := slices.IndexFunc(b.tools, func(t offeredTool) bool { return t.Name == call.Name })
	if i < 0 {
		return mistake("unknown tool %q (available: %s)", called.Name, b.names())
	}
	tool := b.tools[i]
	if err = matches(ctx, tool.Name, tool.Parameters, called.Arguments); err != nil {
		return mistake("invalid arguments: %v", err)
	}
	rules := b.approve
	if !tool.isClient {
		rules = slices.Concat(b.always, rules)
	}
	if called.Approve, err = needsApproval(rules, tool.Tool, called.Arguments); err != nil {
		return mistake("invalid arguments: %v", err)
	}
	called.Client = tool.isClient
	if !tool.isClient {
		called.Idempotent, called.TimeoutMs = tool.Idempotent, tool.Timeout.Milliseconds()
		if tool.Idempotent {
			called.Attempts = tool.Attempts
		}
	}
	return called
}

// arguments returns the text as an object that an event can contain. It returns {} if the text is
// empty, and also with each error.
func arguments(text string, room int) (json.RawMessage, error) {
	none := json.RawMessage(`{}`)
	if strings.TrimSpace(text) == "" {
		return none, nil
	}
	if len(text) > room {
		return none, fmt.Errorf("%d bytes (at most %d)", len(text), room)
	}
	if err := schema.IsObject(text); err != nil {
		return none, fmt.Errorf("%w (you wrote: %s)", err, event.Redact(strings.Join(strings.Fields(text), " "), maxExcerpt))
	}
	given := json.RawMessage(text)
	if err := event.New(event.ToolCall{ToolCallID: "call", ToolName: "tool", Parameters: given}).Validate(); err != nil {
		return none, err // a field is named like an API key
	}
	given = event.ToolValue(given)
	if given[0] != '{' {
		return none, errors.New("the JSON is nested too deep")
	}
	return given, nil
}

// matches fails if the arguments do not match the schema. An invalid schema matches all.
func matches(ctx context.Context, tool string, parameters event.Object, arguments json.RawMessage) error {
	if len(parameters) == 0 {
		return nil
	}
	compiled, err := schema.CompileParameters(parameters)
	if err != nil {
		activity.GetLogger(ctx).Warn("the arguments of a tool are not validated: its schema is invalid", "tool", tool, "error", err)
		return nil
	}
	if err = compiled.Check(string(arguments)); err != nil {
		return err
	}
	return compiled.CheckNames(string(arguments))
}

// needsApproval reports whether a rule requires the approval of a call. A rule may use either name
// of the tool. A rule whose schema is invalid, or cannot be compared with the arguments, requires
// approval. Arguments that would evade a rule by the case of a field name are an error.
func needsApproval(rules event.ApprovalRules, tool Tool, arguments json.RawMessage) (bool, error) {
	for _, rule := range rules {
		if !event.MatchTool(rule.Tool, tool.Canonical) && !event.MatchTool(rule.Tool, tool.Name) {
			continue
		}
		if rule.When == nil {
			return true, nil
		}
		compiled, err := schema.Compile(rule.When)
		if err == nil {
			err = compiled.Check(string(arguments))
		}
		if err == nil || isFault(err) {
			return true, nil
		}
		if err = compiled.CheckNames(string(arguments)); isFault(err) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

func isFault(err error) bool { return errors.As(err, new(*schema.Fault)) }
