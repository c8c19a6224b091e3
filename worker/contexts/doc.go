// Package contexts runs contexts in your own program, as the worker binary does: their
// workflow, its activities, and the namespace settings that both rely on.
//
//	store, err := blobs.Open(ctx, "file:///var/lib/chronicle", "default")
//	temporal, err := client.Dial(contexts.WithStore(client.Options{}, store))
//	w := contexts.NewWorker(temporal, contexts.Options{
//		Archive: archive.New(store),
//		Models:  llm.New(llm.Options{Defaults: llm.DefaultsFromEnv(os.Getenv)}),
//	})
//	err = w.Run(worker.InterruptCh())
//
// [Options].Reduce replaces the fold of events into messages, [Options].Models the providers.
// [Options].Tools are the tools that contexts may name: see package tool. Call [BindStore] and
// [RegisterSearchAttributes] before the worker starts; without the latter, leave SearchAttributes
// unset.
//
// Guarantees:
//   - Stop lets answers finish within DrainTimeout and hands the others back to Temporal: another
//     worker repeats them, which does not count as a retry.
//   - Workers of a task queue may be added, stopped and killed at any time; no accepted input is
//     lost and no answer is recorded twice.
//   - [BindStore] admits one blob store per namespace, even if workers start concurrently.
package contexts
