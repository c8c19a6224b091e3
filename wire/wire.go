// Package wire holds what Chronicle and the outside agree on: the names by
// which a context is known to Temporal and the JSON that crosses it. Changing
// anything here breaks contexts that are running or clients that are deployed.
//
// For a context "demo" the `temporal` command and any SDK reach it like this:
//
//	workflow id   context:demo
//	signal        event      one event object, or an array of them
//	signal        interrupt  no input
//	signal        close      no input, or {"reason":"…"}
//	update        append     what the signal event takes; answers with an [Appended]
//	query         state      a [State]
//
// The history of a run holds the log: each marker named "SideEffect" carries a
// [Record].
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
	// WorkflowType is the type of the workflow of a context.
	WorkflowType = "Context"
	// TaskQueue is where workers wait for contexts, unless they are told
	// another one.
	TaskQueue = "contexts"

	// SignalEvent delivers input: one event object or an array of them.
	SignalEvent = "event"
	// SignalInterrupt stops the running answer.
	SignalInterrupt = "interrupt"
	// SignalClose ends the session; its input may be a [Close].
	SignalClose = "close"
	// SignalRequestStarted is sent by Generate to its own workflow, with a
	// [RequestStarted], unless its result comes first. Clients do not send it.
	SignalRequestStarted = "request-started"

	// UpdateAppend takes what [SignalEvent] takes, up to [MaxAppendBytes], and answers with an [Appended]
	// when it is in the log. What no context could take is refused with the error
	// type [ErrorInvalid] before it enters the history; what this one does not
	// take now is recorded as an InputRejectedEvent, and the error type is
	// [ErrorRefused].
	UpdateAppend = "append"
	// ErrorInvalid and ErrorRefused are types of application errors.
	ErrorInvalid = "Invalid"
	// The details of ErrorRefused are the id of the InputRejectedEvent.
	ErrorRefused = "Refused"

	// QueryState answers with a [State], for people and tools.
	QueryState = "state"
	// QuerySnapshot answers with the [reducer.Session] that Generate needs, or
	// fails when that is too large, see [Fits].
	QuerySnapshot = "snapshot"
	// QueryWish answers with a [Wish], for a request under way.
	QueryWish = "wish"
	// QueryDelivery takes an array of clientEventIds and answers with a [Delivery].
	QueryDelivery = "delivery"
)

// Search attributes. Workers register them at their start; where they may not,
// contexts run without.
const (
	// AttributeStatus (Keyword) is a [Status].
	AttributeStatus = "ContextStatus"
	// AttributeTurns (Int) is the number of requests that ended.
	AttributeTurns = "ContextTurns"
	// AttributeModel (Keyword) is the model of the newest request.
	AttributeModel = "ContextModel"
)

// MemoStore is the memo of a workflow, and the key in the data of a namespace,
// with the identity of the blob store.
const MemoStore = "chronicle-store"

const workflowIDPrefix = "context:"

// WorkflowID is the workflow id of a context.
func WorkflowID(contextName string) string { return workflowIDPrefix + contextName }

// ContextName is the name of the context with a workflow id; ok is false when
// the id is of no context.
func ContextName(workflowID string) (name string, ok bool) {
	if len(workflowID) <= len(workflowIDPrefix) || workflowID[:len(workflowIDPrefix)] != workflowIDPrefix {
		return "", false
	}
	name = workflowID[len(workflowIDPrefix):]
	return name, event.ValidateContextName(name) == nil
}

// Status says what a context is doing.
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

// MarkerName is the name of the history markers that carry a [Record].
const MarkerName = "SideEffect"

// MarkerData is the key of the payload in such a marker.
const MarkerData = "data"

// Record is what a marker in the history holds: events, in order.
type Record struct {
	Events []event.Event `json:"events"`
}

// Limits of what a history can carry. The server refuses a payload of 2 MB and
// a message of 4 MB, each with references in place of what is in a blob store.
const (
	// MaxEventBytes is the longest JSON of a single event. Longer input is
	// refused. It leaves room for a file of 1 MiB in base64.
	MaxEventBytes = 1_500_000
	// MaxInputBytes is the longest JSON of one input, which may be several
	// events.
	MaxInputBytes = 1_900_000
	// MaxStoredBytes is the longest JSON of an event and of an input where clients
	// and workers have a blob store: the history holds a reference then. A workflow
	// task reads and writes it in a fraction of its ten seconds.
	MaxStoredBytes = 16_000_000
	// MaxAppendBytes is the longest JSON of one [UpdateAppend]; what is longer
	// comes as a signal. A workflow task carries ten updates, and answers with a
	// copy of each: when that is more than a message may have, the run is stuck.
	MaxAppendBytes = 64 << 10
	// MaxRecordBytes is about how much one [Record] holds.
	MaxRecordBytes = 1 << 20
)

// Close is the input of [SignalClose].
type Close struct {
	// Reason goes into the SessionEndedEvent; empty means "closed".
	Reason string `json:"reason,omitempty"`
}

// Appended is the answer to [UpdateAppend].
type Appended struct {
	// EventIDs are the ids in the log, in the order of the events. That of an
	// event that came before, by its clientEventId, is the first one's.
	EventIDs []string `json:"eventIds"`
}

// RequestStarted says that Generate sent an attempt of a request.
type RequestStarted struct {
	RequestID  string `json:"requestId"`
	Attempt    int    `json:"attempt"`
	Through    string `json:"throughEventId"`
	ProviderID string `json:"providerId"`
	Model      string `json:"model"`
	// Worker is the task queue of the process that makes the request, see
	// [WorkerQueue]; "" when it has none.
	Worker string `json:"worker,omitempty"`
}

// WorkerQueue is the task queue that only one worker process polls. The next run
// of a context reaches an answer there that its process is making.
func WorkerQueue(taskQueue, process string) string { return taskQueue + "/" + process }

// IsWorkerQueue reports whether a name is that of a [WorkerQueue] of a task queue.
func IsWorkerQueue(name, taskQueue string) bool {
	return len(name) <= MaxWorkerQueue && strings.HasPrefix(name, taskQueue+"/")
}

// MaxWorkerQueue bounds the length of the name of a [WorkerQueue].
const MaxWorkerQueue = 1000

// State is the answer to [QueryState]. It holds no secret: keys are only ever
// referred to.
type State struct {
	ContextName string `json:"contextName"`
	Status      Status `json:"status"`
	// EventCount is the number of events in the log.
	EventCount  int    `json:"eventCount"`
	LastEventID string `json:"lastEventId,omitempty"`
	// Turns is the number of requests that ended.
	Turns int `json:"turns"`
	// Model is the model of the newest request; empty before the first.
	Model   string           `json:"model,omitempty"`
	Request *reducer.Request `json:"request,omitempty"`
	Config  reducer.Config   `json:"config"`
	// MessageCount is the number of messages, of which Messages are the newest:
	// as many as come to [MaxStateBytes]. The bytes of attachments are left out.
	MessageCount       int                  `json:"messageCount"`
	Messages           []reducer.Message    `json:"messages"`
	PendingAttachments []reducer.Attachment `json:"pendingAttachments,omitempty"`
	// UpdatedAt is when the state was last changed; zero before the first event.
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

// MaxStateBytes is how much JSON of messages a [State] holds. The whole answer
// stays below the size from which payloads go into the blob store, so that
// clients without a store can read it.
const MaxStateBytes = 48 << 10

// sizeOf is about how many bytes a message takes.
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

// MaxSnapshotBytes is about how large a session may be that [QuerySnapshot]
// answers with. A larger one is read from the log.
const MaxSnapshotBytes = 1 << 20

// Fits reports whether a session fits into the answer to [QuerySnapshot].
func Fits(s reducer.Session) bool {
	size := 0
	for _, m := range s.Reduced.Messages {
		if size += sizeOf(m); size > MaxSnapshotBytes {
			return false
		}
	}
	return true
}

// Wish is the answer to [QueryWish]: what a session wants of its request.
type Wish struct {
	LastEventID string `json:"lastEventId"`
	// RequestID is the running request; empty when there is none.
	RequestID string `json:"requestId,omitempty"`
	// Stop is why the request is to stop; empty when it is not. Trigger is the
	// newest event that wants an answer.
	Stop    event.Reason `json:"stop,omitempty"`
	Trigger string       `json:"trigger,omitempty"`
}

// WishOf is what a session wants of its request.
func WishOf(s reducer.Session) Wish {
	w := Wish{LastEventID: s.LastEventID(), Trigger: s.Trigger}
	if s.Request != nil {
		w.RequestID, w.Stop = s.Request.ID, s.Request.Stop
	}
	return w
}

// Delivery is the answer to [QueryDelivery]: the outcome of events that were sent.
type Delivery struct {
	// EventIDs are the ids in the log of those events that are in it, by their
	// clientEventIds. Older events than the newest [reducer.MaxRecent] are missing.
	EventIDs map[string]string `json:"eventIds"`
	// Pending says that the run has input that is not in the log yet. If it is
	// false, a missing event was rejected or never reached the run.
	Pending bool `json:"pending,omitempty"`
	// LastEventID is the newest event of the log.
	LastEventID string `json:"lastEventId,omitempty"`
	Status      Status `json:"status"`
}

// DeliveryOf is the outcome of events that were sent to a session.
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
			a.Source.URL = a.Source.String() // a data URL holds the bytes
		}
		out = append(out, a)
	}
	return out
}
