package archive

import (
	"context"
	"iter"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Reader reads what the archive has of a log. The segments that come next are
// fetched ahead: the more the reader has read, the more at once, so that one that
// wants a page fetches few, and one that wants a long log waits for few round trips.
type Reader struct {
	archive *Archive
	ctx     context.Context
	cancel  context.CancelFunc
	jobs    []*job
	started int
	ahead   int // how many segments are fetched at once
}

// job is one segment to fetch.
type job struct {
	part    Part
	span    span
	from    int
	fetched chan struct{}
	segment Segment
	packed  []byte
	err     error
}

// Read prepares to read parts of a log behind a counter. The reader is to be
// closed.
func (a *Archive) Read(ctx context.Context, parts []Part, after int) *Reader {
	r := &Reader{archive: a, ahead: 1}
	r.ctx, r.cancel = context.WithCancel(ctx)
	for _, p := range parts {
		from := max(p.After, after) + 1
		for _, s := range cover(p.spans, from, p.Through) {
			r.jobs = append(r.jobs, &job{part: p, span: s, from: from, fetched: make(chan struct{})})
			from = s.last + 1
		}
	}
	return r
}

// Close ends what is being fetched.
func (r *Reader) Close() { r.cancel() }

// Part yields the archived events of a part, up to the first gap. Parts are read
// in order, each once. An error comes last, a [*SegmentError].
func (r *Reader) Part(p Part) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for len(r.jobs) > 0 {
			j := r.jobs[0]
			if j.part.ContextName != p.ContextName || j.part.RunID != p.RunID {
				return
			}
			r.prefetch()
			r.ahead = min(4*r.ahead, readers)
			r.jobs = r.jobs[1:]
			r.started--
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
				r.skip(p)
				yield(event.Event{}, &SegmentError{p.ContextName, j.span.first, j.span.last, err})
				return
			}
		}
	}
}

// skip drops what is left of a part.
func (r *Reader) skip(p Part) {
	for len(r.jobs) > 0 && r.jobs[0].part.ContextName == p.ContextName && r.jobs[0].part.RunID == p.RunID {
		r.jobs = r.jobs[1:]
		r.started = max(0, r.started-1)
	}
}

// prefetch starts to fetch what comes next.
func (r *Reader) prefetch() {
	for ; r.started < min(r.ahead, len(r.jobs)); r.started++ {
		j := r.jobs[r.started]
		go func() {
			j.segment, j.packed, j.err = r.archive.fetch(r.ctx, j.part.ContextName, j.part.RunID, j.span)
			close(j.fetched)
		}()
	}
}

// Events yields the archived events of a log that [Folder.View] described, behind
// a counter, as those of a context, up to the first gap.
func (a *Archive) Events(ctx context.Context, contextName string, parts []Part, after int) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		r := a.Read(ctx, parts, after)
		defer r.Close()
		for _, p := range parts {
			for e, err := range r.Part(p) {
				if err == nil && event.Counter(e.ID) != after+1 {
					return
				}
				after++
				if !yield(e.MovedTo(contextName), err) || err != nil {
					return
				}
			}
			if after < p.Through {
				return
			}
		}
	}
}
