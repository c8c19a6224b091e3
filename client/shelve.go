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

// shelveFrom is how long a file is that is not sent along when there is a blob
// store, but put there and referred to. Every reader of a log reads what is sent
// along.
const shelveFrom = 8 << 10

// shelve puts the files that events bring into the blob store, each once, and
// lets the events refer to them. A client without a store leaves them in the
// events, which Send bounds.
func (c *Client) shelve(ctx context.Context, events []event.Event) ([]event.Event, error) {
	events = slices.Clone(events)
	for i, e := range events {
		file, ok := e.Body.(event.FileAttachment)
		if !ok || len(file.Source.Data) < shelveFrom {
			continue
		}
		data := file.Source.Data
		if c.options.Archive == nil {
			if len(data) > maxWithoutStore {
				return nil, &event.FieldError{Tag: e.Tag(), Field: "source.data", Problem: fmt.Sprintf(
					"%d bytes, at most %d can be sent without a blob store (%s)", len(data), maxWithoutStore, eventlog.StoreAdvice)}
			}
			continue
		}
		shelved := e
		file.Source = event.Source{Type: event.SourceBlob, Ref: string(blobs.RefOf(data))}
		file.Size = int64(len(data))
		shelved.Body = file
		if err := shelved.Validate(); err != nil {
			if len(data) <= maxSentAlong {
				continue // of a type that models are not shown
			}
			return nil, err
		}
		if _, err := c.options.Archive.Store().Put(ctx, data); err != nil {
			return nil, fmt.Errorf("attachment %s: %w", file.FileName, err)
		}
		events[i] = shelved
	}
	return events, nil
}

// maxSentAlong bounds a file in an event, for media types that models are not
// shown and that therefore cannot be references: 1 MiB. Base64 adds a third.
const maxSentAlong = min(1<<20, (wire.MaxEventBytes-eventRoom)/4*3)

// maxWithoutStore bounds a file of a client without a store. It leaves room for
// a message of some pages.
const maxWithoutStore = (wire.MaxAppendBytes - 16<<10) / 4 * 3

// eventRoom is more than the JSON of an attachment takes beside its bytes.
const eventRoom = 4096

// Limits are how long the files may be that are sent, in bytes.
type Limits struct {
	// Attachment is for a file of one of event.MediaTypes, OtherAttachment for any
	// other.
	Attachment      int64 `json:"attachmentBytes"`
	OtherAttachment int64 `json:"otherAttachmentBytes"`
	// Attachments is for all files of one input; 0: there is no such limit.
	Attachments int64 `json:"attachmentsBytes"`
}

// Limits are those of the blob store, if the client has one, and else of what can
// be sent without.
func (c *Client) Limits() Limits {
	if c.options.Archive != nil {
		return Limits{Attachment: event.MaxAttachmentBytes, OtherAttachment: maxSentAlong}
	}
	return Limits{Attachment: maxWithoutStore, OtherAttachment: maxWithoutStore, Attachments: maxWithoutStore}
}
