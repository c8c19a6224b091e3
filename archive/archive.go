package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/seed-9ed7edd4/chronicle/blobs"
	"github.com/seed-9ed7edd4/chronicle/event"
)

// ErrConflict says that the archive has something else in that place.
var ErrConflict = errors.New("the archive has something else there")

// Archive keeps logs in a store. It is safe for concurrent use, also by several
// processes.
type Archive struct{ store *blobs.Store }

// New returns the archive in a store, which it does not close.
func New(store *blobs.Store) *Archive { return &Archive{store} }

// Store is where the archive is.
func (a *Archive) Store() *blobs.Store { return a.store }

// Write stores consecutive events of a context as a segment. Writing them again
// does nothing. It refuses events that do not follow each other or belong to
// another context; ErrConflict means that other events have their numbers.
func (a *Archive) Write(ctx context.Context, contextName string, events []event.Event) (Segment, error) {
	raw, err := encode(contextName, events)
	if err != nil {
		return Segment{}, fmt.Errorf("archive context %s: %w", contextName, err)
	}
	first := event.Counter(events[0].ID)
	s := span{first, first + len(events) - 1}
	segment, err := a.write(ctx, contextName, s, raw)
	if err != nil {
		return Segment{}, fmt.Errorf("archive events %d to %d of context %s: %w", s.first, s.last, contextName, err)
	}
	return segment, nil
}

func (a *Archive) write(ctx context.Context, contextName string, s span, raw []byte) (Segment, error) {
	packed := encoder.EncodeAll(raw, nil)
	ref, err := a.store.Put(ctx, packed)
	if err != nil {
		return Segment{}, err
	}
	segment := Segment{Version: version, First: s.first, Last: s.last, Blob: ref, Bytes: len(packed), RawBytes: len(raw)}
	entry, err := json.Marshal(segment)
	if err != nil {
		return Segment{}, err
	}
	err = a.store.WriteOnce(ctx, s.entry(contextName), entry)
	if errors.Is(err, blobs.ErrExists) {
		return a.same(ctx, contextName, s, raw)
	}
	return segment, err
}

// same is the segment that is there already. Its events may be those in raw
// though its bytes are not: another version of this program wrote them.
func (a *Archive) same(ctx context.Context, contextName string, s span, raw []byte) (Segment, error) {
	segment, err := a.entry(ctx, contextName, s)
	if err != nil {
		return Segment{}, err
	}
	var there []event.Event
	for e, err := range a.events(ctx, contextName, s, s.first) {
		if err != nil {
			return Segment{}, err
		}
		there = append(there, e)
	}
	if written, err := encode(contextName, there); err != nil || !bytes.Equal(written, raw) {
		return Segment{}, ErrConflict
	}
	return segment, nil
}

// Segments lists the segments that make up the log of a context, in order. Where
// some overlap it has the longest that leads on. The events before a fork are
// among the segments of its origin.
func (a *Archive) Segments(ctx context.Context, contextName string) ([]Segment, error) {
	folder, err := a.list(ctx, contextName)
	if err != nil {
		return nil, err
	}
	var segments []Segment
	for _, s := range folder.cover() {
		segment, err := a.entry(ctx, contextName, s)
		if err != nil {
			return nil, err
		}
		segments = append(segments, segment)
	}
	return segments, nil
}

// Last is the counter of the newest event of a context in the archive; 0 when
// there is none.
func (a *Archive) Last(ctx context.Context, contextName string) (int, error) {
	folder, err := a.list(ctx, contextName)
	if err != nil {
		return 0, err
	}
	last := 0
	if folder.isFork {
		origin, err := a.origin(ctx, contextName, 0)
		if err != nil {
			return 0, err
		}
		last = origin.At
	}
	for _, s := range folder.spans {
		last = max(last, s.last)
	}
	return last, nil
}
