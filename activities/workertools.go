package activities

import (
	"context"
	"fmt"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// workerTools returns the current tools of this worker, or those that an earlier step of the turn offered. It also
// returns a record of them if the log lacks it.
func (g *generation) workerTools(ctx context.Context, session reducer.Session, config event.SetTools) ([]Tool, *event.ToolsOffered, error) {
	patterns := config.Patterns()
	if len(patterns) == 0 {
		return nil, nil, nil
	}
	tools, err := g.currentTools(ctx, config)
	tools, withheld := split(tools)
	offered := event.ToolsOffered{RequestID: g.in.RequestID, Attempt: g.in.Attempt, Patterns: patterns, Tools: recordOf(tools), Withheld: withheld}
	isKnown := session.Offered == nil && len(tools)+len(withheld) == 0 || session.Offered != nil && session.Offered.Hash == offered.Hash()
	switch id := reducer.MustOffer(session); {
	case err == nil && isKnown:
		return tools, nil, nil
	case id != "":
		tools, err = g.recordedTools(ctx, id)
		return tools, nil, err
	case err != nil:
		return nil, nil, err
	}
	if err = event.New(offered).Validate(); err != nil {
		return nil, nil, toolError("tools of the worker: %v", err)
	}
	return tools, &offered, nil
}

func (g *generation) currentTools(ctx context.Context, config event.SetTools) ([]Tool, error) {
	if g.options.Tools == nil {
		return nil, toolError("tool %s: this worker has no tools (register them with the worker, or leave the tool out)", config.Patterns()[0])
	}
	return g.options.Tools.Offer(ctx, OfferRequest{ContextName: g.in.ContextName, Config: config})
}

// recordedTools reads the tools from an [event.ToolsOffered] of the log.
func (g *generation) recordedTools(ctx context.Context, eventID string) ([]Tool, error) {
	before := event.FormatID(g.in.ContextName, event.Counter(eventID)-1)
	for e, err := range g.log.Run(ctx, g.in.ContextName, g.info.WorkflowExecution.RunID, before) {
		if err != nil {
			return nil, fmt.Errorf("read the tools of the turn in context %s: %w", g.in.ContextName, err)
		}
		if offered, ok := e.Body.(event.ToolsOffered); ok && e.ID == eventID {
			return toolsOf(offered.Tools), nil
		}
		break
	}
	return nil, fmt.Errorf("read the tools of the turn in context %s: %s is not in the log", g.in.ContextName, eventID)
}

// split returns the tools that can be offered, and a record of the others.
func split(tools []Tool) (offered []Tool, withheld []event.WithheldTool) {
	for _, t := range tools {
		switch {
		case t.Withheld == "":
			offered = append(offered, t)
		case len(withheld) < event.MaxTools:
			withheld = append(withheld, event.WithheldTool{Name: t.Canonical, Reason: event.Redact(t.Withheld, event.MaxReasonBytes-100)})
		}
	}
	return offered, withheld
}

func recordOf(tools []Tool) (record []event.OfferedTool) {
	for _, t := range tools {
		canonical := t.Canonical
		if canonical == t.Name {
			canonical = ""
		}
		record = append(record, event.OfferedTool{
			Name: t.Name, Canonical: canonical, Description: t.Description, Parameters: string(t.Parameters),
			Idempotent: t.Idempotent, TimeoutMs: t.Timeout.Milliseconds(), Attempts: t.Attempts,
		})
	}
	return record
}

func toolsOf(record []event.OfferedTool) (tools []Tool) {
	for _, t := range record {
		tools = append(tools, Tool{
			ToolDefinition: ToolDefinition{Name: t.Name, Description: t.Description, Parameters: event.Object(t.Parameters)},
			Canonical:      t.Canonical, Idempotent: t.Idempotent, Timeout: milliseconds(t.TimeoutMs), Attempts: t.Attempts,
		})
	}
	return tools
}
