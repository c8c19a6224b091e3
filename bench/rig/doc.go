// Package rig runs the system that benchmarks and soak tests measure: a Temporal server,
// a NATS server, workers, a scripted model, and observers. Each is a process of its own,
// as in production. All run on one machine and share its clock.
//
//	func main() {
//		rig.Main() // this process may be a part of the rig
//		…
//		r, err := rig.Start(ctx, rig.Options{})
//		defer r.Stop()
//		worker, err := r.StartWorker(ctx, rig.WorkerOptions{})
//		err = r.Contexts.Send(ctx, "demo", rig.Message{Key: "m1", Tokens: 20, Every: 5 * time.Millisecond})
//		request, err := r.Observations.Await(ctx, rig.Requested, "m1")
//		latency := request.At.Sub(sent)
//
// A [Message] has a key and specifies its answer. Processes report each step of its turn as an
// [Observation] with that key and a time. Each token of an answer contains the time at which
// the model wrote it.
//
// Two references show the minimum: [Bare], a Temporal workflow that makes the same
// request, and [Direct], a client that calls the model without Temporal.
package rig
