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
	"github.com/seed-9ed7edd4/chronicle/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

const segmentEvents = 5000

// Import creates the context from a complete log of that name, starting with the first event, and
// starts a session, which appends a SessionStarted and sends no request. Readers see all of the log
// or none. Import the same events again to complete an interrupted import.
//
// The error is ErrExists, ErrNoArchive or ErrOtherStore, or describes an invalid log.
func (c *Context) Import(ctx context.Context, events []event.Event) error {
	if err := c.checkNotExists(ctx, "import"); err != nil {
		return err
	}
	if len(events) == 0 || event.Counter(events[0].ID) != 1 {
		return fmt.Errorf("import context %s: the first event is missing (want the complete log)", c.name)
	}
	logs := c.client.options.Archive
	// Only an import of the same events continues with the segments of an interrupted one.
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
	if err := c.register(ctx, archive.Run{ID: id}); err != nil {
		return fmt.Errorf("import context %s: %w", c.name, err)
	}
	return c.start(ctx)
}

func (c *Context) checkNotExists(ctx context.Context, operation string) error {
	if c.client.options.Archive == nil {
		return fmt.Errorf("%s context %s: %w", operation, c.name, errStoreRequired)
	}
	if err := c.client.checkNamespace(ctx); err != nil {
		return err
	}
	d, err := c.client.options.Temporal.DescribeWorkflowExecution(ctx, wire.WorkflowID(c.name), "")
	if errors.As(err, new(*serviceerror.NotFound)) {
		return nil
	}
	if err != nil {
		return c.explain(ctx, operation, err, ErrUnreachable)
	}
	if err := c.compareStore(ctx, operation, d.GetWorkflowExecutionInfo()); err != nil {
		return err
	}
	return fmt.Errorf("%s context %s: %w", operation, c.name, ErrExists)
}

// An interrupted import or fork may have registered the run already.
func (c *Context) register(ctx context.Context, run archive.Run) error {
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
	registered, err := folder.Run(ctx, "")
	if registered.Version, registered.Number = 0, 0; err == nil && !reflect.DeepEqual(registered, run) {
		err = ErrExists
	}
	return err
}

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
