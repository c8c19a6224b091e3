package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/klauspost/compress/zstd"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
)

// Segment is the index entry of consecutive events.
type Segment struct {
	Version  int       `json:"version"` // of the format: 1
	First    int       `json:"first"`   // counter of the first event
	Last     int       `json:"last"`
	Blob     blobs.Ref `json:"blob"`     // JSON lines, compressed with zstd (RFC 8878)
	Bytes    int       `json:"bytes"`    // of the blob
	RawBytes int       `json:"rawBytes"` // of the JSON lines
}

const version = 1 // of all entries

// SegmentError reports a segment that cannot be read. Err wraps [blobs.ErrNotFound],
// [blobs.ErrCorrupt] or [blobs.ErrUnavailable], unless access is denied or the format is newer.
type SegmentError struct {
	ContextName string
	First, Last int // event counters
	Err         error
}

func (e *SegmentError) Error() string {
	return fmt.Sprintf("read events %d to %d of context %s in the archive: %v", e.First, e.Last, e.ContextName, e.Err)
}

func (e *SegmentError) Unwrap() error { return e.Err }

// With one goroutine and a fixed level, equal input has equal output.
var (
	encoder = must(zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault)))
	decoder = must(zstd.NewReader(nil))
)

func must[T any](made T, err error) T {
	if err != nil {
		panic(err) // an invalid option
	}
	return made
}

func encode(contextName string, events []event.Event) ([]byte, error) {
	if err := event.ValidateContextName(contextName); err != nil {
		return nil, err
	}
	if len(events) == 0 {
		return nil, errors.New("there are no events to write")
	}
	first := event.Counter(events[0].ID)
	if first == 0 {
		return nil, fmt.Errorf("the event id %q has no counter", events[0].ID)
	}
	var raw bytes.Buffer
	for i, e := range events {
		if err := checkID(e, contextName, first+i); err != nil {
			return nil, err
		}
		line, err := e.MarshalJSON()
		if err != nil {
			return nil, err
		}
		raw.Write(line)
		raw.WriteByte('\n')
	}
	return raw.Bytes(), nil
}

func checkID(e event.Event, contextName string, counter int) error {
	_, local := event.CutTenant(contextName)
	if id := event.FormatID(contextName, counter); e.ID != id || e.ContextName != local {
		return fmt.Errorf("found event %q of context %q (want %q)", e.ID, e.ContextName, id)
	}
	return nil
}

func (a *Archive) readEntry(ctx context.Context, name string, entry any) error {
	data, err := a.store.Read(ctx, name)
	if err != nil {
		return err
	}
	var format struct {
		Version int `json:"version"`
	}
	err = json.Unmarshal(data, &format)
	if err == nil && format.Version > version {
		return fmt.Errorf("format version %d is unsupported (this program reads version %d; use a newer one)", format.Version, version)
	}
	if err == nil {
		err = json.Unmarshal(data, entry)
	}
	if err != nil {
		return fmt.Errorf("its entry %w: %w", blobs.ErrCorrupt, err)
	}
	return nil
}

func (a *Archive) fetch(ctx context.Context, contextName, runID string, s span) (segment Segment, packed []byte, err error) {
	if err := a.readEntry(ctx, s.entry(contextName, runID), &segment); err != nil {
		return segment, nil, err
	}
	if (span{segment.First, segment.Last}) != s {
		return segment, nil, fmt.Errorf("its entry %w: it describes events %d to %d", blobs.ErrCorrupt, segment.First, segment.Last)
	}
	packed, err = a.Blobs(contextName).Folder.Get(ctx, segment.Blob)
	return segment, packed, err
}

func (a *Archive) lines(ctx context.Context, contextName, runID string, s span) ([]byte, error) {
	segment, packed, err := a.fetch(ctx, contextName, runID, s)
	if err != nil {
		return nil, err
	}
	return segment.unpack(packed)
}

func (segment Segment) unpack(packed []byte) ([]byte, error) {
	raw, err := decoder.DecodeAll(packed, nil)
	if err != nil {
		return nil, fmt.Errorf("blob %s %w: %w", segment.Blob, blobs.ErrCorrupt, err)
	}
	if n := bytes.Count(raw, []byte{'\n'}); n != segment.Last-segment.First+1 || len(raw) != segment.RawBytes {
		return nil, fmt.Errorf("blob %s %w: it has %d events in %d bytes (want %d in %d)",
			segment.Blob, blobs.ErrCorrupt, n, len(raw), segment.Last-segment.First+1, segment.RawBytes)
	}
	return raw, nil
}

func decode(contextName string, s span, raw []byte, from, through int) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for n := s.first; n <= min(s.last, through); n++ {
			line, rest, _ := bytes.Cut(raw, []byte{'\n'})
			raw = rest
			if n < from {
				continue
			}
			var e event.Event
			err := e.UnmarshalJSON(line)
			if err == nil {
				err = checkID(e, contextName, n)
			}
			if err != nil {
				err = fmt.Errorf("line %d %w: %w", n-s.first+1, blobs.ErrCorrupt, err)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}
