// Package eventlog reads the events of a context back out of Temporal: all of
// them, or those that come as they come.
//
//	log := eventlog.New(temporal)
//	for e, err := range log.Events(ctx, "demo", "") { … }   // what is there
//	for e, err := range log.Follow(ctx, "demo", "demo:0007") { … }   // and goes on
//
// The events are facts in the history: each marker that the workflow recorded
// holds a wire.Record, and nothing is derived again. So a log can be read
// without a worker and whatever the code has become.
//
// What it guarantees: every event exactly once and in order, over all runs and
// sessions of the context whose history the server still has. Runs are found
// from the newest back: each names the one before it, in its first event or as
// the run that it continues.
package eventlog
