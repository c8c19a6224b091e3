package wire

import (
	"crypto/sha256"
	"fmt"
	"net/url"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Names of the protocol.
const (
	WorkflowType = "Context"
	// WorkflowSend is the type of the workflows that schedules start. Its input is a [Scheduled]. The
	// workflow id is the idempotency key: if a workflow is started again with the same id, the context drops
	// the event as a duplicate.
	WorkflowSend = "Send"
	// WorkflowBudget is the type of the workflows that keep the daily budgets of labels ([BudgetID]).
	// Its input is the [reducer.Ledger] of the run before; none at first.
	WorkflowBudget = "Budget"
	// WorkflowDelete is the type of the workflows that delete a context ([DeletionID]). Its input is a [Delete], its
	// result a [Deletion]. If it fails, the Deletion so far is in the details of its error.
	WorkflowDelete = "Delete"
	TaskQueue      = "contexts" // default task queue of contexts
	// ActivityLoad is the type of the activities that read the oldest signal which the blob store keeps.
	ActivityLoad = "Load"

	SignalEvent     = "event"     // one event object or an array of them
	SignalInterrupt = "interrupt" // stops the running answer
	SignalClose     = "close"     // ends the session; its input may be a [Close]

	// UpdateAppend takes the input of [SignalEvent], up to [MaxAppendBytes], and optionally a [Sent]. It returns an
	// [Appended] once it is in the log. Invalid input fails with the error type [ErrorInvalid] and
	// does not enter the history. Input that the context rejects fails with [ErrorRejected], whose
	// details contain the id of the recorded InputRejectedEvent.
	UpdateAppend  = "append"
	ErrorInvalid  = "Invalid"
	ErrorRejected = "Refused"
	// ErrorExpired is the type of the error of an append after [Sent.Expires].
	ErrorExpired = "Expired"
	// ErrorDeleting: a deletion ends the run, which takes no more input. The next run takes it.
	ErrorDeleting = "Deleting"

	UpdateReserve = "reserve" // of a [WorkflowBudget]; takes a [Reserve], returns a [Reserved]
	SignalSettle  = "settle"  // of a [WorkflowBudget]; carries a [Settle]
	QueryBudget   = "budget"  // of a [WorkflowBudget]; returns a [BudgetState]

	QueryDeletion = "deletion" // of a [WorkflowDelete]; returns the [Deletion] so far

	QueryState = "state" // returns a [State], for people and tools
	// QuerySnapshot takes the id of a request and the number of its running attempt, and returns the
	// [reducer.Session] that is the input of the attempt. It fails unless the session [Fits].
	QuerySnapshot = "snapshot"
	QueryDelivery = "delivery" // takes an array of clientEventIds, returns a [Delivery]
)

// Search attributes, which workers register on start. Contexts also run without them.
const (
	AttributeStatus = "ContextStatus" // Keyword, a [Status]
	AttributeTurns  = "ContextTurns"  // Int, the number of requests that ended
	AttributeModel  = "ContextModel"  // Keyword, the model of the newest attempt
	AttributeTitle  = "ContextTitle"  // Keyword, see [reducer.Details]
	AttributeLabels = "ContextLabels" // KeywordList of NAME=VALUE, see [reducer.Details]
)

// MemoStore is the key of the blob store's identity in workflow memos and namespace data.
const MemoStore = "chronicle-store"

// MemoPreviousRun is the key of the run before the one that a client started, in the memo of the latter. Temporal's
// history does not name it, and a run that no worker opened is in no archive.
const MemoPreviousRun = "chronicle-previous-run"

// MemoRoot is the key of the context from which a fork descends, in the memos of its runs. Lists read it.
const MemoRoot = "chronicle-root"

// MemoForks is the key of the [Forks] of a deletion in its memo; "" for one that requires inactivity.
const MemoForks = "chronicle-forks"

const workflowIDPrefix = "context:"

// WorkflowID returns the id of a context's workflow: context:demo, or context:acme/demo for the tenant acme.
func WorkflowID(contextName string) string { return workflowIDPrefix + contextName }

// ContextName is the inverse of [WorkflowID]; ok is false for any other workflow id.
func ContextName(workflowID string) (name string, ok bool) {
	if len(workflowID) <= len(workflowIDPrefix) || workflowID[:len(workflowIDPrefix)] != workflowIDPrefix {
		return "", false
	}
	name = workflowID[len(workflowIDPrefix):]
	return name, event.ValidateContextName(name) == nil
}

// OwnerOf returns the context whose content a workflow has: a context, a scheduled message, an evaluation or an offer. ok is
// false for any other workflow id.
func OwnerOf(workflowID string) (contextName string, ok bool) {
	if contextName, ok = ContextName(workflowID); ok {
		return contextName, true
	}
	if contextName, _, ok = ParseScheduleID(workflowID); ok {
		return contextName, true
	}
	for _, prefix := range []string{evaluationPrefix, offerPrefix} {
		if rest, isOne := strings.CutPrefix(workflowID, prefix); isOne {
			contextName, _, ok = strings.Cut(rest, ":")
			return contextName, ok && event.ValidateContextName(contextName) == nil
		}
	}
	return "", false
}

// DeletionID is the workflow id of the deletion of a context: delete:demo.
func DeletionID(contextName string) string { return "delete:" + contextName }

const budgetPrefix = "budget:"

// BudgetID is the workflow id of the budget of a label and a value, like "budget:team=support" or
// "budget:acme/team=support". Tenants share no budget; that of the label [event.LabelTenant] has the tenant as value.
func BudgetID(tenant, label, value string) string {
	if label == event.LabelTenant {
		tenant = ""
	}
	id := budgetPrefix + event.JoinTenant(tenant, url.QueryEscape(label)) + "=" + url.QueryEscape(value)
	if len(id) > maxBudgetID {
		return fmt.Sprintf("%s%x", budgetPrefix, sha256.Sum256([]byte(id)))
	}
	return id
}

const maxBudgetID = 500 // the server accepts 1,000 bytes

const schedulePrefix = "send:"

// ScheduleID is the Temporal id of a schedule. Its workflow ids are this id, "-" and the scheduled time.
func ScheduleID(contextName, id string) string { return schedulePrefix + contextName + "/" + id }

// ParseScheduleID is the inverse of [ScheduleID]; ok is false for any other id.
func ParseScheduleID(scheduleID string) (contextName, id string, ok bool) {
	names, ok := strings.CutPrefix(scheduleID, schedulePrefix)
	if !ok {
		return "", "", false
	}
	i := strings.LastIndexByte(names, '/')
	if i < 0 {
		return "", "", false
	}
	contextName, id = names[:i], names[i+1:]
	return contextName, id, event.ValidateContextName(contextName) == nil && id != ""
}

// ScheduledEventID is the client event id of the message that a [WorkflowSend] sends, like
// "schedule:daily-2026-01-02T09:00:00Z"; a long one is hashed.
func ScheduledEventID(contextName, workflowID string) string {
	id := scheduledPrefix + strings.TrimPrefix(workflowID, ScheduleID(contextName, ""))
	if len(id) > event.MaxClientEventID {
		return fmt.Sprintf("%s%x", scheduledPrefix, sha256.Sum256([]byte(workflowID)))
	}
	return id
}

const scheduledPrefix = "schedule:"
