// Package thread folds what happens in a context into messages and changes, for the adapters of protocols: an adapter is a
// table from changes to the messages of its protocol.
//
//	t := thread.Thread{Base: x.PublicPath(), Clients: thread.Clients(snapshot.Setup.Tools)}
//	for item := range h.Follow(from) {
//		for _, change := range t.Apply(item) {
//			switch change := change.(type) {
//			case thread.Grew:     // a piece of change.Step.Text or change.Step.Reasoning
//			case thread.Answered: // the log has the answer
//			…
//
// A reader may begin anywhere. It then knows the messages from there on, and an event about an earlier request begins that
// request anew.
//
// # Requests and steps
//
// A request answers what the user said. It has a step for each attempt that answers: the model thinks, speaks and calls
// tools. After a step with calls, the results follow, and another step. An attempt that fails is abandoned, and its step
// gives way to that of the next attempt.
package thread
