// Package workflows implements the Temporal workflow of a context. Its loop receives input, applies
// it with [reducer.Step], records the resulting events as SideEffect markers, and performs the
// effects.
//
// Package worker/contexts registers it together with its interceptor, so this package has no example of its own.
//
// Guarantees:
//   - Signals and updates are processed in history order, which requires [Interceptor].
//   - A malformed signal becomes an InputRejectedEvent, and a malformed update returns an error.
//     Neither fails a workflow task.
//   - Events are recorded once, before their effects. The next run performs effects that remain.
//   - Generate receives a reference; the history contains no copy of the conversation.
//   - A replay fails if the code would record events with other ids or tags than the history contains.
//   - A run continues as new before it reaches a limit of the server. This decision depends on the
//     history, so it is made here; [reducer.Step] makes all others.
package workflows
