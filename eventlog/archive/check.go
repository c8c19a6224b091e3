package archive

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/eventlog/blobs"
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

// Check reads all that the archive has of a context, abandoned branches included,
// and yields what is wrong with it, at most one problem for each entry: one that
// cannot be read, a blob that is missing or does not have its hash, another number
// of events, ids or parents that do not follow each other, gaps. It reads no
// segment of the origin of a fork, but checks that the origin has all that the
// fork needs. An error comes last, and means that the store is away.
func (a *Archive) Check(ctx context.Context, contextName string) iter.Seq2[Problem, error] {
	return func(yield func(Problem, error) bool) {
		f, err := a.Folder(ctx, contextName)
		if err != nil {
			yield(Problem{}, err)
			return
		}
		report := func(place string, problem error) bool {
			switch {
			case problem == nil:
				return true
			case errors.Is(problem, blobs.ErrUnavailable):
				yield(Problem{}, problem)
				return false
			}
			return yield(Problem{place, problem.Error()}, nil)
		}
		for _, name := range f.unknown {
			if !report(name, errUnknownEntry) {
				return
			}
		}
		after := map[string]int{} // of each registered run
		for number := 1; number <= f.newest; number++ {
			run, err := f.run(ctx, number)
			after[run.ID] = run.After
			if err == nil && run.Origin != nil {
				err = f.checkOrigin(ctx, run)
			}
			if !report(runEntry(contextName, number), err) {
				return
			}
		}
		if !f.IsEmpty() {
			parts, err := f.View(ctx, "", 0)
			if !report(folderOf(contextName), err) {
				return
			}
			for _, p := range parts {
				end := p.After
				for _, s := range p.spans {
					end = max(end, s.last)
				}
				if p.ContextName == contextName && p.Through != math.MaxInt && end < p.Through &&
					!report(folderOf(contextName)+p.RunID+"/", fmt.Errorf("events %d to %d are missing", end+1, p.Through)) {
					return
				}
			}
		}
		for _, runID := range slices.Sorted(maps.Keys(f.spans)) {
			next := after[runID] + 1
			for _, s := range f.spans[runID] {
				if _, registered := after[runID]; registered && s.first > next &&
					!report(folderOf(contextName)+runID+"/", fmt.Errorf("events %d to %d are missing", next, s.first-1)) {
					return
				}
				next = max(next, s.last+1)
				if !report(s.entry(contextName, runID), a.checkSegment(ctx, contextName, runID, s)) {
					return
				}
			}
		}
	}
}

func (f *Folder) checkOrigin(ctx context.Context, fork Run) error {
	parts, err := f.View(ctx, fork.ID, 0)
	if err != nil {
		return err
	}
	reach := 0
	for _, p := range parts {
		if reach = p.Reach(); reach < p.Through {
			break
		}
	}
	if reach < fork.Origin.At {
		return fmt.Errorf("the archive has the events of its origin %s up to %d, and it needs %d", fork.Origin.ContextName, reach, fork.Origin.At)
	}
	return nil
}

func (a *Archive) checkSegment(ctx context.Context, contextName, runID string, s span) error {
	raw, err := a.lines(ctx, contextName, runID, s)
	if err != nil {
		return err
	}
	parent := ""
	if s.first > 1 {
		parent = event.FormatID(contextName, s.first-1)
	}
	for e, err := range decode(contextName, s, raw, s.first, s.last) {
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
