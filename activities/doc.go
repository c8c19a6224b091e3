// Package activities contains the Temporal activities of contexts.
//
//	Generate  sends an attempt of a request to a model and streams the answer
//	CallTool  calls a tool of the worker
//	Open      registers a run, and restores the session from the log
//	Archive   writes the log of a run to the archive
//	Deliver   calls a hook with the recorded events
//	Stop      sends a stop message to the worker that runs an attempt
//	Send      sends an event to a context, for schedules
//	Evaluate  sends the request of a recorded answer again, and records nothing
//	CheckTools looks for the tools that a setting names
//	Load      reads a large input from the blob store
//	Recover   returns the input that a terminated run accepted and did not record
//
// The activities of a deletion are EndSession, ListForks, DetachFork, DeleteRuns and DeleteStored.
//
// Package worker/contexts registers them, so this package has no example of its own. Workflows refer to them through a nil pointer:
//
//	var acts *activities.Activities
//	workflow.ExecuteActivity(ctx, acts.Generate, activities.AttemptInput{ContextName: "demo", StartAttempt: start})
//
// The input of Generate contains no conversation, but names the event with which it ends. Generate takes that
// session from the [Sessions] of the process, or else queries the workflow. If the query fails, it reads the log.
// What a request adds to a history thus does not grow with the conversation.
//
// Guarantees:
//
//   - One activity is one attempt, and nothing of it outlives the activity. What happens after it was sent is its
//     result: the answer, a failure, or the text so far of a stopped attempt. Temporal repeats an activity only if
//     the attempt was not sent.
//   - An attempt is sent to the provider once at most. The only exception: if the provider rejects a
//     request with provider state as malformed, it is sent once more without the state.
//   - A tool call is made at most once, unless its tool is idempotent or a reset repeats the call. A
//     failed call is a result.
//   - The package depends on no model library: it declares [Models].
package activities
