package blobs

import (
	"bytes"
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
	// ErrUnavailable: the store did not answer, which may pass.
	ErrUnavailable = errors.New("the store is away")
)

// Store keeps blobs. It is safe for concurrent use, also by several processes.
type Store struct {
	bucket *blob.Bucket
	// folder is the folder of the bucket, and root the one of the namespace in it;
	// "" for a bucket that is not in a folder.
	folder, root string

	mu sync.Mutex // guards id
	id string     // "" until it is known
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
// one of the store, ErrUnavailable as a rule.
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
	taken, err := s.create(ctx, name, data)
	if !taken {
		return explain("write", name, err)
	}
	there, err := s.Read(ctx, name)
	if err == nil && !bytes.Equal(there, data) {
		return fmt.Errorf("blob %s %w", name, ErrExists)
	}
	return err
}

// create writes a name that is not taken.
func (s *Store) create(ctx context.Context, name string, data []byte) (taken bool, err error) {
	options := &blob.WriterOptions{ContentType: "application/json"}
	if s.root == "" {
		options.IfNotExist = true
		err = s.write(ctx, name, data, options)
		return gcerrors.Code(err) == gcerrors.FailedPrecondition, err
	}
	// In a folder, gocloud looks for the name and renames later, so two writers may
	// both succeed. Of two links with one name, one fails.
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
// the store, ErrUnavailable as a rule.
func (s *Store) Read(ctx context.Context, name string) ([]byte, error) {
	data, err := s.bucket.ReadAll(ctx, name)
	return data, explain("read", name, err)
}

// Names yields the names that begin with a prefix, in the order of their bytes.
// An error comes last.
func (s *Store) Names(ctx context.Context, prefix string) iter.Seq2[string, error] {
	if s.root != "" {
		return s.files(prefix)
	}
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
			if !yield(object.Key, nil) {
				return
			}
		}
	}
}

// files is Names in a folder. The lists of gocloud come in pages, lose names
// between two pages when a file and a folder begin alike, and fail when a
// temporary file vanishes.
func (s *Store) files(prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var names []string
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
			// A temporary file is a write that is not complete.
			if strings.HasPrefix(name, prefix) && !strings.HasSuffix(name, ".tmp") && !strings.HasSuffix(name, ".attrs") {
				names = append(names, name)
			}
			return err
		})
		if err != nil {
			yield("", explain("list", prefix, err))
			return
		}
		if len(names) == 0 && s.isKnown() {
			// A volume that is not mounted looks like an empty store.
			if _, err := os.Lstat(filepath.Join(s.root, identityName)); err != nil {
				yield("", &storeError{fmt.Sprintf("list blob %s: the identity of the store is gone: %s", prefix, redact(err)), err})
				return
			}
		}
		slices.Sort(names)
		for _, name := range names {
			if !yield(name, nil) {
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
	return target == ErrUnavailable && gcerrors.Code(e.err) != gcerrors.PermissionDenied
}
