// Package archive keeps the logs of contexts in a store of package blobs, for
// longer than a server keeps histories.
//
//	a := archive.New(store)
//	folder, err := a.Folder(ctx, "demo")                             // one listing
//	err = folder.Register(ctx, archive.Run{ID: run})
//	segment, err := a.Write(ctx, "demo", run, events)                // demo:0001 to demo:0050
//	parts, err := folder.View(ctx, run, 0)
//	for e, err := range a.Events(ctx, "demo", parts, 0) { … }
//
// A run is registered once, before it records anything, and says which run it
// continues behind which event:
//
//	contexts/demo/runs/000000000002.json
//	{"version":1,"runId":"…","after":50,"behind":"…"}
//
// The log of a run is the chain of these, so a reset begins a branch and replaces
// nothing. An import and the origin of a fork are registered in the same way.
//
// The events of a run are kept in segments: consecutive events, each as its JSON
// on a line, compressed with zstd and stored by their hash. An entry says where:
//
//	contexts/demo/RUN/000000000001-000000000050.json
//	{"version":1,"first":1,"last":50,"blob":"sha256/…","bytes":2810,"rawBytes":19204}
//
// The entry is written after the blob, so what it names is complete. The same
// events give the same bytes, with no time and no host in them, so a writer that
// was killed simply writes again. Segments may overlap.
//
// What the package guarantees: events are read as they were written, in order
// and without a gap, or there is an error that says which segment is missing or
// damaged. Nothing is ever changed or taken away.
package archive
