// Package rig runs the system that the benchmark and the soak test use: a Temporal server, a NATS server,
// workers, a gateway and a scripted model, each in a process of its own, as in production. This process is
// the clients. All run on one machine and share its clock.
//
//	func main() {
//		rig.Main() // this process may be a part of the rig
//		…
//		r, err := rig.Start(ctx, rig.Options{})
//		defer r.Stop()
//		worker, err := r.StartWorker(ctx)
//		gateway, err := r.StartGateway(ctx) // at gateway.Ready["url"]
//		err = r.Begin(ctx, "demo")
//		err = r.Send(ctx, "demo", rig.Message{Key: "m1", Tokens: 20, Every: 5 * time.Millisecond})
//		request, err := r.Observations.Await(ctx, rig.Requested, "m1")
//	}
//
// A [Message] has a key and specifies its answer. Each step of its turn is an [Observation] with that key and a
// time. Each token of an answer contains the time at which the model wrote it.
//
// Two references show the minimum: [Bare], a Temporal workflow that makes the same request, and [Rig.Ask], which
// calls the model without Temporal.
package rig
