package blobs

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

// Errors that callers tell apart, with errors.Is.
var (
	// ErrNotFound: the store answers, and has nothing of that name.
	ErrNotFound = errors.New("is not in the store")
	// ErrCorrupt: what the store has is not what was put there.
	ErrCorrupt = errors.New("is damaged")
	// ErrExists: the name is taken by something else.
	ErrExists = errors.New("is in the store with other bytes")
	// ErrAway: the store did not answer, which may pass.
	ErrAway = errors.New("the store is away")
)

// Store keeps blobs. It is safe for concurrent use, also by several processes.
type Store struct {
	bucket *blob.Bucket
	// folder is where the bucket is; "" when it is not in a folder of ours.
	folder string
}

// New returns a store on a bucket, for those who open buckets in another way
// than [Open]. The store closes it.
func New(bucket *blob.Bucket) *Store { return &Store{bucket: bucket} }

// Close ends the use of the store.
func (s *Store) Close() error { return s.bucket.Close() }

// Put stores bytes and returns their reference. Bytes that are there already
// are not written again.
func (s *Store) Put(ctx context.Context, data []byte) (Ref, error) {
	ref := RefOf(data)
	there, err := s.bucket.Attributes(ctx, string(ref))
	if err == nil && there.Size == int64(len(data)) {
		return ref, nil
	}
	// Another size is what a machine without power can leave of a file.
	if err == nil || gcerrors.Code(err) == gcerrors.NotFound {
		err = s.write(ctx, string(ref), data, &blob.WriterOptions{ContentType: "application/octet-stream"})
	}
	if err != nil {
		return "", explain("put", string(ref), err)
	}
	return ref, nil
}

// Get returns the bytes of a reference. The error is ErrNotFound, ErrCorrupt, or
// one of the store, ErrAway as a rule.
func (s *Store) Get(ctx context.Context, ref Ref) ([]byte, error) {
	data, err := s.Read(ctx, string(ref))
	if err == nil && RefOf(data) != ref {
		return nil, fmt.Errorf("blob %s %w: its bytes do not have its hash", ref, ErrCorrupt)
	}
	return data, err
}

// WriteOnce stores bytes under a name of the caller's, a path that does not begin
// with "sha256/". Writing the same bytes again does nothing; other bytes are
// ErrExists.
func (s *Store) WriteOnce(ctx context.Context, name string, data []byte) error {
	err := s.write(ctx, name, data, &blob.WriterOptions{ContentType: "application/json", IfNotExist: true})
	if gcerrors.Code(err) != gcerrors.FailedPrecondition {
		return explain("write", name, err)
	}
	there, err := s.Read(ctx, name)
	if err == nil && !bytes.Equal(there, data) {
		return fmt.Errorf("blob %s %w", name, ErrExists)
	}
	return err
}

// write stores bytes so that no loss of power takes them back. A cloud sees to
// that by itself; a file has to be on the disk before it gets its name, and then
// its name, too.
func (s *Store) write(ctx context.Context, name string, data []byte, options *blob.WriterOptions) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var file *os.File // nil: it is not in a folder
	sum := md5.Sum(data)
	options.ContentMD5 = sum[:] // which clouds check
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
		cancel() // so that closing leaves nothing under the name
		_ = w.Close()
		return err
	}
	if err := w.Close(); err != nil || file == nil {
		return err
	}
	return s.syncFolders(filepath.Dir(file.Name()))
}

// syncFolders writes the names in a folder of the store to the disk, and those of
// the folders it is in.
func (s *Store) syncFolders(folder string) error {
	if s.folder == "" || runtime.GOOS == "windows" {
		return nil // it is not ours to know, or cannot be asked for
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

// Read returns the bytes under a name. The error is ErrNotFound, or one of
// the store, ErrAway as a rule.
func (s *Store) Read(ctx context.Context, name string) ([]byte, error) {
	data, err := s.bucket.ReadAll(ctx, name)
	return data, explain("read", name, err)
}

// Names yields the names that begin with a prefix, in the order of their bytes.
// An error comes last.
func (s *Store) Names(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		list := s.bucket.List(&blob.ListOptions{Prefix: prefix})
		for {
			object, err := list.Next(ctx)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield("", explain("list", prefix, err))
				return
			}
			// In a folder, a write that is not done yet, or never will be.
			if strings.HasSuffix(object.Key, ".tmp") {
				continue
			}
			if !yield(object.Key, nil) {
				return
			}
		}
	}
}

// explain makes an error of a driver one of ours, or nil.
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

// storeError is an error of a driver, in words that hold no credential.
type storeError struct {
	text string
	err  error
}

func (e *storeError) Error() string { return e.text }
func (e *storeError) Unwrap() error { return e.err }

func (e *storeError) Is(target error) bool {
	return target == ErrAway && gcerrors.Code(e.err) != gcerrors.PermissionDenied
}
