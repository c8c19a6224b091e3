// Package storage replaces cloud.google.com/go/storage in the build of the dev server, which
// archives nothing to Google Cloud Storage: the client and its transports are an eighth of the
// build. It declares what the server's archiver refers to; [NewClient] fails.
package storage

import (
	"context"
	"errors"
)

const ScopeFullControl = "https://www.googleapis.com/auth/devstorage.full_control"

var errReplaced = errors.New("this server is built without Google Cloud Storage (build/temporal/nogcs)")

type (
	Client         struct{}
	BucketHandle   struct{}
	BucketAttrs    struct{}
	ObjectHandle   struct{}
	ObjectAttrs    struct{ Name string }
	ObjectIterator struct{}
	Query          struct{ Prefix string }
	Reader         struct{}
	Writer         struct{}
)

// NewClient always fails.
func NewClient(context.Context, ...any) (*Client, error) { return nil, errReplaced }

func (*Client) Bucket(string) *BucketHandle { return nil }

func (*BucketHandle) Attrs(context.Context) (*BucketAttrs, error)     { return nil, errReplaced }
func (*BucketHandle) Object(string) *ObjectHandle                     { return nil }
func (*BucketHandle) Objects(context.Context, *Query) *ObjectIterator { return nil }

func (*ObjectIterator) Next() (*ObjectAttrs, error) { return nil, errReplaced }

func (*ObjectHandle) Attrs(context.Context) (*ObjectAttrs, error) { return nil, errReplaced }
func (*ObjectHandle) NewReader(context.Context) (*Reader, error)  { return nil, errReplaced }
func (*ObjectHandle) NewWriter(context.Context) *Writer           { return nil }

func (*Reader) Read([]byte) (int, error) { return 0, errReplaced }
func (*Reader) Close() error             { return errReplaced }

func (*Writer) Write([]byte) (int, error)  { return 0, errReplaced }
func (*Writer) Close() error               { return errReplaced }
func (*Writer) CloseWithError(error) error { return errReplaced }
