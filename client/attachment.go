package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
)

// Attachment returns the FileAttachment event with the given id and the file's bytes in
// Source.Data. The error is ErrNoAttachment if the event has no file, or one that is not available
// here (a URL, or a path on a worker), or an error of [Context.Events] or of the blob store.
func (c *Context) Attachment(ctx context.Context, id string) (event.FileAttachment, error) {
	notFound := func(format string, args ...any) (event.FileAttachment, error) {
		return event.FileAttachment{}, fmt.Errorf("read the attachment of event %s: %w: %w",
			event.Redact(id, 200), ErrNoAttachment, fmt.Errorf(format, args...))
	}
	counter := event.Counter(id)
	if counter < 1 || id != event.FormatID(c.name, counter) {
		return notFound("not an event of context %s (want an id like %s)", c.name, event.FormatID(c.name, 2))
	}
	for e, err := range c.Events(ctx, event.IDBefore(c.name, counter)) {
		if err != nil {
			return event.FileAttachment{}, err
		}
		file, ok := e.Body.(event.FileAttachment)
		switch {
		case e.ID != id || !ok:
			return notFound("the event has no file")
		case len(file.Source.Data) > 0:
			return file, nil
		case file.Source.Ref == "":
			return notFound("the bytes of the file are not in the log")
		}
		file.Source.Data, err = c.Blob(ctx, file.Source.Ref)
		if errors.Is(err, blobs.ErrNotFound) || errors.Is(err, ErrNoArchive) {
			return notFound("%w", err)
		}
		return file, err
	}
	return notFound("the log ends before the event")
}

// Blob returns the bytes that an event of the log refers to ([event.Event.BlobRef]). The error is ErrNoArchive
// without a blob store, or an error of the store, such as ErrNoBlob.
func (c *Context) Blob(ctx context.Context, ref string) ([]byte, error) {
	parsed, err := blobs.ParseRef(ref)
	if err != nil {
		return nil, err
	}
	if c.client.options.Archive == nil {
		return nil, errStoreRequired
	}
	return c.client.options.Archive.Blobs(c.name).Get(ctx, parsed)
}

// isMissing reports whether bytes are missing or damaged in the blob store.
func isMissing(err error) bool {
	return errors.Is(err, blobs.ErrNotFound) || errors.Is(err, blobs.ErrCorrupt)
}
