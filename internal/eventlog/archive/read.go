package archive

import (
	"context"
	"iter"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Reader reads the archived events of a log. It prefetches more segments as it reads on: one page
// takes few requests, and a long log few round trips.
type Reader struct {
	archive *Archive
	parts   []Part
	ctx     context.Context
	cancel  context.CancelFunc
	jobs    []*job // in the order of the log
	ahead   int    // the number of segments to fetch concurrently
}

type job struct {
	part int
	span span
	from int // counter of the first event to yield

	fetched chan struct{} // nil until started; the fields below are set when it closes
	segment Segment
	packed  []byte
	err     error
}

const maxConcurrentReads = 64 // objects of a store

// Read returns a reader of parts after a counter. Close it after use.
func (a *Archive) Read(ctx context.Context, parts []Part, after int) *Reader {
	r := &Reader{archive: a, parts: parts, ahead: 1}
	r.ctx, r.cancel = context.WithCancel(ctx)
	for i, p := range parts {
		from := max(p.After, after) + 1
		for _, s := range cover(p.spans, from, p.Through) {
			r.jobs = append(r.jobs, &job{part: i, span: s, from: from})
			from = s.last + 1
		}
	}
	return r
}

// Close stops all reads.
func (r *Reader) Close() { r.cancel() }

// Part yields the archived events of parts[i], up to the first gap. Read parts in order, each once.
// An error is a [*SegmentError], and the last element.
func (r *Reader) Part(i int) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for len(r.jobs) > 0 && r.jobs[0].part <= i {
			if r.jobs[0].part < i { // the rest of a part that failed
				r.jobs = r.jobs[1:]
				continue
			}
			r.prefetch()
			j := r.jobs[0]
			r.jobs = r.jobs[1:]
			p := r.parts[i]
			<-j.fetched
			raw, err := j.packed, j.err
			if err == nil {
				raw, err = j.segment.unpack(raw)
			}
			if err == nil {
				for e, failed := range decode(p.ContextName, j.span, raw, j.from, p.Through) {
					if err = failed; err == nil && !yield(e, nil) {
						return
					}
				}
			}
			if err != nil {
				yield(event.Event{}, &SegmentError{p.ContextName, j.span.first, j.span.last, err})
				return
			}
		}
	}
}

func (r *Reader) prefetch() {
	for _, j := range r.jobs[:min(r.ahead, len(r.jobs))] {
		if j.fetched != nil {
			continue
		}
		j.fetched = make(chan struct{})
		p := r.parts[j.part]
		go func() {
			j.segment, j.packed, j.err = r.archive.fetch(r.ctx, p.ContextName, p.RunID, j.span)
			close(j.fetched)
		}()
	}
	r.ahead = min(4*r.ahead, maxConcurrentReads)
}
