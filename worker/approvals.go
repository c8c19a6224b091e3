package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/doctor"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/tool"
	"github.com/seed-9ed7edd4/chronicle/tool/mcp"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// approvals returns the rules of --approve. A pattern that no tool can match is an error; the tools of a server are known
// only later.
func (a *app) approvals(tools *tool.Set, servers []mcp.Server) (rules event.ApprovalRules, err error) {
	if a.settings.part() == contexts.OnlyWorkflows {
		return nil, nil // rules are applied to answers
	}
	names := slices.Concat(tools.Names(), []string{tool.ReadResult}, mcpNames(servers))
	for _, pattern := range a.settings.Approve {
		if !slices.ContainsFunc(names, func(name string) bool { return event.MayOverlap(pattern, name) }) {
			return nil, exit.UsageError{Err: fmt.Errorf("%s %q: matches no tool of this worker (it has %s)",
				a.config.Label("approve"), pattern, strings.Join(names, ", "))}
		}
		rules = append(rules, event.ApprovalRule{Tool: pattern})
	}
	return rules, nil
}

// approvalChecks returns a check of --approve; none without it.
func approvalChecks(patterns []string, tools activities.Tools) []doctor.Check {
	if len(patterns) == 0 {
		return nil
	}
	return []doctor.Check{{
		Name:    "tools.approve",
		Why:     "calls of these tools require an approval in all contexts",
		Timeout: mcpTimeout,
		Run:     func(ctx context.Context) doctor.Result { return checkApprovals(ctx, patterns, tools) },
	}}
}

func checkApprovals(ctx context.Context, patterns []string, tools activities.Tools) doctor.Result {
	result := doctor.Result{Severity: doctor.OK, Measured: strings.Join(patterns, ", ")}
	var idle []string
	for _, pattern := range patterns {
		offered, err := tools.Offer(ctx, activities.OfferRequest{Config: event.SetTools{Tools: event.ToolList{{Pattern: pattern}}}})
		if err != nil {
			return doctor.Result{Severity: doctor.Error, Measured: err.Error(), Fix: "correct --approve"}
		}
		if len(offered) == 0 {
			idle = append(idle, pattern)
		}
	}
	if len(idle) > 0 {
		result.Severity, result.Fix = doctor.Warning, "correct --approve, unless the tools appear later"
		result.Measured += "; no tool matches " + strings.Join(idle, ", ")
	}
	return result
}
