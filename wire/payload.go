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

type Record struct {
	Events []event.Event `json:"events"`
}

type Close struct {
	// Reason goes into the SessionEndedEvent; default "closed".
	Reason string `json:"reason,omitempty"`
}

// Scheduled is the input of [WorkflowSend].
type Scheduled struct {
	ContextName string `json:"contextName"`
	// Event is one event that clients may send. Its clientEventId is replaced.
	Event json.RawMessage `json:"event"`
}

// Appended is the result of [UpdateAppend].
type Appended struct {
	// EventIDs are the ids in the log, in the order of the events. A duplicate by
	// clientEventId has the id of the first.
	EventIDs []string `json:"eventIds"`
}

// RequestStarted reports that Generate sent an attempt of a request.
type RequestStarted struct {
	RequestID  string `json:"requestId"`
	Attempt    int    `json:"attempt"`
	Through    string `json:"throughEventId"`
	ProviderID string `json:"providerId"`
	Model      string `json:"model"`
	// Worker is the [WorkerQueue] of the process that makes the request, or "".
	Worker string `json:"worker,omitempty"`
	// Ended is set if the attempt failed and another one follows.
	Ended *AttemptEnd `json:"ended,omitempty"`
	// Lost is an earlier attempt that did not report its end, because its worker died.
	Lost *LostAttempt `json:"lost,omitempty"`
}

type AttemptEnd struct {
	Kind       event.FailureKind `json:"kind,omitempty"`
	Retryable  bool              `json:"retryable,omitempty"`
	Error      string            `json:"error,omitempty"` // redacted
	DurationMs int64             `json:"durationMs,omitempty"`
	event.Usage
}

// LostAttempt describes an attempt by its last heartbeat.
type LostAttempt struct {
	Attempt    int    `json:"attempt"`
	Through    string `json:"throughEventId,omitempty"`
	ProviderID string `json:"providerId,omitempty"`
	Model      string `json:"model,omitempty"`
	event.Usage
}

// StopCheck is the result of [QueryStopCheck]: whether a running request must stop.
type StopCheck struct {
	LastEventID string `json:"lastEventId"`
	// LastEventAt is the time at which that event was recorded; zero if unknown.
	LastEventAt time.Time `json:"lastEventAt,omitzero"`
	// RequestID is the running request, or "".
	RequestID string `json:"requestId,omitempty"`
	// Stop is why the request must stop, or "". Trigger is the newest event that
	// requires an answer.
	Stop    event.Reason `json:"stop,omitempty"`
	Trigger string       `json:"trigger,omitempty"`
}

func StopCheckOf(s reducer.Session) StopCheck {
	c := StopCheck{LastEventID: s.LastEventID(), LastEventAt: s.LastEventAt, Trigger: s.Trigger}
	if s.Request != nil {
		c.RequestID, c.Stop = s.Request.ID, s.Request.Stop
	}
	return c
}

// Delivery is the result of [QueryDelivery]: the outcome of events that were sent.
type Delivery struct {
	// EventIDs are the ids in the log, by clientEventId, among the newest
	// [reducer.MaxRecent] events. Events that are not in the log are missing.
	EventIDs map[string]string `json:"eventIds"`
	// Pending means that the run has input that is not in the log yet. If it is false, a
	// missing event was rejected or never reached the run.
	Pending     bool   `json:"pending,omitempty"`
	LastEventID string `json:"lastEventId,omitempty"`
	Status      Status `json:"status"`
}

func DeliveryOf(s reducer.Session, pending bool, clientEventIDs []string) Delivery {
	d := Delivery{EventIDs: map[string]string{}, Pending: pending, LastEventID: s.LastEventID(), Status: StatusOf(s)}
	for _, id := range clientEventIDs {
		if eventID, ok := s.Find(id); ok {
			d.EventIDs[id] = eventID
		}
	}
	return d
}
