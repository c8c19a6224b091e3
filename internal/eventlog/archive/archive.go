package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
)

// ErrConflict reports that a segment exists with different events.
var ErrConflict = errors.New("the archive already has different events for these ids")

// Archive stores logs in a blob store. It is safe for concurrent use, also by several processes.
type Archive struct{ store *blobs.Store }

// New returns the archive in a store. It does not close the store.
func New(store *blobs.Store) *Archive { return &Archive{store} }

// Store returns the store of the archive.
func (a *Archive) Store() *blobs.Store { return a.store }

// Write stores consecutive events of a run as one segment. Repeating it changes nothing. It rejects
// events with a gap or of another context. [ErrConflict]: the segment exists with other events.
func (a *Archive) Write(ctx context.Context, contextName, runID string, events []event.Event) (Segment, error) {
	raw, err := encode(contextName, events)
	if err != nil {
		return Segment{}, fmt.Errorf("archive context %s: %w", contextName, err)
	}
	first := event.Counter(events[0].ID)
	s := span{first, first + len(events) - 1}
	segment, err := a.write(ctx, contextName, runID, s, raw)
	if err != nil {
		return Segment{}, fmt.Errorf("archive events %d to %d of context %s: %w", s.first, s.last, contextName, err)
	}
	return segment, nil
}

func (a *Archive) write(ctx context.Context, contextName, runID string, s span, raw []byte) (Segment, error) {
	packed := encoder.EncodeAll(raw, nil)
	ref, err := a.Blobs(contextName).Put(ctx, packed)
	if err != nil {
		return Segment{}, err
	}
	segment := Segment{Version: version, First: s.first, Last: s.last, Blob: ref, Bytes: len(packed), RawBytes: len(raw)}
	entry, err := json.Marshal(segment)
	if err != nil {
		return Segment{}, err
	}
	err = a.store.WriteOnce(ctx, s.entry(contextName, runID), entry)
	if errors.Is(err, blobs.ErrExists) {
		// Another version of the compressor may have written the same events.
		var existing []byte
		existing, err = a.lines(ctx, contextName, runID, s)
		if err == nil && !bytes.Equal(existing, raw) {
			err = ErrConflict
		}
	}
	return segment, err
}
