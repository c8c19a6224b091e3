package client

import (
	"context"
	"fmt"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/eventlog/archive"
)

// Fork creates a context and starts its session. The argument as is the name of the new context. Its
// log begins with the log of c, up to and including the event whose id is the argument at, under the
// new name; a request that was running at this event ends as interrupted. Events are not copied: those
// that only a workflow history contains are archived, and the new context refers to the archive.
//
// The error is ErrName, ErrExists, ErrNoContext, ErrNoArchive or ErrOtherStore, a *event.FieldError
// if at is not an event id of c, or a *eventlog.GapError if the event is lost.
func (c *Context) Fork(ctx context.Context, at, as string) error {
	fork, err := c.client.Open(as)
	if err != nil {
		return err
	}
	through := event.Counter(at)
	if through == 0 || at != event.FormatID(c.name, through) {
		return &event.FieldError{Field: "at", Problem: fmt.Sprintf(
			"%q is not an event of context %s (want an id like %s)", at, c.name, event.FormatID(c.name, 1))}
	}
	if err := fork.checkNotExists(ctx, "fork as"); err != nil {
		return err
	}
	run, err := c.client.log.Archive(ctx, c.name, through)
	if err != nil {
		return fmt.Errorf("fork at %s: %w", at, err)
	}
	if err := fork.register(ctx, archive.Run{ID: archive.ForkID, Origin: &archive.Origin{ContextName: c.name, RunID: run, At: through}}); err != nil {
		return fmt.Errorf("fork as context %s: %w", as, err)
	}
	return fork.start(ctx)
}
