package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
)

// ArchiveTimeout bounds one try of [Activities.Archive].
const ArchiveTimeout = time.Minute

// ArchiveInput says which events to archive.
type ArchiveInput struct {
	ContextName string `json:"contextName"`
	// Through is the counter of the newest of them. They are recorded.
	Through int `json:"through"`
	// Earlier says that events of earlier runs may be missing in the archive, too.
	Earlier bool `json:"earlier,omitempty"`
}

// Archive makes sure that a run can be forgotten by the server: it writes all
// events that are not in the archive yet, as one segment. A retry writes the same
// again.
func (a *Activities) Archive(ctx context.Context, in ArchiveInput) error {
	if in.Earlier {
		_, err := a.log.Archive(ctx, in.ContextName, in.Through)
		return err
	}
	return a.log.ArchiveRun(ctx, in.ContextName, activity.GetInfo(ctx).WorkflowExecution.RunID, in.Through)
}
