package chat

import (
	"io"
	"testing"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// LimitDocuments changes MaxDocumentBytes for a test.
func LimitDocuments(t *testing.T, bytes int) {
	maxDocument = bytes
	t.Cleanup(func() { maxDocument = MaxDocumentBytes })
}

// PlaceAfter places an event after count others.
func PlaceAfter(count int, e event.Event) error {
	p := placing{to: "demo", count: count, others: map[string]int{}}
	_, err := p.place(e)
	return err
}

// ReadAll collects the events of [Read], or returns its first error.
func ReadAll(r io.Reader, contextName string, at time.Time) ([]event.Event, error) {
	var events []event.Event
	for e, err := range Read(r, contextName, at) {
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}
