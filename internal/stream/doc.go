// Package stream carries ephemeral messages over NATS core subjects: the deltas of a running
// answer, and messages to stop it. Nothing is stored. The worker that runs a request opens a
// [Broadcast], and followers of the context open a [Subscription]:
//
//	b := conn.Broadcast(stream.Attempt{ContextName: "demo", RequestID: id, Number: 1}, onStop)
//	b.Publish("Hel")
//	b.Publish("lo")
//	b.Close()
//
//	sub, err := conn.Subscribe("demo")
//	for m := range sub.Messages() {
//		d, ok := sub.Decode(m)
//		if !ok || running.Compare(d.RequestID, d.Attempt) != 0 {
//			continue // running is what the log shows
//		}
//		if d, ok := sub.Pass(d); ok { … }   // d.Bodies() are its events
//	}
//
// A subscription delivers the deltas of an attempt in order and without gaps. A subscriber that
// joins late or misses deltas gets the whole text and reasoning so far, marked as a Reset, unless that
// is larger than a NATS message, usually 1 MiB. A new attempt starts with a Reset, too. Without NATS
// there are no deltas, and everything else works.
//
// The subjects of a context begin with "chronicle.{namespace}.{tenant}.{context}", with "_" for no tenant: ".delta" for
// [event.TextDelta] and [event.ToolProgress] events, ".ask" for requests for the text so far, ".stop" for
// stop messages, ".notice" for notices that the context may have changed, which broadcasts send when they begin and end.
// deploy/nats.conf has the permissions of workers and viewers.
package stream
