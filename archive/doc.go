// Package archive keeps the logs of contexts in a store of package blobs, for
// longer than a server keeps histories.
//
//	a := archive.New(store)
//	segment, err := a.Write(ctx, "demo", events)         // demo:0001 to demo:0050
//	for e, err := range a.Events(ctx, "demo", 0) { … }   // those after demo:0000
//
// A log is kept in segments: consecutive events, each as its JSON on a line,
// compressed with zstd and stored by their hash. An entry says where:
//
//	contexts/demo/000000000001-000000000050.json
//	{"version":1,"first":1,"last":50,"blob":"sha256/…","bytes":2810,"rawBytes":19204}
//
// The entry is written after the blob, so what it names is complete. The same
// events give the same bytes, with no time and no host in them, so a writer that
// was killed simply writes again; when it cuts its segments in another way then,
// they overlap, and readers take the longest that leads on.
//
// A fork costs one entry, whatever the length of the log: contexts/copy/origin.json
// says that the first events are those of another context. Readers resolve it
// and see them under the new name.
//
// What the package guarantees: events are read as they were written, in order
// and without a gap, or there is an error that says which segment is missing or
// damaged. Nothing is ever changed or taken away.
package archive
