package client

import (
	"context"
	"fmt"
	"slices"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/eventlog"
	"github.com/seed-9ed7edd4/chronicle/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

const (
	// Files from this size in bytes are put into the blob store: every reader of a log reads inline
	// files.
	offloadThreshold = 8 << 10
	// maxInlineFile bounds files of media types that models do not support, which cannot be
	// references. Base64 adds a third.
	maxInlineFile = min(1<<20, (wire.MaxEventBytes-maxFileFields)/4*3)
	// maxFileWithoutStore leaves 12 KiB of an input for a message.
	maxFileWithoutStore = (maxInputWithoutStore - 12<<10) / 4 * 3
	// maxFileFields is more than the JSON of an attachment has besides its bytes.
	maxFileFields = 4096
)

// Without a store, offload only checks the sizes of the files.
func (c *Client) offload(ctx context.Context, events []event.Event) ([]event.Event, error) {
	events = slices.Clone(events)
	for i, e := range events {
		file, ok := e.Body.(event.FileAttachment)
		if !ok || len(file.Source.Data) < offloadThreshold {
			continue
		}
		data := file.Source.Data
		if c.options.Archive == nil {
			if len(data) > maxFileWithoutStore {
				return nil, &event.FieldError{Tag: e.Tag(), Field: "source.data", Problem: fmt.Sprintf(
					"%d bytes (at most %d without a blob store; %s)", len(data), maxFileWithoutStore, eventlog.StoreAdvice)}
			}
			continue
		}
		offloaded := e
		file.Source = event.Source{Type: event.SourceBlob, Ref: string(blobs.RefOf(data))}
		file.Size = int64(len(data))
		offloaded.Body = file
		if err := offloaded.Validate(); err != nil {
			if len(data) <= maxInlineFile {
				continue // a media type that models do not support
			}
			return nil, err
		}
		if _, err := c.options.Archive.Store().Put(ctx, data); err != nil {
			return nil, fmt.Errorf("store attachment %s: %w", file.FileName, err)
		}
		events[i] = offloaded
	}
	return events, nil
}

// Limits are the maximum sizes of files in bytes.
type Limits struct {
	// Attachment applies to files of event.MediaTypes, OtherAttachment to all others.
	Attachment      int64 `json:"attachmentBytes"`
	OtherAttachment int64 `json:"otherAttachmentBytes"`
	// Attachments applies to all files of an input together; 0: unlimited.
	Attachments int64 `json:"attachmentsBytes"`
}

// Limits depend on whether the client has a blob store.
func (c *Client) Limits() Limits {
	if c.options.Archive != nil {
		return Limits{Attachment: event.MaxAttachmentBytes, OtherAttachment: maxInlineFile}
	}
	return Limits{Attachment: maxFileWithoutStore, OtherAttachment: maxFileWithoutStore, Attachments: maxFileWithoutStore}
}
