// Package eventlog reads the events of a context back out of Temporal and the
// archive: all of them, or those that come as they come.
//
//	log := eventlog.New(temporal, "default", archive)
//	for e, err := range log.Events(ctx, "demo", "") { … }   // what is there
//	for e, err := range log.Follow(ctx, "demo", "demo:0007", nil) { … }   // and goes on
//
// The events are facts in the history: each marker that the workflow recorded
// holds a wire.Record, and nothing is derived again. So a log can be read without
// a worker and whatever the code has become. The archive says which runs the log
// is made of; of each run, what the archive has is read there, and the rest from
// the history of the run.
//
// What it guarantees: every event exactly once and in order, over all runs and
// sessions of the context; after a reset, the log of the new branch. Events that
// are in neither archive nor history are a [*GapError]. Without an archive, or while it is away,
// runs are found by their histories from the newest back, and a log begins with
// what the server still has.
package eventlog
