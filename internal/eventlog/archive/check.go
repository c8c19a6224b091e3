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
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
)

// Problem is a defect that [Archive.Check] has found.
type Problem struct {
	Place string // name of an object in the store, or of a folder
	Text  string
}

func (p Problem) String() string { return p.Place + ": " + p.Text }

// Check reads all runs and segments of a context, including abandoned branches. Of the events that a
// fork shares with its origin, it checks only that their segments are listed. It yields at most one
// problem per entry: an unreadable or unknown entry, a missing or damaged blob, an id or parent out
// of sequence, or a gap. An error means that the store could not be read, and is the last element.
func (a *Archive) Check(ctx context.Context, contextName string) iter.Seq2[Problem, error] {
	return func(yield func(Problem, error) bool) {
		f, err := a.Folder(ctx, contextName)
		if err != nil {
			yield(Problem{}, err)
			return
		}
		f.check(ctx, func(place string, err error) bool {
			switch {
			case err == nil:
				return true
			case errors.Is(err, blobs.ErrUnavailable):
				yield(Problem{}, err)
				return false
			}
			return yield(Problem{place, err.Error()}, nil)
		})
	}
}

var errUnknownEntry = errors.New("unknown entry")

// check calls report with the result of each check, nil for success, until report returns false.
func (f *Folder) check(ctx context.Context, report func(place string, err error) bool) {
	folder := folderOf(logs, f.contextName)
	reportGap := func(runID string, first, last int) bool {
		return first > last || report(folder+runID+"/", fmt.Errorf("events %d to %d are missing", first, last))
	}
	for _, name := range f.unknown {
		if !report(name, errUnknownEntry) {
			return
		}
	}
	after := map[string]int{} // by registered run
	for number := 1; number <= f.newest; number++ {
		run, err := f.run(ctx, number)
		after[run.ID] = run.After
		if err == nil && run.Origin != nil {
			err = f.checkOrigin(ctx, run)
		}
		if !report(runEntry(f.contextName, number), err) {
			return
		}
	}
	if !f.IsEmpty() {
		parts, err := f.View(ctx, "", 0)
		if !report(folder, err) {
			return
		}
		for _, p := range parts {
			end := p.After
			for _, s := range p.spans {
				end = max(end, s.last)
			}
			if p.ContextName == f.contextName && p.Through != math.MaxInt && !reportGap(p.RunID, end+1, p.Through) {
				return
			}
		}
	}
	for _, runID := range slices.Sorted(maps.Keys(f.spans)) {
		next := after[runID] + 1
		for _, s := range f.spans[runID] {
			if _, registered := after[runID]; registered && !reportGap(runID, next, s.first-1) {
				return
			}
			next = max(next, s.last+1)
			if !report(s.entry(f.contextName, runID), f.checkSegment(ctx, runID, s)) {
				return
			}
		}
	}
}

func (f *Folder) checkOrigin(ctx context.Context, fork Run) error {
	parts, err := f.View(ctx, fork.ID, 0)
	if err != nil {
		return err
	}
	through := 0
	for _, p := range parts {
		if through = p.ArchivedThrough(); through < p.Through {
			break
		}
	}
	if through < fork.Origin.At {
		return fmt.Errorf("events %d to %d of the origin %s are missing", through+1, fork.Origin.At, fork.Origin.ContextName)
	}
	return nil
}

func (f *Folder) checkSegment(ctx context.Context, runID string, s span) error {
	raw, err := f.archive.lines(ctx, f.contextName, runID, s)
	if err != nil {
		return err
	}
	parent := ""
	if s.first > 1 {
		parent = event.FormatID(f.contextName, s.first-1)
	}
	for e, err := range decode(f.contextName, s, raw, s.first, s.last) {
		if err != nil {
			return err
		}
		if e.ParentID != parent {
			return fmt.Errorf("event %s has the parent %q (want %q)", e.ID, e.ParentID, parent)
		}
		parent = e.ID
	}
	return nil
}
