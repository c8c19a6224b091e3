// Package index has the list of contexts by last activity, and the search of their messages. Temporal can do neither.
//
//	x, err := index.Open(client, index.Options{Dir: ".chronicle/index/_"})
//	page, more, err := x.List(ctx, index.Filter{Limit: 100})
//	hits, more, err := x.Search(ctx, index.Query{Text: `canary "in the mine"`, Limit: 20})
//
// Everything in an index is derived from the logs, and is built anew from them at any time: if the directory is empty, is of
// another format, or cannot be read. If the directory is in use by another process, or cannot be written, the index is in a
// temporary one.
//
// # Following
//
// A context is read when it may have changed: after a notice of the source, when Temporal's list shows another run, status or
// number of turns than before, and, in turn, while it is open, because notices may be lost. A read costs one call of Temporal
// and the events since the last one. If the newest event of the last read is not in the log, the log was reset or
// replaced, and is read from its beginning.
//
// Temporal forgets a context some time after its last run. The index then keeps it, and finds others by a list of the blob
// store, as long as their logs can be read.
//
// The messages that a fork shares are indexed as those of its origin; when the origin is deleted, as those of the fork.
//
// # Storage
//
// The list is in memory: about 1 KB per context. The messages are in an index of bleve, with the record of each context
// in the same batch, so that a crash loses the newest batches only, which are read again. After a context was deleted, the files
// that have its text are written anew.
//
// Only a few packages of bleve are used: its own package, query language and mappings would add ten megabytes.
package index
