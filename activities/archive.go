package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
)

// ArchiveTimeout bounds one attempt of [Activities.Archive].
const ArchiveTimeout = time.Minute

// ArchiveInput is the input of [Activities.Archive].
type ArchiveInput struct {
	ContextName string `json:"contextName"`
	// Through is the counter of the newest recorded event to archive.
	Through int `json:"through"`
	// Earlier means that the archive may lack events of earlier runs, too.
	Earlier bool `json:"earlier,omitempty"`
}

// Archive writes the events that the archive lacks as one segment, so that the server may delete
// the history. It is idempotent.
func (a *Activities) Archive(ctx context.Context, in ArchiveInput) error {
	if in.Earlier {
		_, err := a.log.Archive(ctx, in.ContextName, in.Through)
		return err
	}
	return a.log.ArchiveRun(ctx, in.ContextName, activity.GetInfo(ctx).WorkflowExecution.RunID, in.Through)
}
