// Package archive stores the logs of contexts in a blob store, beyond the retention of
// the Temporal server.
//
//	a := archive.New(store)
//	folder, err := a.Folder(ctx, "demo")                             // one listing
//	err = folder.Register(ctx, archive.Run{ID: run})
//	segment, err := a.Write(ctx, "demo", run, events)                // demo:0001 to demo:0050
//	parts, err := folder.View(ctx, run, 0)
//	r := a.Read(ctx, parts, 0)
//	for i := range parts {
//		for e, err := range r.Part(i) { … }
//	}
//
// A run is registered once, before it records anything. The registration names the run that it
// continues ("behind") and the last event before its own ("after"):
//
//	contexts/demo/runs/000000000002.json
//	{"version":1,"runId":"…","after":50,"behind":"…"}
//
// The log of a run is the chain of registrations that leads back from it, so a reset starts a branch
// and overwrites nothing. Imports and origins of forks are registered, too.
//
// The origin lists its forks, so that they are found without a list of all contexts:
//
//	forks/demo/copy.json
//	{"version":1,"contextName":"copy"}
//
// Segments store the events of a run: consecutive events as JSON lines, compressed with zstd, in a
// blob that an index entry references. It is one of the [Blobs] of the context, as are attachments and large payloads:
//
//	blobs/demo/sha256/…
//	contexts/demo/RUN/000000000001-000000000050.json
//	{"version":1,"first":1,"last":50,"blob":"sha256/…","bytes":2810,"rawBytes":19204}
//
// The entry is written after the blob. Encoding is deterministic and contains neither time nor
// host, so a killed writer can repeat its work. Segments may overlap, and are never changed.
// Only [Archive.Delete] deletes them.
//
// A cursor is the position of a hook in the log, under the hash of its name. Each change is an object
// of its own, and deletes the older ones:
//
//	cursors/demo/3c2e…/000000000007.json
//	{"version":1,"reader":"crm","runId":"…","after":42}
//
// Events are read as they were written and in order, up to the first gap in the list of segments, which
// [github.com/seed-9ed7edd4/chronicle/eventlog] reports. For a listed segment that is missing or damaged,
// the error is a [*SegmentError].
package archive
