package client

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

const (
	// Files of this size and more go to the blob store, because everyone who reads the log downloads inline files.
	offloadThreshold = 8 << 10
	// maxInlineFile bounds files that models do not support: they are always inline, in base64.
	maxInlineFile = min(1<<20, (wire.MaxEventBytes-maxFileFields)/4*3)
	// maxFileWithoutStore leaves 12 KiB of an input for a message.
	maxFileWithoutStore = (maxInputWithoutStore - 12<<10) / 4 * 3
	maxFileFields       = 4096 // more than the JSON of an attachment besides its bytes
)

// Without a store, offload only checks the sizes of the files.
func (c *Context) offload(ctx context.Context, events []event.Event) ([]event.Event, error) {
	events = slices.Clone(events)
	for i, e := range events {
		if e.Extra != nil && c.client.options.Archive != nil { // perhaps a line of an export
			without, data, err := e.TakeBlob()
			if err == nil && data != nil {
				err = c.store(ctx, data)
			}
			if err != nil {
				return nil, err
			}
			e, events[i] = without, without
		}
		file, ok := e.Body.(event.FileAttachment)
		if !ok || len(file.Source.Data) < offloadThreshold {
			continue
		}
		data := file.Source.Data
		if c.client.options.Archive == nil {
			if len(data) > maxFileWithoutStore {
				return nil, &event.FieldError{Tag: e.Tag(), Field: "source.data", Problem: fmt.Sprintf(
					"%s%d bytes (at most %d without a blob store; %s)", named(file.FileName), len(data), maxFileWithoutStore, eventlog.StoreAdvice)}
			}
			continue
		}
		offloaded, err := c.storeFile(ctx, e)
		var invalid *event.FieldError
		switch {
		case err == nil:
			events[i] = offloaded
		case !errors.As(err, &invalid):
			return nil, err
		case len(data) <= maxInlineFile: // a media type that models do not support
		case event.MediaOf(file.MediaType) == event.MediaOther:
			return nil, &event.FieldError{Tag: e.Tag(), Field: "source.data", Problem: fmt.Sprintf(
				"%s%d bytes (at most %d for %s, which models do not receive)",
				named(file.FileName), len(data), maxInlineFile, event.Redact(file.MediaType, 100))}
		default:
			return nil, err
		}
	}
	return events, nil
}

func (c *Context) store(ctx context.Context, data []byte) error {
	err := c.checkIsNotDeleting(ctx)
	if err == nil {
		_, err = c.client.options.Archive.Blobs(c.name).Put(ctx, data)
	}
	return err
}

// checkIsNotDeleting returns ErrDeleting while a deletion runs, which would delete the bytes that are stored for an input.
func (c *Context) checkIsNotDeleting(ctx context.Context) error {
	if c.client.options.Archive == nil {
		return nil
	}
	isDeleting, err := c.client.log.IsDeleting(ctx, c.name)
	if err == nil && isDeleting {
		err = ErrDeleting
	}
	return c.explain(ctx, "send to", err, ErrBusy)
}

// storeFile stores the bytes of a FileAttachment and returns the event with their reference. The error is a
// *event.FieldError if the event would be invalid.
func (c *Context) storeFile(ctx context.Context, e event.Event) (event.Event, error) {
	file := e.Body.(event.FileAttachment)
	data := file.Source.Data
	file.Source = event.Source{Type: event.SourceBlob, Ref: event.RefOf(data)}
	file.Size = int64(len(data))
	e.Body = file
	if err := e.Validate(); err != nil {
		return e, err
	}
	if err := c.store(ctx, data); err != nil {
		return e, fmt.Errorf("store attachment %s: %w", file.FileName, err)
	}
	return e, nil
}

// named returns a prefix for errors; "" for a file without a name.
func named(fileName string) string {
	if fileName == "" {
		return ""
	}
	return event.Redact(fileName, 200) + " has "
}

// Limits are the maximum sizes of files in bytes.
type Limits struct {
	// The limit for a file of one of the media types, before base64.
	Attachment      int64 `json:"attachmentBytes"`
	OtherAttachment int64 `json:"otherAttachmentBytes"` // the limit for a file of any other media type
	// The limit for all files of one request, with 64 KiB left for the rest of the body.
	Attachments int64 `json:"attachmentsBytes"`
}

// Limits returns the limits for files, which depend on whether the client has a blob store.
func (c *Client) Limits() Limits {
	if c.options.Archive != nil {
		return Limits{Attachment: event.MaxAttachmentBytes, OtherAttachment: maxInlineFile}
	}
	return Limits{Attachment: maxFileWithoutStore, OtherAttachment: maxFileWithoutStore, Attachments: maxFileWithoutStore}
}
