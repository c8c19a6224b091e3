// Package contexts runs contexts in your own program, as the worker binary does.
//
//	conn, err := contexts.Connect(ctx, client.Config{BlobURL: "file:///var/lib/chronicle"})
//	w, err := conn.NewWorker(contexts.Options{
//		Models: llm.New(llm.Options{Defaults: llm.DefaultsFromEnv(os.Getenv)}),
//	})
//	err = w.Run(worker.InterruptCh())
//
// A [Connection] prepares the namespace, and everything that workers and clients need is derived from it:
// [Connection.NewWorker], [Connection.Client]. [Options].Reduce replaces the fold of events into messages, Models the
// providers, and Tools are what contexts may call, see package tool. Package chronicletest runs all servers for tests.
//
// A worker may run workflows and activities of your own, except with names of its own, whose registration panics: the
// workflows Context, Send, Budget, Evaluate, Offer and Delete, and the activities Archive, CallTool, CheckTools, DeleteRuns,
// DeleteStored, Deliver, DetachFork, EndSession, Evaluate, Generate, ListForks, Load, Open, Recover, Send and Stop.
// To use a context as a step of a workflow, see client.Activities.
//
// Guarantees:
//   - Stop lets answers finish within DrainTimeout and hands the others back to Temporal: another
//     worker repeats them, which does not count as a retry.
//   - Workers of a task queue may be added, stopped and killed at any time; no accepted input is
//     lost and no answer is recorded twice.
//   - A namespace has one blob store, even if workers connect concurrently.
package contexts
