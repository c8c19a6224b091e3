// Package eventlog reads the events of a context back out of Temporal and the
// archive: all of them, or those that come as they come.
//
//	log := eventlog.New(temporal, archive)
//	for e, err := range log.Events(ctx, "demo", "") { … }   // what is there
//	for e, err := range log.Follow(ctx, "demo", "demo:0007", nil) { … }   // and goes on
//
// The events are facts in the history: each marker that the workflow recorded
// holds a wire.Record, and nothing is derived again. So a log can be read
// without a worker and whatever the code has become. What the archive has is
// read there, and the histories are read from where it ends; where it cannot be
// read, the histories that the server still has stand in for it.
//
// What it guarantees: every event exactly once and in order, over all runs and
// sessions of the context. With an archive, events that nobody has any more are
// a [*GapError]; without one, a log begins with what the server still has. Runs
// are found from the newest back: each names the one before it, in its first
// event or as the run that it continues.
package eventlog
