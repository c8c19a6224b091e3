package wire

import (
	"encoding/json"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Markers with this name carry a [Record] under the key MarkerData.
const (
	MarkerName = "SideEffect"
	MarkerData = "data"
)

// Record is the content of a marker: events appended to the log.
type Record struct {
	Events []event.Event `json:"events"`
	// Taken is how far the run had processed its input with these events. Nil: as far as the record before says, or, in
	// the first record of a run, input of earlier runs came first.
	Taken *Taken `json:"taken,omitempty"`
}

// Taken is a position in the input that runs of a context accepted: after a number of the signals of a run, in the
// order of its history. The updates before the next signal may have been processed, too.
type Taken struct {
	RunID   string `json:"runId,omitempty"` // "": the run itself
	Signals int    `json:"signals"`
}

// Close is the optional input of [SignalClose].
type Close struct {
	Reason string `json:"reason,omitempty"` // of the SessionEndedEvent; default "closed"
	// InactiveSince keeps a session open that was active later, is answering or waits; zero: it is closed anyway.
	InactiveSince time.Time `json:"inactiveSince,omitzero"`
	// IsDeletion: a deletion ends the session, and deletes what arrives until the run ends.
	IsDeletion bool `json:"isDeletion,omitempty"`
}

// Scheduled is the input of [WorkflowSend].
type Scheduled struct {
	ContextName string          `json:"contextName"`
	Event       json.RawMessage `json:"event"` // one that clients may send; its clientEventId is replaced
}

// Sent is the optional second input of [UpdateAppend].
type Sent struct {
	// Expires is the time from which the update fails, before or after the workflow accepted it, unless its events are
	// recorded. The sender has sent them as a signal by then, which the workflow could record as well: it recognizes
	// repeated events among its newest only. Zero: never.
	Expires time.Time `json:"expires,omitzero"`
}

// IsExpired reports whether the update has expired.
func (s Sent) IsExpired(now time.Time) bool { return !s.Expires.IsZero() && !now.Before(s.Expires) }

// Appended is the result of [UpdateAppend].
type Appended struct {
	// EventIDs are in the order of the events. Duplicates by clientEventId have the id of the first.
	EventIDs []string `json:"eventIds"`
}

// Reserve is the input of [UpdateReserve]: 1 to [MaxReservations] reservations, which are decided in
// order.
type Reserve struct {
	Reservations []reducer.Reservation `json:"reservations"`
}

const MaxReservations = 100

// Reserved is the result of [UpdateReserve].
type Reserved struct {
	Day     string             `json:"day"`     // in UTC
	Answers []ReservationState `json:"answers"` // in the order of the reservations
}

type ReservationState struct {
	Granted bool         `json:"granted,omitempty"`
	Used    event.Amount `json:"used,omitzero"` // before the reservation
}

// Settle reports the actual usage of a reservation.
type Settle struct {
	Key  string       `json:"key"`
	Used event.Amount `json:"used,omitzero"`
	// Release removes a reservation that no attempt uses. A reservation that arrives after
	// this signal is denied.
	Release bool `json:"release,omitempty"`
}

// BudgetState is the result of [QueryBudget].
type BudgetState struct {
	Day      string       `json:"day,omitempty"`  // in UTC; "" before the first reservation
	Limit    event.Budget `json:"limit,omitzero"` // of the newest reservation
	Spent    event.Amount `json:"spent"`
	Reserved event.Amount `json:"reserved"` // by attempts that run or whose worker died
}

// Delivery is the result of [QueryDelivery]: the outcome of events that were sent.
type Delivery struct {
	// EventIDs maps clientEventIds to ids, among the newest [reducer.MaxRecent]; others are missing.
	EventIDs map[string]string `json:"eventIds"`
	// Pending: input is not in the log yet. If false, missing events were rejected, never arrived, or are
	// older than the newest [reducer.MaxRecent].
	Pending     bool   `json:"pending,omitempty"`
	LastEventID string `json:"lastEventId,omitempty"`
	Status      Status `json:"status"`
}

// DeliveryOf returns the result of [QueryDelivery].
func DeliveryOf(s reducer.Session, pending bool, clientEventIDs []string) Delivery {
	d := Delivery{EventIDs: map[string]string{}, Pending: pending, LastEventID: s.LastEventID(), Status: StatusOf(s)}
	for _, id := range clientEventIDs {
		if eventID, ok := s.Find(id); ok {
			d.EventIDs[id] = eventID
		}
	}
	return d
}
