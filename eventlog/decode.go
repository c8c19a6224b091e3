package eventlog

import (
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// Decode returns the events that one entry of a history recorded; none when it
// is not a marker of ours.
func Decode(h *historypb.HistoryEvent) ([]event.Event, error) {
	if h.GetEventType() != enumspb.EVENT_TYPE_MARKER_RECORDED {
		return nil, nil
	}
	marker := h.GetMarkerRecordedEventAttributes()
	if marker.GetMarkerName() != wire.MarkerName {
		return nil, nil
	}
	var record wire.Record
	if err := converter.GetDefaultDataConverter().FromPayloads(marker.GetDetails()[wire.MarkerData], &record); err != nil {
		return nil, fmt.Errorf("history event %d holds no record: %w", h.GetEventId(), err)
	}
	return record.Events, nil
}
