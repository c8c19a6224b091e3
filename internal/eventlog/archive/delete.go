package archive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
)

// Deleted are the numbers of objects that [Archive.Delete] deleted.
type Deleted struct {
	Log     int // segments and registrations of runs
	Blobs   int
	Cursors int
	Forks   int // entries in lists of forks
}

// Delete deletes everything that is stored of a context. Forks lose what they share with it, unless they are detached
// ([Archive.Detach]). The registrations go last, so that an interrupted Delete can be repeated. It is no error if
// nothing is stored.
func (a *Archive) Delete(ctx context.Context, contextName string) (d Deleted, err error) {
	folder, err := a.Folder(ctx, contextName)
	if err != nil {
		return d, err
	}
	origin, err := a.origin(ctx, contextName)
	switch {
	case errors.Is(err, blobs.ErrCorrupt):
		err = nil // the list of the origin then has an entry that nobody takes for a fork
	case err == nil && origin != nil:
		d.Forks++
		err = a.unlistFork(ctx, *origin, contextName)
	}
	remove := func(folder string, count *int) {
		if err == nil {
			var n int
			n, err = a.store.DeleteAll(ctx, folder)
			*count += n
		}
	}
	remove(folderOf(content, contextName), &d.Blobs)
	remove(folderOf(cursors, contextName), &d.Cursors)
	remove(folderOf(forks, contextName), &d.Forks)
	for _, runID := range slices.Sorted(maps.Keys(folder.spans)) {
		remove(folderOf(logs, contextName)+runID+"/", &d.Log)
	}
	remove(folderOf(logs, contextName), &d.Log)
	if err != nil {
		return d, fmt.Errorf("delete the stored context %s: %w", contextName, err)
	}
	return d, nil
}

// IsStored reports whether anything is stored of a context.
func (a *Archive) IsStored(ctx context.Context, contextName string) (bool, error) {
	if err := event.ValidateContextName(contextName); err != nil {
		return false, err
	}
	for _, kind := range []string{logs, content, cursors, forks} {
		for _, err := range a.store.Names(ctx, folderOf(kind, contextName)) {
			return err == nil, err
		}
	}
	return false, nil
}

// Bounds of a segment that Detach writes. They depend on the events alone, so that a repetition writes the same segments.
const (
	detachedEvents = 1000
	detachedBytes  = 4 << 20
)

// ErrLost is the error of [Archive.Detach] for events that the archive lacks or cannot read.
var ErrLost = errors.New("are missing or damaged")

// Detach makes a fork independent of its origin: it copies the events that both share, and the blobs that these refer to,
// to the fork, and removes it from the forks of the origin. It is idempotent, and has no effect on a context that is no
// fork. The error may be an [ErrLost].
func (a *Archive) Detach(ctx context.Context, fork string) error {
	if err := a.detach(ctx, fork); err != nil {
		return fmt.Errorf("detach context %s from its origin: %w", fork, err)
	}
	return nil
}

func (a *Archive) detach(ctx context.Context, fork string) error {
	origin, err := a.Registered(ctx, fork)
	if errors.Is(err, ErrNoRun) {
		return nil
	}
	if err != nil || origin == nil {
		return err
	}
	folder, err := a.Folder(ctx, fork)
	if err == nil && !folder.isDetached(*origin) {
		err = a.copyShared(ctx, fork, folder, *origin)
	}
	if err != nil {
		return err
	}
	return a.unlistFork(ctx, *origin, fork)
}

func (a *Archive) copyShared(ctx context.Context, fork string, folder *Folder, origin Origin) error {
	parts, err := folder.View(ctx, ForkID, 0)
	if errors.Is(err, ErrNoRun) || errors.Is(err, blobs.ErrCorrupt) {
		return lost(1, origin)
	}
	if err != nil {
		return err
	}
	var batch []event.Event
	size, last := 0, 0
	write := func() error {
		if len(batch) == 0 {
			return nil
		}
		_, err := a.Write(ctx, fork, ForkID, batch)
		batch, size = nil, 0
		return err
	}
	r := a.Read(ctx, parts, 0)
	defer r.Close()
	for i := range parts {
		for e, err := range r.Part(i) {
			if err == nil && event.Counter(e.ID) != last+1 || errors.Is(err, blobs.ErrCorrupt) || errors.Is(err, blobs.ErrNotFound) {
				return lost(last+1, origin)
			}
			if err == nil {
				err = a.copyBlob(ctx, fork, e)
			}
			if err != nil {
				return err
			}
			last++
			encoded, err := e.MarshalJSON()
			if err != nil {
				return err
			}
			batch, size = append(batch, e.MovedTo(fork)), size+len(encoded)
			if len(batch) >= detachedEvents || size >= detachedBytes {
				if err := write(); err != nil {
					return err
				}
			}
		}
	}
	if last < origin.At {
		return lost(last+1, origin)
	}
	return write()
}

func lost(first int, origin Origin) error {
	return fmt.Errorf("events %d to %d of the origin %s %w", first, origin.At, origin.ContextName, ErrLost)
}

// copyBlob copies the blob that a shared event refers to. One that is missing, because an import lacks it, stays missing.
func (a *Archive) copyBlob(ctx context.Context, fork string, e event.Event) error {
	ref, err := blobs.ParseRef(e.BlobRef())
	if err != nil {
		return nil // the event refers to none
	}
	data, err := a.Blobs(fork).Get(ctx, ref)
	if errors.Is(err, blobs.ErrNotFound) {
		return nil
	}
	if err == nil {
		_, err = a.Blobs(fork).Put(ctx, data)
	}
	return err
}

// isDetached reports whether the folder of a fork has all events that it shares with its origin.
func (f *Folder) isDetached(origin Origin) bool {
	own := Part{Through: origin.At, spans: f.spans[ForkID]}
	return own.ArchivedThrough() == origin.At
}
