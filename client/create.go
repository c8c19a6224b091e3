package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/eventlog"
	"github.com/seed-9ed7edd4/chronicle/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/eventlog/blobs"
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
// The log is written to the archive that the workers use; readers see nothing until
// they see all of it. An import that was cut short is finished by importing the
// same events again.
//
// The error is ErrExists when there is such a context, and ErrNoArchive.
func (c *Context) Import(ctx context.Context, events []event.Event) error {
	if err := c.isFree(ctx, "import"); err != nil {
		return err
	}
	if len(events) == 0 || event.Counter(events[0].ID) != 1 {
		return fmt.Errorf("import context %s: want all events, from the first on", c.name)
	}
	logs := c.client.options.Archive
	// The same events have the same id, so an import that was cut short is finished
	// by another one, and no other import sees what it has left.
	sum := sha256.New()
	for _, e := range events {
		data, err := e.MarshalJSON()
		if err != nil {
			return fmt.Errorf("import context %s: %w", c.name, err)
		}
		sum.Write(data)
	}
	id := archive.ImportID + hex.EncodeToString(sum.Sum(nil)[:16])
	for segment := range slices.Chunk(events, segmentEvents) {
		if _, err := logs.Write(ctx, c.name, id, segment); err != nil {
			return err
		}
	}
	if err := c.create(ctx, archive.Run{ID: id}); err != nil {
		return fmt.Errorf("import context %s: %w", c.name, err)
	}
	return c.start(ctx)
}

// isFree returns nil when no workflow has the name of the context.
func (c *Context) isFree(ctx context.Context, verb string) error {
	if c.client.options.Archive == nil {
		return fmt.Errorf("%s context %s: %w", verb, c.name, ErrNoArchive)
	}
	if err := c.client.checkNamespace(ctx); err != nil {
		return err
	}
	d, err := c.client.options.Temporal.DescribeWorkflowExecution(ctx, wire.WorkflowID(c.name), "")
	if errors.As(err, new(*serviceerror.NotFound)) {
		return nil
	}
	if err != nil {
		return c.explain(ctx, verb, err, ErrUnreachable)
	}
	if err := c.compareStore(ctx, verb, d.GetWorkflowExecutionInfo()); err != nil {
		return err
	}
	return fmt.Errorf("%s context %s: %w", verb, c.name, ErrExists)
}

// create registers the first run of a context. It is done already when an import
// or a fork was cut short behind it.
func (c *Context) create(ctx context.Context, run archive.Run) error {
	folder, err := c.client.options.Archive.Folder(ctx, c.name)
	if err != nil {
		return err
	}
	if folder.IsEmpty() {
		if err = folder.Register(ctx, run); errors.Is(err, blobs.ErrExists) {
			err = ErrExists
		}
		return err
	}
	there, err := folder.Run(ctx, "")
	if there.Version = 0; err == nil && !reflect.DeepEqual(there, run) {
		err = ErrExists
	}
	return err
}

// start begins a session, unless one goes on.
func (c *Context) start(ctx context.Context) error {
	id, err := c.client.options.Archive.Store().Identity(ctx)
	if err != nil {
		return fmt.Errorf("start context %s: %w", c.name, err)
	}
	options := c.startOptions(id)
	options.WorkflowIDConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
	_, err = c.client.options.Temporal.ExecuteWorkflow(ctx, options, wire.WorkflowType)
	return c.explain(ctx, "start", err, ErrUnreachable)
}
