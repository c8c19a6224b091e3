// Package activities contains the Temporal activities of contexts.
//
//	Generate  sends a request to a model and streams the answer
//	CallTool  calls a tool of the worker
//	Open      registers a run, and restores the session from the log
//	Archive   writes the log of a run to the archive
//	Deliver   calls a hook with the recorded events
//	Stop      sends a stop message to the worker that runs a request
//	Send      sends an event to a context, for schedules
//
// Workflows refer to them through a nil pointer:
//
//	var acts *activities.Activities
//	workflow.ExecuteActivity(ctx, acts.Generate, activities.GenerateInput{ContextName: "demo", RequestID: "demo:r0001"})
//
// The input of Generate contains no conversation: Generate reads it from the [SessionCache] of the
// process, or else queries the workflow. If the query fails, it reads the log. What a request adds to a
// history thus does not grow with the conversation.
//
// Guarantees:
//
//   - An attempt is sent to the provider once at most. The only exception: if the provider rejects a
//     request with provider state as malformed, it is sent once more without the state. Temporal
//     retries by the settings of the context; see [ModelError].
//   - A stopped attempt is a result with the text so far, not an error.
//   - A tool call is made at most once, unless its tool is idempotent or a reset repeats the call. A
//     failed call is a result.
//   - When a run continues as new, the attempt keeps running, and an activity of the next run
//     adopts it. If none does, it stops after two minutes.
//   - The package depends on neither a model library nor NATS: it declares [Models] and [Stream].
package activities
