package client

import (
	"context"
	"fmt"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/eventlog/archive"
)

// Fork makes a context whose log begins with that of c up to an event, under its
// own name, and begins a session of it, which names the event. No event is copied:
// those that are in the running history alone are archived first, as c would do
// later, and the new context refers to the archive.
//
// The event may lie within a request. To the new context that is a request that an
// earlier session left, and it ends as interrupted.
//
// The error is ErrExists when there is a context of the new name, ErrNoContext
// when there is none to fork, and ErrNoArchive; it is a *event.FieldError when c
// can have no such event.
func (c *Context) Fork(ctx context.Context, at, as string) error {
	fork, err := c.client.Open(as)
	if err != nil {
		return err
	}
	through := event.Counter(at)
	if through == 0 || at != event.FormatID(c.name, through) {
		return &event.FieldError{Field: "at", Problem: fmt.Sprintf(
			"%q is no event of context %s, want one like %s", at, c.name, event.FormatID(c.name, 1))}
	}
	if err := fork.isFree(ctx, "fork as"); err != nil {
		return err
	}
	run, err := c.client.log.Archive(ctx, c.name, through)
	if err != nil {
		return fmt.Errorf("fork at %s: %w", at, err)
	}
	if err := fork.create(ctx, archive.Run{ID: archive.ForkID, Origin: &archive.Origin{ContextName: c.name, RunID: run, At: through}}); err != nil {
		return fmt.Errorf("fork as context %s: %w", as, err)
	}
	return fork.start(ctx)
}
