// Package workflows implements the Temporal workflow of a context. Its loop receives input, applies
// it with [reducer.Step], records the resulting events as SideEffect markers, and performs the
// effects.
//
// A worker registers the workflow and its interceptor:
//
//	w := worker.New(client, wire.TaskQueue, worker.Options{
//		Interceptors: []interceptor.WorkerInterceptor{workflows.Interceptor()},
//	})
//	w.RegisterWorkflowWithOptions(workflows.New(workflows.Options{}), workflow.RegisterOptions{Name: wire.WorkflowType})
//
// Guarantees:
//   - Signals and updates are processed in history order, which requires [Interceptor].
//   - Malformed input becomes an InputRejectedEvent. It never fails a workflow task.
//   - Events are recorded once, before their effects are performed, possibly by the next run.
//   - Generate receives a reference; the history contains no copy of the conversation.
//   - A replay fails if the code would record other events than the history contains.
//   - A run continues as new before it reaches a limit of the server. These thresholds depend on
//     the history. [reducer.Step] makes all other decisions.
package workflows
