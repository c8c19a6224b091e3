package blobs

import (
	"bytes"
	"cmp"
	"context"
	"crypto/md5"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/seed-9ed7edd4/chronicle/internal/metrics"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/internal/tracing"
)

// Errors of a [Store], about a blob or the store itself.
var (
	ErrNotFound    = errors.New("is not in the store")
	ErrCorrupt     = errors.New("is damaged") // the bytes differ from those stored
	ErrExists      = errors.New("already exists with different content")
	ErrUnavailable = errors.New("the store is unavailable") // a retry may succeed
)

// Store keeps blobs. It is safe for concurrent use, also by several processes.
type Store struct {
	bucket       *blob.Bucket
	folder, root string // folder of the bucket, and of the namespace in it; "" in a cloud

	metrics *metrics.Metrics

	mu sync.Mutex // guards id
	id string     // the identity; "" until it is read
}

// New returns a store on an open bucket, which the store closes. Use [Open] for a URL.
func New(bucket *blob.Bucket) *Store { return &Store{bucket: bucket, metrics: metrics.New(nil)} }

// Measure records the operations of the store with the instruments of a provider. Call it before the
// store is used.
func (s *Store) Measure(provider metric.MeterProvider) { s.metrics = metrics.New(provider) }

// operation is one that is measured and traced.
type operation struct {
	name  string
	began time.Time
	span  trace.Span
}

// begin begins an operation on a blob, or on the blobs with a prefix.
func begin(ctx context.Context, name, blob string) (context.Context, operation) {
	ctx, span := tracing.Start(ctx, trace.SpanKindClient, "blob", name)
	if span.IsRecording() {
		span.SetAttributes(blobName.String(blob))
	}
	return ctx, operation{name, time.Now(), span}
}

// Attributes of spans.
const (
	blobName  = attribute.Key("chronicle.blob.name")
	blobBytes = attribute.Key("chronicle.blob.bytes")
)

// end records an operation, its latency and the bytes that it moved.
func (s *Store) end(o operation, bytes int, err error) {
	outcome := "ok"
	switch code := gcerrors.Code(err); {
	case err == nil:
		s.metrics.StoreBytes.Add(float64(bytes), o.name)
	case code == gcerrors.NotFound:
		outcome = "missing"
	case code == gcerrors.FailedPrecondition:
		outcome = "exists"
	default:
		outcome = "failed"
	}
	s.metrics.StoreOperations.Add(1, o.name, outcome)
	s.metrics.StoreDuration.Observe(time.Since(o.began).Seconds(), o.name)
	if o.span.IsRecording() {
		o.span.SetAttributes(blobBytes.Int(bytes), tracing.Outcome.String(outcome))
		if outcome == "failed" {
			o.span.SetStatus(codes.Error, redact(err))
		}
	}
	o.span.End()
}

// Close closes the bucket.
func (s *Store) Close() error { return s.bucket.Close() }

// Put is [Folder.Put] in the root folder, whose blobs belong to no context.
func (s *Store) Put(ctx context.Context, data []byte) (Ref, error) {
	return s.Folder("").Put(ctx, data)
}

// Get is [Folder.Get] in the root folder.
func (s *Store) Get(ctx context.Context, ref Ref) ([]byte, error) { return s.Folder("").Get(ctx, ref) }

// WriteOnce stores bytes under a name that no [Folder] has. Repeating it changes nothing. It fails with
// [ErrExists] if the name has other bytes.
func (s *Store) WriteOnce(ctx context.Context, name string, data []byte) error {
	for delay := firstWriteDelay; ; delay *= 2 {
		taken, err := s.create(ctx, name, data)
		if !taken {
			return explain("write", name, err)
		}
		existing, err := s.Read(ctx, name)
		if err == nil && !bytes.Equal(existing, data) {
			return fmt.Errorf("blob %s %w", name, ErrExists)
		}
		// A server can reject this write before the bytes of the first writer are readable.
		if !errors.Is(err, ErrNotFound) || delay > lastWriteDelay || !pause.For(ctx, delay) {
			return err
		}
	}
}

// Delays before WriteOnce writes again.
const firstWriteDelay, lastWriteDelay = 10 * time.Millisecond, time.Second

func (s *Store) create(ctx context.Context, name string, data []byte) (taken bool, err error) {
	options := &blob.WriterOptions{ContentType: "application/json"}
	if s.root == "" {
		options.IfNotExist = true
		err = s.write(ctx, name, data, options)
		return gcerrors.Code(err) == gcerrors.FailedPrecondition, err
	}
	// The file driver checks for the name and then renames, so two writers may both succeed.
	// Creating a hard link is atomic.
	path := filepath.Join(s.root, filepath.FromSlash(name))
	if _, err := os.Lstat(path); err == nil {
		return true, nil
	}
	temp := "." + rand.Text() + ".tmp"
	if err := s.write(ctx, name+temp, data, options); err != nil {
		return false, err
	}
	defer os.Remove(path + temp)
	if err := os.Link(path+temp, path); err != nil {
		return errors.Is(err, fs.ErrExist), err
	}
	return false, s.syncFolders(filepath.Dir(path))
}

// write syncs a file before it is renamed, and its folder after that.
func (s *Store) write(ctx context.Context, name string, data []byte, options *blob.WriterOptions) (err error) {
	ctx, o := begin(ctx, "write", name)
	defer func() { s.end(o, len(data), err) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var file *os.File // nil in a cloud
	sum := md5.Sum(data)
	options.ContentMD5 = sum[:] // verified by clouds
	options.BeforeWrite = func(as func(any) bool) error {
		as(&file)
		return nil
	}
	w, err := s.bucket.NewWriter(ctx, name, options)
	if err != nil {
		return err
	}
	if _, err = w.Write(data); err == nil && file != nil {
		err = file.Sync()
	}
	if err != nil {
		cancel() // Close then discards the bytes
		_ = w.Close()
		return err
	}
	if err := w.Close(); err != nil || file == nil {
		return err
	}
	return s.syncFolders(filepath.Dir(file.Name()))
}

func (s *Store) syncFolders(folder string) error {
	if s.folder == "" || runtime.GOOS == "windows" {
		return nil // Windows cannot sync folders
	}
	for {
		opened, err := os.Open(folder)
		if err != nil {
			return err
		}
		err = opened.Sync()
		_ = opened.Close() // nothing was written through it
		if err != nil || folder == s.folder || folder == filepath.Dir(folder) {
			return err
		}
		folder = filepath.Dir(folder)
	}
}

// Read returns the bytes under a name, unverified. Its errors are those of [Folder.Get] except
// ErrCorrupt.
func (s *Store) Read(ctx context.Context, name string) ([]byte, error) {
	data, err := s.read(ctx, name)
	return data, explain("read", name, err)
}

func (s *Store) read(ctx context.Context, name string) ([]byte, error) {
	ctx, o := begin(ctx, "read", name)
	data, err := s.bucket.ReadAll(ctx, name)
	s.end(o, len(data), err)
	return data, err
}

// Delete deletes what [Store.WriteOnce] stored under a name. A name that does not exist is no error.
func (s *Store) Delete(ctx context.Context, name string) error {
	ctx, o := begin(ctx, "delete", name)
	err := s.bucket.Delete(ctx, name)
	s.end(o, 0, err)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil
	}
	return explain("delete", name, err)
}

// DeleteAll deletes everything below a folder, whose name ends with a slash, and what incomplete writes left there. It
// returns the number of names that it deleted, which is less than all with an error.
func (s *Store) DeleteAll(ctx context.Context, folder string) (deleted int, err error) {
	names := make(chan string)
	var all sync.WaitGroup
	var mu sync.Mutex // guards deleted and failed
	var failed error
	for range maxConcurrentDeletes {
		all.Go(func() {
			for name := range names {
				err := s.Delete(ctx, name)
				mu.Lock()
				if err == nil {
					deleted++
				}
				failed = cmp.Or(failed, err)
				mu.Unlock()
			}
		})
	}
	for name, listErr := range s.Names(ctx, folder) {
		if err = listErr; err != nil {
			break
		}
		names <- name
	}
	close(names)
	all.Wait()
	if err = cmp.Or(err, failed); err == nil && s.root != "" {
		if removeErr := os.RemoveAll(filepath.Join(s.root, filepath.FromSlash(folder))); removeErr != nil {
			err = explain("delete", folder, removeErr)
		}
	}
	return deleted, err
}

const maxConcurrentDeletes = 32

// Names yields the names that begin with a prefix, in byte order. An error is the last element.
func (s *Store) Names(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for o, err := range s.list(ctx, prefix, false) {
			if !yield(o.Name, err) {
				return
			}
		}
	}
}

// Object is a name, and the size and the time of what is stored under it.
type Object struct {
	Name     string
	Bytes    int64
	StoredAt time.Time
}

// Objects is [Store.Names] with sizes and times.
func (s *Store) Objects(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return s.list(ctx, prefix, true)
}

func (s *Store) list(ctx context.Context, prefix string, detailed bool) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		ctx, operation := begin(ctx, "list", prefix)
		var failed error
		defer func() { s.end(operation, 0, failed) }()
		for o, err := range s.objects(ctx, prefix, detailed) {
			if failed = err; !yield(o, err) {
				return
			}
		}
	}
}

func (s *Store) objects(ctx context.Context, prefix string, detailed bool) iter.Seq2[Object, error] {
	if s.root != "" {
		return s.files(prefix, detailed)
	}
	return func(yield func(Object, error) bool) {
		list := s.bucket.List(&blob.ListOptions{Prefix: prefix})
		for {
			object, err := list.Next(ctx)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(Object{}, explain("list", prefix, err))
				return
			}
			if !yield(Object{object.Key, object.Size, object.ModTime}, nil) {
				return
			}
		}
	}
}

// Folders yields the names of the folders in a folder, whose name ends with a slash, without slashes.
func (s *Store) Folders(ctx context.Context, folder string) iter.Seq2[string, error] {
	if s.root != "" {
		return s.subfolders(folder)
	}
	return func(yield func(string, error) bool) {
		list := s.bucket.List(&blob.ListOptions{Prefix: folder, Delimiter: "/"})
		for {
			object, err := list.Next(ctx)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield("", explain("list", folder, err))
				return
			}
			if object.IsDir && !yield(strings.TrimSuffix(strings.TrimPrefix(object.Key, folder), "/"), nil) {
				return
			}
		}
	}
}

func (s *Store) subfolders(folder string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		entries, err := os.ReadDir(filepath.Join(s.root, filepath.FromSlash(folder)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			yield("", explain("list", folder, err))
			return
		}
		for _, entry := range entries {
			if entry.IsDir() && !yield(entry.Name(), nil) {
				return
			}
		}
	}
}

// files replaces the listing of gocloud's file driver, which can skip names between pages (a file
// and a folder with a common prefix), and fails when a temporary file disappears. No upstream issue is
// known: https://github.com/google/go-cloud/issues/3089 fixed only listings with a delimiter.
// Remove this when the driver compares names with the page token in the order of its walk.
func (s *Store) files(prefix string, detailed bool) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		var found []Object
		below := filepath.Join(s.root, filepath.FromSlash(prefix[:strings.LastIndexByte(prefix, '/')+1]))
		err := filepath.WalkDir(below, func(file string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil || entry.IsDir() {
				return err
			}
			relative, err := filepath.Rel(s.root, file)
			name := filepath.ToSlash(relative)
			// Temporary files belong to incomplete writes.
			if !strings.HasPrefix(name, prefix) || strings.HasSuffix(name, ".tmp") || strings.HasSuffix(name, ".attrs") {
				return err
			}
			o := Object{Name: name}
			if detailed {
				info, err := entry.Info()
				if errors.Is(err, fs.ErrNotExist) {
					return nil
				}
				if err != nil {
					return err
				}
				o.Bytes, o.StoredAt = info.Size(), info.ModTime()
			}
			found = append(found, o)
			return err
		})
		if err != nil {
			yield(Object{}, explain("list", prefix, err))
			return
		}
		if len(found) == 0 && s.hasIdentity() {
			// An unmounted volume looks like an empty store.
			if _, err := os.Lstat(filepath.Join(s.root, identityName)); err != nil {
				yield(Object{}, &storeError{fmt.Sprintf("list blob %s: the store has lost its identity (is the volume mounted?): %s", prefix, redact(err)), err})
				return
			}
		}
		slices.SortFunc(found, func(a, b Object) int { return strings.Compare(a.Name, b.Name) })
		for _, o := range found {
			if !yield(o, nil) {
				return
			}
		}
	}
}

func explain(verb, name string, err error) error {
	switch {
	case err == nil:
		return nil
	case gcerrors.Code(err) == gcerrors.NotFound:
		return fmt.Errorf("blob %s %w", name, ErrNotFound)
	default:
		return &storeError{fmt.Sprintf("%s blob %s: %s", verb, name, redact(err)), err}
	}
}

type storeError struct {
	text string
	err  error
}

func (e *storeError) Error() string { return e.text }
func (e *storeError) Unwrap() error { return e.err }

func (e *storeError) Is(target error) bool {
	return target == ErrUnavailable && gcerrors.Code(e.err) != gcerrors.PermissionDenied
}
