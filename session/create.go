package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/eventlog"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

var (
	// ErrExists: there is a context of that name already.
	ErrExists = errors.New("there is such a context already")
	// ErrNoArchive: what was asked for needs an archive, and the client has none.
	ErrNoArchive = eventlog.ErrNoArchive
)

// segmentEvents is how many events of an import stand in one segment.
const segmentEvents = 5000

// Import makes a context of a whole log, which begins with the first event and
// has its name, and begins a session of it, so that it is listed and has a state
// at once. The session adds its SessionStarted behind the log and asks no model.
//
// The log is written to the archive that the workers use, the end first: readers
// see nothing until they see all of it. An import that was cut short is finished
// by importing the same events again. Nobody may send to the context meanwhile.
//
// The error is ErrExists when there is such a context, and ErrNoArchive.
func (c *Context) Import(ctx context.Context, events []event.Event) error {
	if err := c.isFree(ctx); err != nil {
		return fmt.Errorf("import context %s: %w", c.name, err)
	}
	if len(events) == 0 || event.Counter(events[0].ID) != 1 {
		return fmt.Errorf("import context %s: want all events, from the first on", c.name)
	}
	logs := c.client.options.Archive
	if last, err := logs.Last(ctx, c.name); err != nil {
		return err
	} else if last > 0 && last != len(events) {
		return fmt.Errorf("import context %s: %w: another import was cut short, and has left events up to %d in the archive; "+
			"finish it with what it began with, or choose another name", c.name, ErrExists, last)
	}
	for _, segment := range slices.Backward(slices.Collect(slices.Chunk(events, segmentEvents))) {
		if _, err := logs.Write(ctx, c.name, segment); err != nil {
			return err
		}
	}
	return c.start(ctx)
}

// isFree returns nil when nothing has the name of the context: no run, and no
// first event in the archive.
func (c *Context) isFree(ctx context.Context) error {
	if c.client.options.Archive == nil {
		return ErrNoArchive
	}
	_, err := c.client.options.Temporal.DescribeWorkflowExecution(ctx, wire.WorkflowID(c.name), "")
	switch {
	case err == nil:
		return ErrExists
	case !errors.As(err, new(*serviceerror.NotFound)):
		return c.explain(ctx, "look for", err, ErrUnreachable)
	}
	for _, err := range c.client.options.Archive.Events(ctx, c.name, 0) {
		if err == nil {
			err = ErrExists
		}
		return err
	}
	return nil
}

// start begins a session, unless one goes on.
func (c *Context) start(ctx context.Context) error {
	_, err := c.client.options.Temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: wire.WorkflowID(c.name), TaskQueue: c.client.options.TaskQueue,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}, wire.WorkflowType)
	return c.explain(ctx, "start", err, ErrUnreachable)
}
