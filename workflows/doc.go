// Package workflows implements the Temporal workflow of a context. Each iteration of its
// loop receives input, applies it with [reducer.Step], records the resulting events as
// SideEffect markers, and performs the resulting effects.
//
// A worker registers the workflow and its interceptor:
//
//	w := worker.New(client, wire.TaskQueue, worker.Options{
//		Interceptors: []interceptor.WorkerInterceptor{workflows.Interceptor()},
//	})
//	w.RegisterWorkflowWithOptions(workflows.New(workflows.Options{}), workflow.RegisterOptions{Name: wire.WorkflowType})
//
// Guarantees:
//   - Signals and updates are processed in history order. [Interceptor] preserves it
//     across signal names.
//   - Malformed input becomes an InputRejectedEvent. It never fails a workflow task.
//   - Events are recorded once, before their effects are performed, possibly by the next run.
//   - The conversation is not copied into the history: Generate receives a reference.
//   - A replay fails if the code would record other events than the history contains.
//   - A run continues as new before it reaches a limit of the server. Those thresholds
//     depend on the history, which the reducer does not know, so they are part of this
//     package. All other decisions are made by [reducer.Step].
package workflows
