package contexts

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/internal/metrics"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// countTimeout bounds a count while Temporal is unavailable.
const countTimeout = 2 * time.Second

// measureWaiting exports the number of contexts with the status wire.StatusWaiting, until stop is called. A
// worker cannot count them itself: they wait for days, across restarts.
func measureWaiting(temporal client.Client, options Options) (stop func()) {
	if options.Meters == nil || !options.SearchAttributes {
		return func() {}
	}
	query := fmt.Sprintf("WorkflowType = '%s' AND TaskQueue = '%s' AND ExecutionStatus = 'Running' AND %s = '%s'",
		wire.WorkflowType, strings.ReplaceAll(options.TaskQueue, "'", "''"), wire.AttributeStatus, wire.StatusWaiting)
	waiting := &metrics.New(options.Meters).ApprovalsWaiting
	return waiting.Observe(func(ctx context.Context) (float64, error) {
		ctx, cancel := context.WithTimeout(ctx, countTimeout)
		defer cancel()
		counted, err := temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: query})
		return float64(counted.GetCount()), err
	})
}
