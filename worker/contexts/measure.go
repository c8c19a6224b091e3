package contexts

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"github.com/seed-9ed7edd4/chronicle/internal/metrics"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// countTimeout bounds a count while Temporal is unavailable.
const countTimeout = 2 * time.Second

// measureWaiting exports the number of contexts with the status wire.StatusWaiting, until stop is called. A
// worker cannot count them itself: they wait for days, across restarts.
func (c *Connection) measureWaiting() (stop func()) {
	if c.Meters == nil || !c.SearchAttributes {
		return func() {}
	}
	query := fmt.Sprintf("WorkflowType = '%s' AND TaskQueue = '%s' AND ExecutionStatus = 'Running' AND %s = '%s'",
		wire.WorkflowType, strings.ReplaceAll(c.taskQueue(), "'", "''"), wire.AttributeStatus, wire.StatusWaiting)
	waiting := &metrics.New(c.Meters).ApprovalsWaiting
	return waiting.Observe(func(ctx context.Context) (float64, error) {
		ctx, cancel := context.WithTimeout(ctx, countTimeout)
		defer cancel()
		counted, err := c.Temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: query})
		return float64(counted.GetCount()), err
	})
}
