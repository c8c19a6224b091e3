// Package client is the Go client of Chronicle: it sends events to contexts, follows their logs,
// and creates, forks, branches, verifies and closes contexts.
//
//	c, err := client.Dial(ctx, client.Config{})
//	demo, err := c.Open("demo")
//	for e, err := range demo.Ask(ctx, event.New(event.UserMessage{Content: "Hello"})) {
//		// TextDelta while the model answers, then AssistantMessage, LLMRequestCompleted
//	}
//
// The first event that is sent to a context creates it. Reading a log requires no worker. [Client.Tenant] returns a client
// that reaches the contexts of one tenant only.
//
// # Guarantees
//
//   - When [Context.Send] returns nil, Temporal has stored the events, and a worker records them in
//     order, the next run if theirs is terminated. [Context.Send] says which resets and terminations
//     lose them.
//   - Events are deduplicated by ClientEventID: a Send with an unknown outcome can be repeated.
//   - [Context.Follow] yields each recorded event once and in order, across runs and sessions.
//     Deltas are interleaved, and are lost while NATS is unavailable.
//   - A [Schedule] sends no message twice, even if workers are killed. [Context.Schedule] says which
//     messages it skips.
//   - A call that changes a context fails with ErrOtherStore if the blob store of the client is not
//     that of the workers.
//
// # Errors
//
// Test errors for the Err variables, [*TurnError], [*event.FieldError], [*ScheduleError] and [*GapError].
// After ErrUnreachable, ErrBusy, ErrNoWorker and ErrFull, the same call can be repeated.
package client
