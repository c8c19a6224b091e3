package activities

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// CheckTools looks for the tools that a setting names. An error means that it is unknown what this worker has, for example
// because an MCP server does not respond.
func (a *Activities) CheckTools(ctx context.Context, in wire.Offer) (out wire.Offered, err error) {
	if err := cmp.Or(event.ValidateContextName(in.ContextName), event.New(in.Tools).Validate()); err != nil {
		return wire.Offered{Error: err.Error()}, nil
	}
	g := generation{Activities: a, in: AttemptInput{ContextName: in.ContextName}}
	tools, err := g.currentTools(ctx, in.Tools)
	var failed *ModelError
	if errors.As(err, &failed) && !failed.Retryable {
		return wire.Offered{Error: event.Redact(err.Error(), 2000)}, nil
	}
	if err != nil {
		return wire.Offered{}, errors.New(event.Redact(err.Error(), 2000))
	}
	for _, pattern := range in.Tools.Patterns() {
		if !slices.ContainsFunc(tools, func(t Tool) bool { return event.MatchTool(pattern, t.Name) || event.MatchTool(pattern, t.Canonical) }) {
			out.Unmatched = append(out.Unmatched, pattern)
		}
	}
	return out, nil
}
