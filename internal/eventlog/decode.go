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
	record, err := l.record(ctx, h)
	return record.Events, err
}

// record returns the zero record for an entry that is not a marker with one.
func (l *Log) record(ctx context.Context, h *historypb.HistoryEvent) (record wire.Record, err error) {
	marker := h.GetMarkerRecordedEventAttributes()
	payloads := marker.GetDetails()[wire.MarkerData]
	if marker.GetMarkerName() != wire.MarkerName || payloads == nil {
		return record, nil
	}
	if l.archive != nil {
		payloads, err = l.archive.Store().Inline(ctx, payloads)
	} else if slices.ContainsFunc(payloads.GetPayloads(), references.Is) {
		return record, fmt.Errorf("history event %d is in a blob store: %w", h.GetEventId(), ErrNoArchive)
	}
	if err == nil {
		err = converter.GetDefaultDataConverter().FromPayloads(payloads, &record)
	}
	if err != nil {
		return record, fmt.Errorf("decode the record of history event %d: %w", h.GetEventId(), err)
	}
	return record, nil
}
