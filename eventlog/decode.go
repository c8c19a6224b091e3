package eventlog

import (
	"context"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// Decode returns the events that one entry of a history recorded; none when it
// is not a marker of ours. A record that is kept in a store is an error: a [Log]
// with an archive reads it.
func Decode(h *historypb.HistoryEvent) ([]event.Event, error) {
	return events(h, record(h))
}

// decode is Decode, with the records that are kept in the store of the archive.
func (l *Log) decode(ctx context.Context, h *historypb.HistoryEvent) ([]event.Event, error) {
	payloads := record(h)
	if payloads != nil && l.archive != nil {
		var err error
		if payloads, err = l.archive.Store().Inline(ctx, payloads); err != nil {
			return nil, noRecord(h, err)
		}
	}
	return events(h, payloads)
}

// record is what a marker of ours holds; nil when it is none.
func record(h *historypb.HistoryEvent) *commonpb.Payloads {
	if h.GetEventType() != enumspb.EVENT_TYPE_MARKER_RECORDED {
		return nil
	}
	marker := h.GetMarkerRecordedEventAttributes()
	if marker.GetMarkerName() != wire.MarkerName {
		return nil
	}
	return marker.GetDetails()[wire.MarkerData]
}

func events(h *historypb.HistoryEvent, payloads *commonpb.Payloads) ([]event.Event, error) {
	if payloads == nil {
		return nil, nil
	}
	for _, payload := range payloads.GetPayloads() {
		if blobs.IsReference(payload) {
			return nil, fmt.Errorf("history event %d is in a blob store: %w", h.GetEventId(), ErrNoArchive)
		}
	}
	var record wire.Record
	if err := converter.GetDefaultDataConverter().FromPayloads(payloads, &record); err != nil {
		return nil, noRecord(h, err)
	}
	return record.Events, nil
}

func noRecord(h *historypb.HistoryEvent, err error) error {
	return fmt.Errorf("history event %d holds no record: %w", h.GetEventId(), err)
}
