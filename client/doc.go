// Package client is the Go client of Chronicle: it sends events to contexts, reads and
// follows their logs, and creates, forks, verifies and closes them. The starter and the
// gateway are built on it.
//
//	c, err := client.Dial(ctx, client.Config{})
//	demo, err := c.Open("demo")
//	for e, err := range demo.Ask(ctx, event.New(event.UserMessage{Content: "Hello"})) {
//		// TextDelta while the model answers, then AssistantMessage, LLMRequestCompleted
//	}
//
// A context is created by the first event that is sent to it; [Client.Open] makes no
// request. Reading and following a log requires no worker.
//
// # Guarantees
//
//   - When [Context.Send] returns without an error, Temporal has stored the events, and a
//     worker records them in order. Only a termination or reset of the run loses them.
//   - Events are deduplicated by ClientEventID, so a Send with an unknown outcome can be
//     repeated.
//   - [Context.Follow] yields each recorded event once and in order, across runs and
//     sessions. Deltas are interleaved and are lost when NATS is unavailable.
//   - A [Schedule] sends each of its messages once, even if workers are killed.
//   - Before each change, the client compares its blob store with the recorded one of the
//     workers, and fails with ErrOtherStore if they differ.
//
// # Errors
//
// Errors name the operation and the context and wrap one of the Err variables, or an
// [*event.FieldError] for invalid events. ErrUnreachable, ErrNoWorker and ErrFull are
// temporary: the same call can be repeated.
package client
