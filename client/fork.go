package client

import (
	"context"
	"fmt"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
)

// Fork creates the context newName and starts its session. The log of the new context begins with the log
// of c, up to and including the event with the id eventID, under the new name; a request that was running at
// this event ends as interrupted. Events are not copied: those that only a workflow history contains are
// archived, and the new context refers to the archive.
//
// The error is ErrName, also for a name in another tenant, ErrExists, ErrNoContext, ErrNoEvent, ErrNoArchive or ErrOtherStore, a *event.FieldError
// if eventID is not an event id of c, or a *GapError if the event is lost.
func (c *Context) Fork(ctx context.Context, eventID, newName string) error {
	fork, err := c.client.Open(newName)
	if err != nil {
		return err
	}
	tenant, _ := event.CutTenant(c.name)
	if other, _ := event.CutTenant(fork.name); other != tenant {
		return nameError{fmt.Errorf("fork as context %s: a fork stays in the tenant of its origin (want a name like %s)",
			newName, event.JoinTenant(tenant, "copy"))}
	}
	through := event.Counter(eventID)
	if through == 0 || eventID != event.FormatID(c.name, through) {
		return &event.FieldError{Field: "at", Problem: fmt.Sprintf(
			"%q is not an event of context %s (want an id like %s)", eventID, c.name, event.FormatID(c.name, 1))}
	}
	if err := fork.checkNotExists(ctx, "fork as"); err != nil {
		return err
	}
	run, err := c.client.log.Archive(ctx, c.name, through)
	if err != nil {
		return fmt.Errorf("fork at %s: %w", eventID, err)
	}
	if err := fork.register(ctx, archive.Run{ID: archive.ForkID, Origin: &archive.Origin{ContextName: c.name, RunID: run, At: through}}); err != nil {
		return fmt.Errorf("fork as context %s: %w", newName, err)
	}
	return fork.start(ctx)
}
