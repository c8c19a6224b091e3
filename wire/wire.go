// Package wire defines the interface between Chronicle and Temporal: names, limits and
// JSON payloads. Any change here can break running contexts and deployed clients.
//
// The `temporal` command and any SDK reach a context "demo" with:
//
//	workflow id   context:demo
//	signal        event      one event object, or an array of them
//	signal        interrupt  no input
//	signal        close      no input, or {"reason":"…"}
//	update        append     the input of signal event; returns an [Appended]
//	query         state      a [State]
//
// The log is in the history: each marker named "SideEffect" carries a [Record].
package wire

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Names known to Temporal.
const (
	// WorkflowType is the workflow type of a context.
	WorkflowType = "Context"
	// TaskQueue is the default task queue of contexts.
	TaskQueue = "contexts"

	// SignalEvent delivers input: one event object or an array of them.
	SignalEvent = "event"
	// SignalInterrupt stops the running answer.
	SignalInterrupt = "interrupt"
	// SignalClose ends the session; its input may be a [Close].
	SignalClose = "close"
	// SignalRequestStarted carries a [RequestStarted] from Generate to its workflow. It
	// is not sent after the result of Generate, nor by clients.
	SignalRequestStarted = "request-started"

	// UpdateAppend takes the input of [SignalEvent], up to [MaxAppendBytes], and returns
	// an [Appended] once it is in the log. Invalid input fails with the error type
	// [ErrorInvalid] and does not enter the history. Input that this context rejects is
	// recorded as an InputRejectedEvent and fails with [ErrorRefused].
	UpdateAppend = "append"
	// ErrorInvalid and ErrorRefused are types of application errors.
	ErrorInvalid = "Invalid"
	// The details of ErrorRefused hold the id of the InputRejectedEvent.
	ErrorRefused = "Refused"

	// QueryState returns a [State], for people and tools.
	QueryState = "state"
	// QuerySnapshot returns the [reducer.Session] that Generate needs, and fails if it is
	// too large, see [Fits].
	QuerySnapshot = "snapshot"
	// QueryStopCheck returns a [StopCheck].
	QueryStopCheck = "wish"
	// QueryDelivery takes an array of clientEventIds and returns a [Delivery].
	QueryDelivery = "delivery"
)

// Search attributes. Workers register them on start. Without permission to do so,
// contexts run without them.
const (
	// AttributeStatus (Keyword) is a [Status].
	AttributeStatus = "ContextStatus"
	// AttributeTurns (Int) is the number of requests that ended.
	AttributeTurns = "ContextTurns"
	// AttributeModel (Keyword) is the model of the newest request.
	AttributeModel = "ContextModel"
)

// MemoStore is the key of the identity of the blob store, in the memo of a workflow and
// in the data of a namespace.
const MemoStore = "chronicle-store"

const workflowIDPrefix = "context:"

// WorkflowID is the workflow id of a context.
func WorkflowID(contextName string) string { return workflowIDPrefix + contextName }

// ContextName is the inverse of [WorkflowID]; ok is false for any other workflow id.
func ContextName(workflowID string) (name string, ok bool) {
	if len(workflowID) <= len(workflowIDPrefix) || workflowID[:len(workflowIDPrefix)] != workflowIDPrefix {
		return "", false
	}
	name = workflowID[len(workflowIDPrefix):]
	return name, event.ValidateContextName(name) == nil
}

// Status is the status of a context.
type Status string

// The statuses of a context.
const (
	StatusIdle      Status = "idle"
	StatusAnswering Status = "answering"
	StatusClosed    Status = "closed"
)

// StatusOf is the status of a session.
func StatusOf(s reducer.Session) Status {
	switch {
	case s.Ended:
		return StatusClosed
	case s.Request != nil:
		return StatusAnswering
	default:
		return StatusIdle
	}
}

// MarkerName is the name of history markers that carry a [Record].
const MarkerName = "SideEffect"

// MarkerData is the key of the payload in such a marker.
const MarkerData = "data"

// Record is the payload of a marker: events in order.
type Record struct {
	Events []event.Event `json:"events"`
}

// Limits of a history. The server rejects payloads above 2 MB (512 KiB with
// devserver.Tuning) and messages above 4 MB. Payloads in the blob store count as
// references.
const (
	// MaxEventBytes is the maximum JSON size of one event. It leaves room for a file of
	// 1 MiB in base64.
	MaxEventBytes = 1_500_000
	// MaxInputBytes is the maximum JSON size of one input of one or more events.
	MaxInputBytes = 1_900_000
	// MaxStoredBytes replaces both limits if clients and workers have a blob store, and
	// the history a reference. A workflow task reads and writes that much in a fraction
	// of its timeout of ten seconds.
	MaxStoredBytes = 16_000_000
	// MaxAppendBytes is the maximum JSON size of one [UpdateAppend]; larger input is sent
	// as a signal. A workflow task carries up to ten updates and a copy of each in its
	// completion. Exceeding the message limit there would block the run.
	MaxAppendBytes = 64 << 10
	// MaxRecordBytes is the approximate maximum size of one [Record].
	MaxRecordBytes = 1 << 20
)

// Close is the input of [SignalClose].
type Close struct {
	// Reason goes into the SessionEndedEvent; default "closed".
	Reason string `json:"reason,omitempty"`
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
}

// WorkerQueue is the task queue that a single worker process polls. After continue-as-new,
// a context uses it to reach an answer that the process is generating.
func WorkerQueue(taskQueue, process string) string { return taskQueue + "/" + process }

// IsWorkerQueue reports whether a name is a [WorkerQueue] of a task queue.
func IsWorkerQueue(name, taskQueue string) bool {
	return len(name) <= MaxWorkerQueue && strings.HasPrefix(name, taskQueue+"/")
}

// MaxWorkerQueue is the maximum length of a [WorkerQueue].
const MaxWorkerQueue = 1000

// State is the result of [QueryState]. It contains references to keys but no secrets.
type State struct {
	ContextName string `json:"contextName"`
	Status      Status `json:"status"`
	EventCount  int    `json:"eventCount"`
	LastEventID string `json:"lastEventId,omitempty"`
	// Turns is the number of requests that ended.
	Turns int `json:"turns"`
	// Model is the model of the newest request; empty before the first.
	Model   string           `json:"model,omitempty"`
	Request *reducer.Request `json:"request,omitempty"`
	Config  reducer.Config   `json:"config"`
	// MessageCount is the number of messages. Messages holds the newest of them, up to
	// [MaxStateBytes], without the bytes of attachments.
	MessageCount       int                  `json:"messageCount"`
	Messages           []reducer.Message    `json:"messages"`
	PendingAttachments []reducer.Attachment `json:"pendingAttachments,omitempty"`
	// UpdatedAt is the time of the last change; zero before the first event.
	UpdatedAt time.Time `json:"updatedAt,omitzero"`
}

// StateOf is the public state of a session.
func StateOf(s reducer.Session, updatedAt time.Time) State {
	messages := []reducer.Message{}
	size := 0
	for _, m := range slices.Backward(s.Reduced.Messages) {
		m.Attachments = withoutData(m.Attachments)
		data, err := json.Marshal(m)
		if size += len(data); err != nil || size > MaxStateBytes {
			break
		}
		messages = append(messages, m)
	}
	slices.Reverse(messages)
	return State{
		ContextName:        s.ContextName,
		Status:             StatusOf(s),
		EventCount:         s.EventCount,
		LastEventID:        s.LastEventID(),
		Turns:              s.Turns,
		Model:              s.Model,
		Request:            s.Request,
		Config:             s.Reduced.Config,
		MessageCount:       len(s.Reduced.Messages),
		Messages:           messages,
		PendingAttachments: withoutData(s.Reduced.PendingAttachments),
		UpdatedAt:          updatedAt,
	}
}

// MaxStateBytes bounds the JSON of the messages in a [State]. It keeps the result below
// the size at which payloads go to the blob store, so clients without a store can read
// it.
const MaxStateBytes = 48 << 10

// sizeOf is the approximate size of a message in bytes.
func sizeOf(m reducer.Message) int {
	size := 100 + len(m.Content)
	for _, c := range m.ToolCalls {
		size += 100 + len(c.Arguments)
	}
	for _, a := range m.Attachments {
		size += 300 + len(a.Source.Data)*4/3 + len(a.Source.URL)
	}
	return size
}

// MaxSnapshotBytes is the approximate maximum size of a session in the result of
// [QuerySnapshot]. A larger session is read from the log.
const MaxSnapshotBytes = 1 << 20

// Fits reports whether a session fits into the result of [QuerySnapshot].
func Fits(s reducer.Session) bool {
	size := 0
	for _, m := range s.Reduced.Messages {
		if size += sizeOf(m); size > MaxSnapshotBytes {
			return false
		}
	}
	return true
}

// StopCheck is the result of [QueryStopCheck]: whether a running request must stop.
type StopCheck struct {
	LastEventID string `json:"lastEventId"`
	// RequestID is the running request, or "".
	RequestID string `json:"requestId,omitempty"`
	// Stop is why the request must stop, or "". Trigger is the newest event that
	// requires an answer.
	Stop    event.Reason `json:"stop,omitempty"`
	Trigger string       `json:"trigger,omitempty"`
}

// StopCheckOf is the result of [QueryStopCheck] for a session.
func StopCheckOf(s reducer.Session) StopCheck {
	c := StopCheck{LastEventID: s.LastEventID(), Trigger: s.Trigger}
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
	Pending bool `json:"pending,omitempty"`
	// LastEventID is the newest event of the log.
	LastEventID string `json:"lastEventId,omitempty"`
	Status      Status `json:"status"`
}

// DeliveryOf is the result of [QueryDelivery] for a session.
func DeliveryOf(s reducer.Session, pending bool, clientEventIDs []string) Delivery {
	d := Delivery{EventIDs: map[string]string{}, Pending: pending, LastEventID: s.LastEventID(), Status: StatusOf(s)}
	for _, id := range clientEventIDs {
		if eventID, ok := s.Find(id); ok {
			d.EventIDs[id] = eventID
		}
	}
	return d
}

func withoutData(attachments []reducer.Attachment) []reducer.Attachment {
	var out []reducer.Attachment
	for _, a := range attachments {
		a.Source.Data = nil
		if a.Source.Type == event.SourceURL {
			a.Source.URL = a.Source.String() // truncates a data URL
		}
		out = append(out, a)
	}
	return out
}
