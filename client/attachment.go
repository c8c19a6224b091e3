package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/eventlog/blobs"
)

// Attachment returns the file that the event of an id brought, with its bytes as the
// data of its source. Those before it in the log are not read. The error is
// ErrNoAttachment, also for a file that is on the web or with the worker, or one of
// Events.
func (c *Context) Attachment(ctx context.Context, id string) (event.FileAttachment, error) {
	none := func(format string, args ...any) (event.FileAttachment, error) {
		return event.FileAttachment{}, fmt.Errorf("event %s: %w: %w", event.Redact(id, 200), ErrNoAttachment, fmt.Errorf(format, args...))
	}
	counter := event.Counter(id)
	if counter < 1 || id != event.FormatID(c.name, counter) {
		return none("an id of context %s is like %s", c.name, event.FormatID(c.name, 2))
	}
	from := ""
	if counter > 1 {
		from = event.FormatID(c.name, counter-1)
	}
	for e, err := range c.Events(ctx, from) {
		if err != nil {
			return event.FileAttachment{}, err
		}
		file, ok := e.Body.(event.FileAttachment)
		switch {
		case e.ID != id || !ok:
			return none("it brought no file")
		case len(file.Source.Data) > 0:
			return file, nil
		case file.Source.Ref == "":
			return none("its bytes are not in the log")
		case c.client.options.Archive == nil:
			return none("its bytes are in the blob store of the workers, which this client was not told")
		}
		ref, err := blobs.ParseRef(file.Source.Ref)
		if err != nil {
			return none("%w", err)
		}
		file.Source.Data, err = c.client.options.Archive.Store().Get(ctx, ref)
		if errors.Is(err, blobs.ErrNotFound) {
			return none("%w", err)
		}
		return file, err
	}
	return none("the log ends before it")
}
