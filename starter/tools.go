package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/starter/show"
)

type toolsOptions struct {
	setOptions
	set                            string
	approve, clientTools           []string
	maxSteps, parallel, maxRepeats *int
	expiryMs                       *int64
	none                           bool
}

func newToolsCommand(a *app) *cobra.Command {
	o := toolsOptions{setOptions: setOptions{app: a}}
	command := &cobra.Command{
		Use:   "tools -n NAME [TOOL]... [flags]",
		Short: "Show or set the tools of a context",
		Long: `Without tools and flags, show the tools of a context and the calls that wait. No
worker is needed.

Otherwise, set the tools and show the event as recorded. The command replaces
all tool settings: omitted flags return to their defaults. TOOL is the name of a
worker's tool or mcp:SERVER/TOOL; * matches any characters. If a worker runs, it is
an error if it has no tool of a name, except for tools of MCP servers, which may
appear later. The context is created if it does not exist.

A client's tool is declared with --client-tool as an object with name, description
and parameters, a JSON Schema. Its calls wait until a client sends the result, see
"starter result".

Calls of tools that match --approve wait for "starter approve" or "starter deny".`,
		Example: `  starter tools -n demo fetch 'mcp:files/*' --approve 'mcp:files/write_*'
  starter tools -n demo --client-tool @ask_user.json --expiry 1h
  starter tools -n demo --set '{"tools":["fetch"],"approve":[{"tool":"fetch","when":{"required":["body"]}}]}'
  starter tools -n demo --none`,
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) == 0 && !changesTools(command) {
				return showTools(command.Context(), o)
			}
			body, err := o.body(args)
			if err != nil {
				return err
			}
			if len(body.Patterns()) > 0 {
				o.check = func(ctx context.Context, to conversation) error { return o.checkTools(ctx, to, body) }
			}
			return runSet(command.Context(), o.setOptions, body)
		},
	}
	limits := (*event.SetTools)(nil).Limits()
	nameFlag(command, &o.name, "", nameUsage)
	flags := command.Flags()
	flags.StringVar(&o.set, "set", "", "the fields of a SetToolsEvent: a `JSON` object, @FILE, or - for standard input; other flags override them")
	flags.StringArrayVar(&o.approve, "approve", nil, "require an approval for calls of tools that match this `PATTERN`; may be repeated")
	flags.StringArrayVar(&o.clientTools, "client-tool", nil, "declare a client's tool: a `JSON` object, @FILE, or - for standard input; may be repeated")
	intField(flags, &o.maxSteps, "max-steps", "", fmt.Sprintf("maximum `NUMBER` of answers with tool calls per turn, 1 to %d (default: %d)", event.MaxMaxSteps, limits.MaxSteps))
	intField(flags, &o.parallel, "parallel", "", fmt.Sprintf("maximum `NUMBER` of calls that run at the same time, 1 to %d (default: %d)", event.MaxParallel, limits.Parallel))
	intField(flags, &o.maxRepeats, "max-repeats", "", fmt.Sprintf("execute fewer than `NUMBER` identical calls in a turn, 2 to %d (default: %d)", event.MaxMaxRepeats, limits.MaxRepeats))
	millisecondsField(flags, &o.expiryMs, "expiry", "", "how long a call waits for an approval or a client's result, a `DURATION` from 1s to 720h (default: 24h)")
	flags.BoolVar(&o.none, "none", false, "remove all tools")
	flags.BoolVar(&o.json, "json", false, "print the tools, or the recorded event, as one line of JSON")
	return command
}

func changesTools(command *cobra.Command) bool {
	for _, flag := range []string{"set", "approve", "client-tool", "max-steps", "parallel", "max-repeats", "expiry", "none"} {
		if command.Flags().Changed(flag) {
			return true
		}
	}
	return false
}

func (o *toolsOptions) body(names []string) (body event.SetTools, err error) {
	if o.set != "" {
		if err := o.decode("--set", `an object like '{"tools":["fetch"]}'`, o.set, &body); err != nil {
			return body, err
		}
	}
	for _, name := range names {
		body.Tools = append(body.Tools, event.Tool{Pattern: name})
	}
	for _, text := range o.clientTools {
		const want = `an object like '{"name":"ask","description":"…","parameters":{…}}'`
		var t event.Tool
		if err := o.decode("--client-tool", want, text, &t); err != nil {
			return body, err
		}
		if t.Name == "" {
			return body, usagef("--client-tool: want %s", want)
		}
		body.Tools = append(body.Tools, t)
	}
	for _, pattern := range o.approve {
		body.Approve = append(body.Approve, event.ApprovalRule{Tool: pattern})
	}
	body.MaxSteps, body.Parallel = cmp.Or(o.maxSteps, body.MaxSteps), cmp.Or(o.parallel, body.Parallel)
	body.MaxRepeats, body.ExpiryMs = cmp.Or(o.maxRepeats, body.MaxRepeats), cmp.Or(o.expiryMs, body.ExpiryMs)
	switch {
	case o.none && len(body.Tools) > 0:
		return body, usagef("--none: cannot be used with tools")
	case !o.none && len(body.Tools) == 0:
		if _, err := input(body); err != nil {
			return body, nameFlags(err)
		}
		if o.set != "" {
			return body, usagef("--set: has no tools (use --none to remove all tools)")
		}
		return body, usagef("TOOL: missing (want the name of a tool, --client-tool, --set or --none)")
	}
	return body, nil
}

func (o *toolsOptions) decode(flag, want, text string, into any) error {
	data, err := o.readValue(flag, want, text)
	if err != nil {
		return err
	}
	if err := event.DecodeSettings(data, into); err != nil {
		return usagef("%s: %w", flag, err)
	}
	return nil
}

// checkTools fails if a worker lacks a tool, so that each request would fail. Tools of servers may appear later.
func (o *toolsOptions) checkTools(ctx context.Context, to conversation, body event.SetTools) error {
	found, err := to.CheckTools(ctx, body)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, client.ErrUnreachable):
		return err
	case err != nil:
		o.note("cannot look for the tools: %v", err)
	case found.Error != "":
		return errors.New(found.Error)
	case len(found.Unmatched) > 0:
		o.note("no tool of the worker matches %s at present", strings.Join(found.Unmatched, ", "))
	}
	return nil
}

// tools is what "starter tools" shows.
type tools struct {
	ContextName string          `json:"contextName"`
	Tools       *event.SetTools `json:"tools"`
	Calls       []reducer.Call  `json:"calls,omitempty"`
	// Withheld are tools that match, but could not be offered in the newest turn.
	Withheld []event.WithheldTool `json:"withheld,omitempty"`
}

func showTools(ctx context.Context, o toolsOptions) error {
	of, err := o.open(ctx, o.name)
	if err != nil {
		return err
	}
	session, err := load(ctx, of)
	if err != nil {
		return err
	}
	found := tools{ContextName: o.name, Tools: session.Reduced.Config.Tools, Calls: openCalls(session)}
	if offered := session.Offered; offered != nil && slices.Equal(offered.Patterns, found.Tools.Patterns()) {
		found.Withheld = offered.Withheld
	}
	if o.json {
		return o.printJSON(found)
	}
	return show.Tools(o.out, found.Tools, found.Withheld, found.Calls)
}
