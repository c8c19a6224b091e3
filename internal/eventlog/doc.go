// Package eventlog reads the log of a context from workflow histories and the archive.
//
//	log := eventlog.New(temporal, "default", archive)
//	for e, err := range log.Events(ctx, "demo", "") { … }                 // the log so far
//	for e, err := range log.Follow(ctx, "demo", "demo:0007", eventlog.FollowOptions{}) { … } // and new events
//
// Each SideEffect marker of the workflow contains a [wire.Record]. Nothing is recomputed, so reading
// needs neither a worker nor the code that recorded the events. The archive lists the runs of the
// log. Archived events are read from it, the rest from histories. Guarantees:
//   - Each event is yielded once and in order, across runs and sessions. After a reset, the log
//     is that of the new branch.
//   - Events that are in no history, and that the archive lacks or cannot read, are a
//     [*GapError].
//   - Without an archive, the log begins with what the server still has.
package eventlog
