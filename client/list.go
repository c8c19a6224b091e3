package client

import (
	"context"
	"fmt"
	"iter"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"github.com/seed-9ed7edd4/chronicle/wire"
)

// Summary is a context in a list.
type Summary struct {
	ContextName string `json:"contextName"`
	// Status is empty when the search attributes are not registered.
	Status wire.Status `json:"status,omitempty"`
	Turns  int         `json:"turns"`
	Model  string      `json:"model,omitempty"`
	// StartedAt is the start of the newest session, ClosedAt its end; zero
	// while it goes on.
	StartedAt time.Time `json:"startedAt"`
	ClosedAt  time.Time `json:"closedAt,omitzero"`
}

// List yields the contexts of the namespace, one summary for each, in Temporal's
// order: first those whose session goes on, newest start first, then the others,
// newest end first. The query, if any, is a Temporal list filter that is applied on
// top, like `ContextStatus = "answering"`. The list may lag a moment behind. An error
// comes last; it is ErrUnreachable when Temporal is away.
func (c *Client) List(ctx context.Context, query string) iter.Seq2[Summary, error] {
	filter := fmt.Sprintf("WorkflowType = '%s'", wire.WorkflowType)
	if query != "" {
		filter += " AND (" + query + ")"
	}
	return func(yield func(Summary, error) bool) {
		request := &workflowservice.ListWorkflowExecutionsRequest{Query: filter}
		seen := map[string]bool{}
		for {
			page, err := c.options.Temporal.ListWorkflow(ctx, request)
			if err != nil {
				yield(Summary{}, fmt.Errorf("list the contexts where %s: %w", filter, unreachable(ctx, err)))
				return
			}
			for _, x := range page.GetExecutions() {
				name, ok := wire.ContextName(x.GetExecution().GetWorkflowId())
				if !ok || seen[name] {
					continue
				}
				seen[name] = true
				summary := Summary{
					ContextName: name,
					StartedAt:   x.GetStartTime().AsTime(),
				}
				attributes := x.GetSearchAttributes()
				decode(attributes, wire.AttributeStatus, &summary.Status)
				decode(attributes, wire.AttributeTurns, &summary.Turns)
				decode(attributes, wire.AttributeModel, &summary.Model)
				if x.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
					summary.Status, summary.ClosedAt = wire.StatusClosed, x.GetCloseTime().AsTime()
				}
				if !yield(summary, nil) {
					return
				}
			}
			if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
				return
			}
		}
	}
}

// decode reads a search attribute, if it is set.
func decode(attributes *commonpb.SearchAttributes, name string, into any) {
	if payload, ok := attributes.GetIndexedFields()[name]; ok {
		// A value of another type was not set by a context.
		_ = converter.GetDefaultDataConverter().FromPayload(payload, into)
	}
}
