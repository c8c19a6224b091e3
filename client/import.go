package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"iter"
	"reflect"
	"slices"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

const segmentEvents = 5000

// ImportOptions are options of [Context.Import].
type ImportOptions struct {
	// AllowMissing imports events whose bytes neither the log nor the blob store has. Otherwise, they are an error.
	AllowMissing bool
}

// Imported is the result of an import.
type Imported struct {
	Events  int
	Missing []string // ids of the events whose bytes are missing
}

// Import creates the context from a complete log of that name, starting with the first event, and
// starts a session, which appends a SessionStarted and sends no request. Readers see all of the log
// or none. Import the same events again to complete an interrupted import.
//
// The blob store receives the bytes of exported references ([event.Event.TakeBlob]) and, as with [Context.Send],
// other large files, while the log is read. All events are in memory, without these bytes.
//
// The error is ErrExists, ErrNoArchive, ErrOtherStore, ErrMissingBytes or that of the log, or describes an invalid log.
func (c *Context) Import(ctx context.Context, log iter.Seq2[event.Event, error], o ImportOptions) (Imported, error) {
	if err := c.checkNotExists(ctx, "import"); err != nil {
		return Imported{}, err
	}
	var events []event.Event
	in := importing{client: c, checked: map[string]error{}, sum: sha256.New()}
	for e, err := range log {
		if err == nil {
			e, err = in.add(ctx, e)
		}
		if err != nil {
			return Imported{}, err
		}
		events = append(events, e)
	}
	if len(events) == 0 || event.Counter(events[0].ID) != 1 {
		return Imported{}, fmt.Errorf("import context %s: the first event is missing (want the complete log)", c.Name())
	}
	if len(in.missing) > 0 && !o.AllowMissing {
		return Imported{}, fmt.Errorf("import context %s: %w of %s (export the log with them, or set --allow-missing)",
			c.name, ErrMissingBytes, listed(in.missing))
	}
	// Only an import of the same events continues with the segments of an interrupted one.
	id := archive.ImportID + hex.EncodeToString(in.sum.Sum(nil)[:16])
	for segment := range slices.Chunk(events, segmentEvents) {
		if _, err := c.client.options.Archive.Write(ctx, c.name, id, segment); err != nil {
			return Imported{}, err
		}
	}
	if err := c.register(ctx, archive.Run{ID: id}); err != nil {
		return Imported{}, fmt.Errorf("import context %s: %w", c.Name(), err)
	}
	return Imported{Events: len(events), Missing: in.missing}, c.start(ctx)
}

type importing struct {
	client  *Context
	sum     hash.Hash        // of all events
	checked map[string]error // by reference
	missing []string
}

// add stores the bytes of an event, and returns the event as it is recorded.
func (in *importing) add(ctx context.Context, e event.Event) (event.Event, error) {
	c := in.client
	e, data, err := e.TakeBlob()
	if err != nil {
		return e, fmt.Errorf("import event %s: %w", e.ID, err)
	}
	if data != nil {
		if _, err := c.client.options.Archive.Blobs(c.name).Put(ctx, data); err != nil {
			return e, err
		}
		in.checked[event.RefOf(data)] = nil
	} else if file, ok := e.Body.(event.FileAttachment); ok && len(file.Source.Data) >= offloadThreshold {
		stored, err := c.storeFile(ctx, e)
		switch {
		case err == nil:
			e = stored
			in.checked[e.BlobRef()] = nil
		case !errors.As(err, new(*event.FieldError)): // else a media type that models do not support
			return e, err
		}
	}
	if ref := e.BlobRef(); ref != "" {
		if _, isChecked := in.checked[ref]; !isChecked {
			_, in.checked[ref] = c.Blob(ctx, ref)
		}
		switch err := in.checked[ref]; {
		case isMissing(err):
			in.missing = append(in.missing, e.ID)
		case err != nil:
			return e, fmt.Errorf("import event %s: %w", e.ID, err)
		}
	}
	encoded, err := e.MarshalJSON()
	if err == nil && len(encoded) > wire.MaxStoredBytes {
		err = fmt.Errorf("%d bytes of JSON (at most %d)", len(encoded), wire.MaxStoredBytes)
	}
	if err != nil {
		return e, fmt.Errorf("import event %s: %w", e.ID, err)
	}
	in.sum.Write(encoded)
	return e, nil
}

// listed returns the number of events, and the first few ids.
func listed(ids []string) string {
	const shown = 5
	text := strings.Join(ids[:min(len(ids), shown)], ", ")
	if len(ids) > shown {
		text += ", …"
	}
	if len(ids) == 1 {
		return "event " + text
	}
	return fmt.Sprintf("%d events: %s", len(ids), text)
}

func (c *Context) checkNotExists(ctx context.Context, operation string) error {
	if c.client.options.Archive == nil {
		return fmt.Errorf("%s context %s: %w", operation, c.Name(), errStoreRequired)
	}
	if err := c.client.checkNamespace(ctx); err != nil {
		return err
	}
	d, err := c.client.options.Temporal.DescribeWorkflowExecution(ctx, wire.WorkflowID(c.name), "")
	if errors.As(err, new(*serviceerror.NotFound)) {
		isDeleting, err := c.client.log.IsDeleting(ctx, c.name)
		if isDeleting {
			return fmt.Errorf("%s context %s: %w: its deletion has not ended", operation, c.Name(), ErrExists)
		}
		return c.explain(ctx, operation, err, ErrBusy)
	}
	if err != nil {
		return c.explain(ctx, operation, err, ErrBusy)
	}
	if err := c.compareStore(ctx, operation, d.GetWorkflowExecutionInfo()); err != nil {
		return err
	}
	return fmt.Errorf("%s context %s: %w", operation, c.Name(), ErrExists)
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
		return fmt.Errorf("start context %s: %w", c.Name(), err)
	}
	options := c.startOptions(id)
	options.WorkflowIDConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
	_, err = c.client.options.Temporal.ExecuteWorkflow(ctx, options, wire.WorkflowType)
	return c.explain(ctx, "start", err, ErrBusy)
}
