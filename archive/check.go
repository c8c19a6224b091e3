package archive

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/seed-9ed7edd4/chronicle/blobs"
	"github.com/seed-9ed7edd4/chronicle/event"
)

// Problem is something that is wrong with an archive.
type Problem struct {
	// Place is the name of the entry in the store, or of the folder of the
	// context.
	Place string
	// Text says what is wrong.
	Text string
}

func (p Problem) String() string { return p.Place + ": " + p.Text }

// Check reads all that the archive has of a context and yields what is wrong
// with it, at most one problem for each entry: one that cannot be read, a blob
// that is missing or does not have its hash, another number of events, ids or
// parents that do not follow each other, gaps. It looks at no segment of a
// fork's origin, but whether the origin has all that the fork needs. An error
// comes last, and means that the store is away.
func (a *Archive) Check(ctx context.Context, contextName string) iter.Seq2[Problem, error] {
	return func(yield func(Problem, error) bool) {
		folder, err := a.list(ctx, contextName)
		if err != nil {
			yield(Problem{}, err)
			return
		}
		report := func(place string, problem error) bool {
			switch {
			case problem == nil:
				return true
			case errors.Is(problem, blobs.ErrAway):
				yield(Problem{}, problem)
				return false
			}
			var segment *SegmentError
			if errors.As(problem, &segment) {
				problem = segment.Err // the place says which
			}
			return yield(Problem{place, problem.Error()}, nil)
		}
		for _, name := range folder.strange {
			if !report(name, errors.New("no archive has such an entry")) {
				return
			}
		}
		next := 1
		if folder.isFork {
			var problem error
			next, problem = a.checkOrigin(ctx, contextName)
			if !report(originEntry(contextName), problem) {
				return
			}
		}
		for _, s := range folder.spans {
			if s.first > next && !report(folderOf(contextName), fmt.Errorf("events %d to %d are missing", next, s.first-1)) {
				return
			}
			next = max(next, s.last+1)
			if !report(s.entry(contextName), a.checkSegment(ctx, contextName, s)) {
				return
			}
		}
	}
}

// checkOrigin returns the counter of the first event that a fork has of its own,
// or 1 when its entry does not say.
func (a *Archive) checkOrigin(ctx context.Context, contextName string) (int, error) {
	origin, err := a.origin(ctx, contextName, 0)
	if err != nil {
		return 1, err
	}
	reach, err := a.reach(ctx, origin.ContextName, 1)
	if err == nil && reach < origin.At {
		err = fmt.Errorf("the archive has the events of its origin %s up to %d, and it needs %d", origin.ContextName, reach, origin.At)
	}
	return origin.At + 1, err
}

func (a *Archive) checkSegment(ctx context.Context, contextName string, s span) error {
	parent := ""
	if s.first > 1 {
		parent = event.FormatID(contextName, s.first-1)
	}
	for e, err := range a.events(ctx, contextName, s, s.first) {
		if err != nil {
			return err
		}
		if e.ParentID != parent {
			return fmt.Errorf("event %s has the parent %q where %q came before it", e.ID, e.ParentID, parent)
		}
		parent = e.ID
	}
	return nil
}
