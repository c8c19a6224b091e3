package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
)

// Fork creates the context newName and starts its session. The log of the new context begins with the log
// of c, up to and including the event with the id eventID, under the new name; a request that was running at
// this event ends as interrupted. Events are not copied: those that only a workflow history contains are
// archived, and the new context refers to the archive.
//
// The error is ErrName, also for a name in another tenant, ErrExists, ErrNoContext, ErrNoEvent, ErrNoArchive or
// ErrOtherStore, a *event.FieldError if eventID is not an event id of c or c has too many origins, or a *GapError if the
// event is lost.
func (c *Context) Fork(ctx context.Context, eventID, newName string) error {
	fork, err := c.client.Open(newName)
	if err != nil {
		return err
	}
	if err := c.checkTenant(fork); err != nil {
		return err
	}
	through, err := c.counter("at", eventID)
	if err != nil {
		return err
	}
	if err := fork.checkNotExists(ctx, "fork as"); err != nil {
		return err
	}
	origin, err := c.originAt(ctx, through)
	if err != nil {
		return err
	}
	_, err = fork.resumeFrom(ctx, origin)
	return err
}

// checkTenant rejects a fork in another tenant.
func (c *Context) checkTenant(fork *Context) error {
	tenant, _ := event.CutTenant(c.name)
	if other, _ := event.CutTenant(fork.name); other != tenant {
		return nameError{fmt.Errorf("fork as context %s: a fork stays in the tenant of its origin (want a name like %s)",
			fork.Name(), event.JoinTenant(tenant, "copy"))}
	}
	return nil
}

// counter returns the counter of an event of the context.
func (c *Context) counter(field, eventID string) (int, error) {
	n := event.Counter(eventID)
	if n == 0 || eventID != event.FormatID(c.name, n) {
		return 0, &event.FieldError{Field: field, Problem: fmt.Sprintf(
			"%q is not an event of context %s (want an id like %s)", eventID, c.Name(), event.FormatID(c.name, 1))}
	}
	return n, nil
}

// originAt archives the log through an event, and refers to it.
func (c *Context) originAt(ctx context.Context, through int) (archive.Origin, error) {
	run, err := c.client.log.Archive(ctx, c.name, through)
	if err != nil {
		return archive.Origin{}, fmt.Errorf("fork at %s: %w", event.FormatID(c.name, through), err)
	}
	return archive.Origin{ContextName: c.name, RunID: run, At: through, CreatedAt: now()}, nil
}

// now is the time that the JSON of a registration has.
func now() time.Time { return time.Now().UTC().Round(0) }

// resumeFrom is startFrom, and also starts the same fork if it was interrupted after its registration.
func (c *Context) resumeFrom(ctx context.Context, origin archive.Origin) (*Context, error) {
	registered, err := c.client.options.Archive.Registered(ctx, c.name)
	if err == nil && registered != nil && registered.ContextName == origin.ContextName && registered.At == origin.At {
		origin = *registered
	}
	return c.startFrom(ctx, origin)
}

// completeFrom is startFrom, and has no effect if a request with the same claim has started the fork.
func (c *Context) completeFrom(ctx context.Context, origin archive.Origin, admit func() error) (*Context, error) {
	registered := c.registeredBy(ctx, origin.Claim)
	if registered != nil {
		origin = *registered
	}
	fork, err := (*Context)(nil), c.checkNotExists(ctx, "fork as")
	if err == nil && registered == nil {
		err = admit()
	}
	if err == nil {
		fork, err = c.startFrom(ctx, origin)
	}
	if errors.Is(err, ErrExists) && c.registeredBy(ctx, origin.Claim) != nil { // perhaps just now
		return c, nil
	}
	return fork, err
}

// registeredBy returns the origin of a fork that was registered with a claim; nil if it was not, or if it is unknown.
func (c *Context) registeredBy(ctx context.Context, claim string) *archive.Origin {
	registered, err := c.client.options.Archive.Registered(ctx, c.name)
	if err != nil || registered == nil || registered.Claim != claim {
		return nil
	}
	return registered
}

// startFrom registers a fork and starts its session. It returns nil if the fork was not registered.
func (c *Context) startFrom(ctx context.Context, origin archive.Origin) (*Context, error) {
	if err := c.client.checkDepth(ctx, origin); err != nil {
		return nil, err
	}
	if err := c.register(ctx, archive.Run{ID: archive.ForkID, Origin: &origin}); err != nil {
		return nil, fmt.Errorf("fork as context %s: %w", c.Name(), err)
	}
	if err := c.checkOrigin(ctx, origin); err != nil {
		return nil, fmt.Errorf("fork at %s: %w", event.FormatID(origin.ContextName, origin.At), err)
	}
	return c, c.start(ctx)
}

// checkDepth rejects a fork whose log could not be read.
func (c *Client) checkDepth(ctx context.Context, origin archive.Origin) error {
	name := origin.ContextName
	for range archive.MaxForkDepth {
		above, err := c.originOf(ctx, name)
		if err != nil || above == nil {
			return err
		}
		name = above.ContextName
	}
	return &event.FieldError{Field: "at", Problem: fmt.Sprintf("%s has %d origins (at most %[2]d; send to the context, or export and import it)",
		c.context(origin.ContextName).Name(), archive.MaxForkDepth)}
}

// checkOrigin removes the registration of a fork whose origin was deleted in the meantime. A deletion that begins later
// finds the registration.
func (c *Context) checkOrigin(ctx context.Context, origin archive.Origin) error {
	from := c.client.context(origin.ContextName)
	isDeleting, err := c.client.log.IsDeleting(ctx, from.name)
	archived := origin.At
	if err == nil && !isDeleting {
		_, archived, err = c.client.log.Archived(ctx, c.name)
	}
	if err != nil {
		return err // the fork is completed when it is repeated
	}
	if archived >= origin.At && !isDeleting {
		return nil
	}
	if _, err := c.client.options.Archive.Delete(ctx, c.name); err != nil {
		return err
	}
	return fmt.Errorf("context %s is deleted: %w", from.Name(), ErrNoContext)
}
