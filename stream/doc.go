// Package stream carries what lives only for a moment: the pieces of an answer
// on its way, and the hint that an answer is to stop. It uses NATS core
// subjects; nothing is stored.
//
// The worker that makes a request opens a [Broadcast] and gives it each piece
// of text. Anyone who follows the context has a [Subscription]:
//
//	b := conn.Broadcast(stream.Attempt{ContextName: "demo", RequestID: id, Number: 1}, onStop)
//	b.Say("Hel")
//	b.Say("lo")
//	b.Close()
//
//	sub, err := conn.Subscribe("demo")
//	for m := range sub.Messages() {
//		if d, ok := sub.Delta(m); ok { … }   // event.TextDelta
//	}
//
// What a subscription guarantees: the deltas of one attempt come in order and
// without a gap; whoever joins late or misses some is given the whole text so
// far, marked as a Reset; two attempts are never glued together. What it does
// not: that deltas come at all. Without NATS there are none, and everything
// else works.
//
// There are two subjects for each context, below "chronicle.{namespace}":
// "{context}.delta" for [event.TextDelta] events and "{context}.ask" for
// requests to whoever is answering.
package stream
