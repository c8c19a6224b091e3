package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

const (
	updateTimeout = 2 * time.Second // of the update; after a timeout, Send sends a signal
	// updateExpiry is when the update expires. If the clock of this process differs from that of the server by more than
	// the difference to updateTimeout, Send repeats input that is recorded, or always sends signals.
	updateExpiry = 10 * time.Second
	// A run that a deletion ends takes no more input. It ends soon, or is terminated after ten seconds.
	endingTimeout  = 12 * time.Second
	endingInterval = 100 * time.Millisecond
)

// Receipt reports the outcome of a Send, in the order of the events.
type Receipt struct {
	// ClientEventIDs of the events. Sending events again with the same ids records them once.
	ClientEventIDs []string `json:"clientEventIds"`
	// EventIDs is nil if no worker responded or the input exceeds 64 KiB: Temporal has
	// then stored the input for a worker.
	EventIDs  []string `json:"eventIds,omitempty" schema:"items.is=EventID"`
	RefusalID string   `json:"refusalId,omitempty"` // the id of the InputRejectedEvent, if the context rejected the input
}

// First returns the receipt of the first n events.
func (r Receipt) First(n int) Receipt {
	r.ClientEventIDs, r.EventIDs = r.ClientEventIDs[:min(n, len(r.ClientEventIDs))], r.EventIDs[:min(n, len(r.EventIDs))]
	return r
}

// Send delivers events as one input, accepted or rejected as a whole. It creates the context, or
// its next session, if needed. When Send returns nil, the input is stored, and the next run records
// it if its run is terminated. It is lost if a reset of the run excludes it, if the server removes the
// history of a terminated run before the next one starts, or if no worker had opened the terminated run
// and another program than a client of this package starts the next one.
//
// Events without a ClientEventID are assigned one. To repeat a Send with an unknown outcome, use
// the ids of its receipt; the context deduplicates them among its newest thousand. Events of one
// input with the same id must be equal. If the client has a blob store, files of 8 KiB and more
// in [event.MediaTypes] are replaced by references to it.
//
// The error is a *event.FieldError for invalid events, ErrRefused if the context rejects them,
// ErrDeleting if a deletion runs and the input is larger than 64 KiB or has a stored file, or the
// session does not end within 12 s, or ErrFull if no worker runs and the history has no room. After ErrFull, use the
// same ids again: a worker may still record the events.
func (c *Context) Send(ctx context.Context, events ...event.Event) (Receipt, error) {
	defer c.client.notifier.notify(c.name)
	if len(events) == 0 {
		return Receipt{}, &event.FieldError{Problem: "the input has no events"}
	}
	if len(events) > event.MaxInputEvents {
		return Receipt{}, &event.FieldError{Problem: fmt.Sprintf("the input has %d events (at most %d)", len(events), event.MaxInputEvents)}
	}
	if err := c.checkStore(ctx, "send to"); err != nil {
		return Receipt{}, err
	}
	events, err := c.offload(ctx, events)
	if err != nil {
		return Receipt{}, err
	}
	ids, data, err := c.encode(events)
	if err != nil {
		return Receipt{}, err
	}
	sent, input := Receipt{ClientEventIDs: ids}, wire.Payload(data)
	if len(data) > wire.MaxAppendBytes {
		if err := c.checkIsNotDeleting(ctx); err != nil {
			return Receipt{}, err
		}
		err = c.sendSignal(ctx, input)
		return sent, c.explain(ctx, "send to", err, ErrBusy)
	}
	ending, cancel := context.WithTimeout(ctx, endingTimeout)
	defer cancel()
	sent.EventIDs, err = c.sendUpdate(ctx, input)
	for errors.Is(err, ErrDeleting) && pause.For(ending, endingInterval) {
		sent.EventIDs, err = c.sendUpdate(ctx, input)
	}
	var refused *refusal
	if errors.As(err, &refused) {
		sent.RefusalID = refused.eventID
	}
	if errors.As(err, new(*event.FieldError)) {
		return Receipt{}, err
	}
	if err == nil || errors.Is(err, ErrRefused) || errors.Is(err, ErrDeleting) || ctx.Err() != nil {
		return sent, c.explain(ctx, "send to", err, ErrBusy)
	}
	// There is no worker, or the run has too many updates or is closing. If the update completes
	// as well, before it expires, the events are deduplicated.
	err = c.sendSignal(ctx, input)
	return sent, c.explain(ctx, "send to", err, ErrBusy)
}

func (c *Context) sendUpdate(ctx context.Context, input converter.RawValue) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, updateTimeout)
	defer cancel()
	t := c.client.options.Temporal
	var handle sdkclient.WorkflowUpdateHandle
	err := c.starting(ctx, func(options sdkclient.StartWorkflowOptions) (err error) {
		options.WorkflowIDConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
		handle, err = t.UpdateWithStartWorkflow(ctx, sdkclient.UpdateWithStartWorkflowOptions{
			StartWorkflowOperation: t.NewWithStartWorkflowOperation(options, wire.WorkflowType), UpdateOptions: c.update(input),
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return c.appended(ctx, handle)
}

func (c *Context) update(input converter.RawValue) sdkclient.UpdateWorkflowOptions {
	return sdkclient.UpdateWorkflowOptions{
		// Random: the server answers a repeated id with the first result, such as a rejection.
		UpdateID: rand.Text(), WorkflowID: wire.WorkflowID(c.name), UpdateName: wire.UpdateAppend,
		Args:         []any{input, wire.Sent{Expires: time.Now().Add(updateExpiry)}},
		WaitForStage: sdkclient.WorkflowUpdateStageCompleted,
	}
}

// appended waits for the result of an update.
func (c *Context) appended(ctx context.Context, handle sdkclient.WorkflowUpdateHandle) ([]string, error) {
	var appended wire.Appended
	err := handle.Get(ctx, &appended)
	if err == nil {
		c.client.storeChecks.expire(c.name)
	}
	var failure *temporal.ApplicationError
	if errors.As(err, &failure) {
		switch failure.Type() {
		case wire.ErrorRejected:
			refused := &refusal{reason: failure.Message()}
			_ = failure.Details(&refused.eventID) // none if the context recorded no rejection
			return nil, refused
		case wire.ErrorInvalid:
			return nil, &event.FieldError{Problem: failure.Message()}
		case wire.ErrorDeleting:
			return nil, ErrDeleting
		}
	}
	return appended.EventIDs, err
}

// Refused returns the error of [Context.Send] for the reason of an InputRejected: an ErrRefused, perhaps ErrKeyReused.
func Refused(reason string) error { return &refusal{reason: reason} }

type refusal struct{ reason, eventID string }

func (r *refusal) Error() string { return fmt.Sprintf("%v: %s", ErrRefused, r.reason) }
func (*refusal) Unwrap() error   { return ErrRefused }

func (r *refusal) Is(target error) bool { return target == ErrKeyReused && r.reason == event.KeyReused }

func (c *Context) sendSignal(ctx context.Context, input converter.RawValue) error {
	if err := c.checkHistory(ctx, historyBytes(len(input.Payload().GetData()))); err != nil {
		return err
	}
	err := c.starting(ctx, func(options sdkclient.StartWorkflowOptions) error {
		_, err := c.client.options.Temporal.SignalWithStartWorkflow(ctx, options.ID, wire.SignalEvent, input, options, wire.WorkflowType)
		return err
	})
	if isSignalLimit(err) {
		return &fullError{fmt.Sprintf("%s of %[1]s signals", thousands(maxSignals))}
	}
	return err
}
