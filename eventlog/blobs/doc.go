// Package blobs keeps bytes in a folder or in a bucket of a cloud, by their
// hash: what a history is too small for, or does not keep for long enough.
//
//	store, err := blobs.Open(ctx, "file:///var/lib/chronicle/blobs", "default")
//	ref, err := store.Put(ctx, data)   // "sha256/2cf24dba…"
//	data, err := store.Get(ctx, ref)
//
// A URL says where:
//
//	file:///absolute/folder      a folder, which is made when it is not there
//	file://./relative/folder     the same, below the working directory
//	s3://bucket?region=eu-west-1 Amazon S3 and what speaks like it
//	gs://bucket                  Google Cloud Storage
//	azblob://container           Azure Blob Storage
//	mem://                       memory, for tests
//
// The clouds are there in programs that import package eventlog/blobs/clouds: worker and
// starter do when built with -tags clouds. With "?prefix=chronicle/" a bucket can
// be shared. Credentials come from the
// environment, in the way of each cloud, and never from the URL; they must allow
// to read, to write and to list. Nothing is deleted. See gocloud.dev/blob for
// the other parameters.
//
// What a store guarantees: what was put is there as soon as Put returns, whole
// or not at all, whenever the process is killed, and in a folder also when the
// machine loses its power; what is read is what was written, by its hash; putting
// the same bytes again changes nothing. Names, see [Store.WriteOnce], are written
// once. No error repeats a credential.
//
// [ExternalStorage] lets the Temporal client keep payloads in a store that are
// too large for a history.
package blobs
