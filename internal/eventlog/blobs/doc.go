// Package blobs is a content-addressed store for bytes that exceed the size or the retention of a
// workflow history.
//
//	store, err := blobs.Open(ctx, "file:///var/lib/chronicle/blobs", "default")
//	ref, err := store.Put(ctx, data)   // "sha256/2cf24dba…"
//	data, err := store.Get(ctx, ref)
//
// A [Folder] has blobs of its own. Each context has one, so that no two contexts share a blob.
//
// A URL selects the store:
//
//	file:///absolute/folder      a folder, created if it does not exist
//	file://./relative/folder     a folder, relative to the working directory
//	s3://bucket?region=eu-west-1 Amazon S3 or a compatible server
//	gs://bucket                  Google Cloud Storage
//	azblob://container           Azure Blob Storage
//	mem://                       memory, for tests
//
// The cloud schemes require the build tag clouds. The parameter prefix=chronicle/ shares a bucket with other programs;
// gocloud.dev/blob documents the others. Credentials come from the environment, never from the URL.
// They must permit reading, writing and listing, and deleting for the cursors of hooks.
// [ExternalStorage] makes a Temporal client keep large payloads in a store.
//
// Guarantees:
//   - When Put returns, the bytes are stored completely; in a folder, they survive a power
//     failure. A killed process leaves no partial blob.
//   - Get returns the bytes that were put, verified by their hash.
//   - Nothing is deleted, except by [Store.Delete]. Chronicle calls it for contexts that a person deletes, for old
//     cursors of hooks, and for the objects that workers and `starter doctor` write to check a store. Putting the same
//     bytes again changes nothing, and [Store.WriteOnce] never replaces what is stored under a name.
//   - Errors contain no credentials.
package blobs
