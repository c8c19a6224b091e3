package blobs

import (
	"context"
	"fmt"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

// Folder has blobs of its own: the same bytes in two folders are two blobs, and what is deleted in one folder stays in
// the other.
type Folder struct {
	store *Store
	name  string
}

// Folder returns a folder by its name, like "blobs/demo/". The name "" is that of the root.
func (s *Store) Folder(name string) Folder { return Folder{s, name} }

func (f Folder) place(ref Ref) string { return f.name + string(ref) }

// Put stores bytes, unless the folder has them, and returns their reference.
func (f Folder) Put(ctx context.Context, data []byte) (Ref, error) {
	ref := RefOf(data)
	stat, o := begin(ctx, "stat", f.place(ref))
	existing, err := f.store.bucket.Attributes(stat, f.place(ref))
	f.store.end(o, 0, err)
	if err == nil && existing.Size == int64(len(data)) {
		return ref, nil
	}
	// An object of another size is damaged and is replaced.
	if err == nil || gcerrors.Code(err) == gcerrors.NotFound {
		err = f.store.write(ctx, f.place(ref), data, &blob.WriterOptions{ContentType: "application/octet-stream"})
	}
	if err != nil {
		return "", explain("put", string(ref), err)
	}
	return ref, nil
}

// Size returns the size of a blob in bytes, unverified. Its errors are those of [Folder.Get] except ErrCorrupt.
func (f Folder) Size(ctx context.Context, ref Ref) (int64, error) {
	ctx, o := begin(ctx, "stat", f.place(ref))
	attributes, err := f.store.bucket.Attributes(ctx, f.place(ref))
	f.store.end(o, 0, err)
	if err != nil {
		return 0, explain("stat", string(ref), err)
	}
	return attributes.Size, nil
}

// Get returns the bytes of a reference. Errors: [ErrNotFound], [ErrCorrupt], [ErrUnavailable], or
// another error of the driver, such as denied access.
func (f Folder) Get(ctx context.Context, ref Ref) ([]byte, error) {
	data, err := f.store.read(ctx, f.place(ref))
	if err != nil {
		return nil, explain("read", string(ref), err)
	}
	if RefOf(data) != ref {
		return nil, fmt.Errorf("blob %s %w: its content does not match its hash", ref, ErrCorrupt)
	}
	return data, nil
}
