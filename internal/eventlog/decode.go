package eventlog

import (
	"context"
	"fmt"
	"slices"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/references"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// Decode returns the events of a history entry; none unless it is a marker with a [wire.Record].
// It fails with [ErrNoArchive] if the record is in a blob store.
func Decode(h *historypb.HistoryEvent) ([]event.Event, error) {
	return (&Log{}).decode(context.Background(), h)
}

func (l *Log) decode(ctx context.Context, h *historypb.HistoryEvent) ([]event.Event, error) {
	marker := h.GetMarkerRecordedEventAttributes()
	payloads := marker.GetDetails()[wire.MarkerData]
	if marker.GetMarkerName() != wire.MarkerName || payloads == nil {
		return nil, nil
	}
	var err error
	if l.archive != nil {
		payloads, err = l.archive.Store().Inline(ctx, payloads)
	} else if slices.ContainsFunc(payloads.GetPayloads(), references.Is) {
		return nil, fmt.Errorf("history event %d is in a blob store: %w", h.GetEventId(), ErrNoArchive)
	}
	var record wire.Record
	if err == nil {
		err = converter.GetDefaultDataConverter().FromPayloads(payloads, &record)
	}
	if err != nil {
		return nil, fmt.Errorf("decode the record of history event %d: %w", h.GetEventId(), err)
	}
	return record.Events, nil
}
