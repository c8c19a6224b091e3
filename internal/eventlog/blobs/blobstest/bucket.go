// Package blobstest provides an in-memory store for tests. It counts operations, and can fail, lose
// or damage blobs.
//
//	bucket := blobstest.New(t)
//	archive := archive.New(bucket.Store)
//	…
//	bucket.Fail(errors.New("connection refused"))
package blobstest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/driver"
	"gocloud.dev/gcerrors"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
)

// Bucket is an in-memory bucket.
type Bucket struct {
	Store *blobs.Store

	mu      sync.Mutex
	blobs   map[string][]byte
	err     error
	reads   int
	writes  int
	latency time.Duration // of each read and list
	hidden  int           // reads that find nothing
}

// New returns an empty bucket that is closed at the end of the test.
func New(t testing.TB) *Bucket {
	b := Open()
	t.Cleanup(func() { _ = b.Store.Close() })
	return b
}

// Open returns an empty bucket that the caller closes.
func Open() *Bucket {
	b := &Bucket{blobs: map[string][]byte{}}
	b.Store = blobs.New(blob.NewBucket(bucketDriver{bucket: b}))
	return b
}

// Fail makes all operations fail until Fail(nil): fs.ErrPermission means denied access, any other
// error an unavailable store.
func (b *Bucket) Fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
}

// SetLatency delays each later read and list.
func (b *Bucket) SetLatency(latency time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.latency = latency
}

// Hide makes a number of later reads find nothing.
func (b *Bucket) Hide(reads int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hidden = reads
}

func (b *Bucket) wait() {
	b.mu.Lock()
	latency := b.latency
	b.mu.Unlock()
	time.Sleep(latency)
}

// Set replaces the content of a name; nil removes it.
func (b *Bucket) Set(name string, data []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.blobs[name] = data
	if data == nil {
		delete(b.blobs, name)
	}
}

// Names returns all names, sorted.
func (b *Bucket) Names() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.blobs))
}

// Reads returns the number of reads, lookups and lists.
func (b *Bucket) Reads() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reads
}

// Writes returns the number of completed writes.
func (b *Bucket) Writes() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.writes
}

var (
	errNotFound = errors.New("not found")
	errExists   = errors.New("exists")
)

type bucketDriver struct {
	driver.Bucket
	bucket *Bucket
}

func (d bucketDriver) read(key string) ([]byte, error) {
	d.bucket.wait()
	d.bucket.mu.Lock()
	defer d.bucket.mu.Unlock()
	d.bucket.reads++
	data, ok := d.bucket.blobs[key]
	if d.bucket.err == nil && (!ok || d.bucket.hidden > 0) {
		d.bucket.hidden = max(0, d.bucket.hidden-1)
		return nil, errNotFound
	}
	return data, d.bucket.err
}

func (d bucketDriver) Attributes(_ context.Context, key string) (*driver.Attributes, error) {
	data, err := d.read(key)
	return &driver.Attributes{Size: int64(len(data))}, err
}

func (d bucketDriver) NewRangeReader(_ context.Context, key string, _, _ int64, _ *driver.ReaderOptions) (driver.Reader, error) {
	data, err := d.read(key)
	return reader{bytes.NewReader(data)}, err
}

func (d bucketDriver) ListPaged(_ context.Context, options *driver.ListOptions) (*driver.ListPage, error) {
	d.bucket.wait()
	d.bucket.mu.Lock()
	defer d.bucket.mu.Unlock()
	d.bucket.reads++
	page := &driver.ListPage{}
	for _, key := range slices.Sorted(maps.Keys(d.bucket.blobs)) {
		if strings.HasPrefix(key, options.Prefix) {
			page.Objects = append(page.Objects, &driver.ListObject{Key: key, Size: int64(len(d.bucket.blobs[key]))})
		}
	}
	return page, d.bucket.err
}

func (d bucketDriver) NewTypedWriter(_ context.Context, key, _ string, options *driver.WriterOptions) (driver.Writer, error) {
	return &writer{bucket: d.bucket, key: key, once: options.IfNotExist}, nil
}

func (d bucketDriver) Delete(_ context.Context, key string, _ *driver.DeleteOptions) error {
	d.bucket.mu.Lock()
	defer d.bucket.mu.Unlock()
	if _, ok := d.bucket.blobs[key]; !ok && d.bucket.err == nil {
		return errNotFound
	}
	if d.bucket.err == nil {
		delete(d.bucket.blobs, key)
	}
	return d.bucket.err
}

func (bucketDriver) ErrorCode(err error) gcerrors.ErrorCode {
	switch err {
	case errNotFound:
		return gcerrors.NotFound
	case errExists:
		return gcerrors.FailedPrecondition
	case fs.ErrPermission:
		return gcerrors.PermissionDenied
	default:
		return gcerrors.Unknown
	}
}

func (bucketDriver) ErrorAs(error, any) bool { return false }
func (bucketDriver) Close() error            { return nil }

type reader struct{ *bytes.Reader }

func (r reader) Attributes() *driver.ReaderAttributes {
	return &driver.ReaderAttributes{Size: r.Size()}
}
func (reader) As(any) bool  { return false }
func (reader) Close() error { return nil }

type writer struct {
	bytes.Buffer
	bucket *Bucket
	key    string
	once   bool
}

var _ io.WriteCloser = (*writer)(nil)

func (w *writer) Close() error {
	w.bucket.mu.Lock()
	defer w.bucket.mu.Unlock()
	if w.bucket.err != nil {
		return w.bucket.err
	}
	if _, taken := w.bucket.blobs[w.key]; taken && w.once {
		return errExists
	}
	w.bucket.writes++
	w.bucket.blobs[w.key] = w.Bytes()
	return nil
}
