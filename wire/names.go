package wire

import (
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
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
	// SignalRequestStarted carries a [RequestStarted] from Generate to its workflow.
	// Generate sends it during the attempt, never after its result. Clients must not
	// send it.
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
	// QueryStopCheck returns a [StopCheck]. Its name cannot change, because Generate may
	// query a worker of an older version.
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

func WorkflowID(contextName string) string { return workflowIDPrefix + contextName }

// ContextName is the inverse of [WorkflowID]; ok is false for any other workflow id.
func ContextName(workflowID string) (name string, ok bool) {
	if len(workflowID) <= len(workflowIDPrefix) || workflowID[:len(workflowIDPrefix)] != workflowIDPrefix {
		return "", false
	}
	name = workflowID[len(workflowIDPrefix):]
	return name, event.ValidateContextName(name) == nil
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
