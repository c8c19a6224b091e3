// Package rig is what Chronicle is measured and soak-tested with: a Temporal
// server, a NATS server, workers, a model that answers as its messages say, and
// observers, each in a process of its own, as in production, and all on this
// machine, so that they share a clock.
//
//	func main() {
//		rig.Main() // this process may be one of the others
//		…
//		r, err := rig.Start(ctx, rig.Options{})
//		defer r.Stop()
//		worker, err := r.StartWorker(ctx, rig.WorkerOptions{})
//		ids, err := r.Contexts.Send(ctx, "demo", rig.Message{Key: "m1", Tokens: 20, Every: 5 * time.Millisecond})
//		request, err := r.Notes.Await(ctx, rig.Requested, "m1")
//		latency := request.At.Sub(sent)
//
// A [Message] carries a key and says how it is to be answered. The other
// processes tell what they saw of it, and when, as a [Note] under that key. A
// token of an answer carries the time at which the model wrote it.
//
// Beside the contexts there are two references, which do as little as can be
// done: [Bare], a loop on Temporal that makes the same call, and [Direct], a
// client that reads the model itself.
package rig
