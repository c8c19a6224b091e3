package client

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// Status of a context: "idle", "answering", "waiting" for an approval or the result of a client's call, or "closed".
type Status = wire.Status

// Summary describes a context and its newest session.
type Summary struct {
	ContextName string `json:"contextName"`
	// Absent if the search attributes are not registered with Temporal.
	Status Status `json:"status,omitempty"`
	Turns  int    `json:"turns"` // the number of requests that ended
	Model  string `json:"model,omitempty"`
	Title  string `json:"title,omitempty"`
	// Those of the details; a name and a value of more than 200 characters together are cut.
	Labels map[string]string `json:"labels,omitempty"`
	// The context from which a fork descends, also by forks of forks; absent: the context is no fork.
	Root string `json:"root,omitempty" schema:"is=ContextName"`
	// The start of the newest Temporal run. A session can consist of several runs.
	StartedAt time.Time `json:"startedAt"`
	ClosedAt  time.Time `json:"closedAt,omitzero"` // zero while it runs
}

// List yields the contexts, or those of the tenant of the client: first the open ones, most recently started first, then
// the closed ones, most recently ended first. The start is that of the newest run. The list is eventually consistent. The
// query is an additional Temporal list filter, like `ContextStatus = "waiting"`; empty: none. An error, such as
// ErrUnreachable, comes last.
func (c *Client) List(ctx context.Context, query string) iter.Seq2[Summary, error] {
	filter := fmt.Sprintf("WorkflowType = '%s'", wire.WorkflowType)
	if c.tenant != "" {
		filter += fmt.Sprintf(" AND WorkflowId STARTS_WITH '%s'", wire.WorkflowID(event.JoinTenant(c.tenant, "")))
	}
	if query != "" {
		filter += " AND (" + query + ")"
	}
	return func(yield func(Summary, error) bool) {
		request := &workflowservice.ListWorkflowExecutionsRequest{Query: filter}
		seen := map[string]bool{}
		for {
			page, err := c.options.Temporal.ListWorkflow(ctx, request)
			if err != nil {
				yield(Summary{}, fmt.Errorf("list contexts with filter %s: %w", filter, unreachable(ctx, err)))
				return
			}
			for _, x := range page.GetExecutions() {
				name, ok := wire.ContextName(x.GetExecution().GetWorkflowId())
				if ok {
					name, ok = c.nameOf(name)
				}
				if !ok || seen[name] {
					continue
				}
				seen[name] = true
				if !yield(c.summaryOf(name, x), nil) {
					return
				}
			}
			if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
				return
			}
		}
	}
}

// Stored yields the names of the contexts in the blob store, or of those of the tenant of the client: also those that
// Temporal does not list any more, because their newest run ended before the retention of the namespace. It reads the names
// of all segments of their logs. Without a blob store, there are none. An error comes last.
func (c *Client) Stored(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		logs := c.options.Archive
		if logs == nil {
			return
		}
		contexts := logs.Contexts(ctx)
		if c.isBound {
			contexts = logs.ContextsOf(ctx, c.tenant)
		}
		for stored, err := range contexts {
			name, _ := c.nameOf(stored.ContextName)
			if !yield(name, err) {
				return
			}
		}
	}
}

// Activity is when a context was last active, and whether lists hide it.
type Activity = eventlog.Activity

// Activity returns that of a context of a list: the time of its newest event but for the start and the end of sessions and
// details, at least StartedAt. It costs one call of Temporal, and rarely a read of the log.
func (c *Client) Activity(ctx context.Context, s Summary) (Activity, error) {
	opened, err := c.Open(s.ContextName)
	if err != nil {
		return Activity{}, err
	}
	a, err := c.log.Activity(ctx, opened.name)
	if err != nil {
		return Activity{}, unreachable(ctx, err)
	}
	if a.At.Before(s.StartedAt) {
		a.At = s.StartedAt
	}
	return a, nil
}

// Summary returns that of a context, which is consistent, unlike List. The error is ErrNoContext if Temporal does not have
// the context.
func (c *Client) Summary(ctx context.Context, name string) (Summary, error) {
	opened, err := c.Open(name)
	if err != nil {
		return Summary{}, err
	}
	d, err := c.options.Temporal.DescribeWorkflowExecution(ctx, wire.WorkflowID(opened.name), "")
	if err != nil {
		return Summary{}, opened.explain(ctx, "look for", err, ErrBusy)
	}
	return c.summaryOf(name, d.GetWorkflowExecutionInfo()), nil
}

func (c *Client) summaryOf(name string, x *workflowpb.WorkflowExecutionInfo) Summary {
	s := Summary{ContextName: name, StartedAt: x.GetStartTime().AsTime()}
	if root := wire.RootOf(x.GetMemo()); event.ValidateContextName(root) == nil {
		s.Root, _ = c.nameOf(root)
	}
	attributes := x.GetSearchAttributes()
	decode(attributes, wire.AttributeStatus, &s.Status)
	decode(attributes, wire.AttributeTurns, &s.Turns)
	decode(attributes, wire.AttributeModel, &s.Model)
	decode(attributes, wire.AttributeTitle, &s.Title)
	var labels []string
	decode(attributes, wire.AttributeLabels, &labels)
	for _, label := range labels {
		if s.Labels == nil {
			s.Labels = map[string]string{}
		}
		name, value, _ := strings.Cut(label, "=")
		s.Labels[name] = value
	}
	if x.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		s.Status, s.ClosedAt = wire.StatusClosed, x.GetCloseTime().AsTime()
	}
	return s
}

func decode(attributes *commonpb.SearchAttributes, name string, into any) {
	if payload, ok := attributes.GetIndexedFields()[name]; ok {
		// A value of another type was not set by a context.
		_ = converter.GetDefaultDataConverter().FromPayload(payload, into)
	}
}
