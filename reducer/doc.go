// Package reducer holds every pure fold of Chronicle. It has no clock, no
// randomness, no I/O and knows nothing of Temporal: times and ids arrive in its
// inputs, and what is to be done leaves it as data.
//
// There are two folds. [Reduce] turns the events of a context into what a model
// is shown, a [ReducedContext]: messages and settings.
//
//	r := reducer.Reduce(reducer.Initial(), events...)
//	r.Messages      // what to send
//	r.Config        // to whom, how often, how long
//
// [Step] decides what a session does: it takes one [Input] at a time, an event
// that came or news of a request, and answers with the new [Session] and a list
// of [Effect] values for the workflow to carry out.
//
//	s, effects := reducer.Step(s, reducer.Received{At: now, Events: in})
//	// effects: Record{…}, StartRequest{…}
//
// What holds for both:
//   - The same arguments give the same results, and no argument is ever
//     changed. A result may share memory with the argument it came from, so
//     treat both as immutable; grow.go says how.
//   - Reduce(Reduce(s, a...), b...) equals Reduce(s, a..., b...) for every
//     split of a log, and a state that went through JSON goes on the same way.
//   - Folding a log costs time in proportion to its length, in one call and,
//     as long as messages are added at the end, event by event. An event that
//     changes what is there, like a tool call or an answer that comes after newer
//     input, copies the list of messages when it is folded on its own: a tenth of
//     a millisecond for a conversation of a thousand messages.
package reducer
