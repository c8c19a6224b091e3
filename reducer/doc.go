// Package reducer contains the pure core of Chronicle. It has no clock, randomness or I/O
// and does not know Temporal: times and ids are inputs, and actions are returned as data.
//
// It has two folds. [Reduce] folds the events of a context into a [ReducedContext], the
// messages and settings for a model:
//
//	r := reducer.Reduce(reducer.Initial(), events...)
//	r.Messages      // the conversation
//	r.Config        // provider, retries, timeouts
//
// [Step] is the state machine of a session. It takes one [Input], such as a received event
// or the result of a request, and returns the new [Session] and a list of [Effect] values
// for the workflow to perform:
//
//	s, effects := reducer.Step(s, reducer.Received{At: now, Events: in})
//	// effects: Record{…}, StartRequest{…}
//
// Guarantees for both:
//   - They are deterministic and never modify their arguments. Results can share memory
//     with arguments, so treat both as immutable (see grow.go).
//   - Reduce(Reduce(s, a...), b...) equals Reduce(s, a..., b...) for every split of a log,
//     and a state survives a JSON round trip unchanged.
//   - Folding a log takes linear time, in one call and, while messages are appended, event
//     by event. An event that modifies earlier messages, such as a tool call or a late
//     answer, copies the list of messages if it is folded alone, which takes 0.1 ms for a
//     thousand messages.
package reducer
