package archive_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
)

// register registers a run after the newest one.
func register(ctx context.Context, a *archive.Archive, contextName string, run archive.Run) error {
	folder, err := a.Folder(ctx, contextName)
	if err == nil {
		err = folder.Register(ctx, run)
	}
	return err
}

// put writes a segment of run A, which it registers in an empty folder.
func put(ctx context.Context, a *archive.Archive, contextName string, events []event.Event) (archive.Segment, error) {
	folder, err := a.Folder(ctx, contextName)
	if err == nil && folder.IsEmpty() && len(events) > 0 {
		err = folder.Register(ctx, archive.Run{ID: "A"})
	}
	if err != nil {
		return archive.Segment{}, err
	}
	return a.Write(ctx, contextName, "A", events)
}

// logOf returns the log of the newest run.
func logOf(ctx context.Context, a *archive.Archive, contextName string, after int) ([]archive.Part, error) {
	folder, err := a.Folder(ctx, contextName)
	if err != nil {
		return nil, err
	}
	parts, err := folder.View(ctx, "", after)
	if errors.Is(err, archive.ErrNoRun) {
		err = nil
	}
	return parts, err
}

// read yields the events of the log of the newest run.
func read(ctx context.Context, a *archive.Archive, contextName string, after int) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		parts, err := logOf(ctx, a, contextName, after)
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		eventsOf(ctx, a, contextName, parts, after)(yield)
	}
}

// eventsOf yields the archived events of a log up to the first gap, under the name of the context.
func eventsOf(ctx context.Context, a *archive.Archive, contextName string, parts []archive.Part, after int) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		r := a.Read(ctx, parts, after)
		defer r.Close()
		for i, p := range parts {
			for e, err := range r.Part(i) {
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

// fork creates a context as a fork of the newest run of another one.
func fork(ctx context.Context, a *archive.Archive, contextName, of string, at int) error {
	folder, err := a.Folder(ctx, of)
	if err != nil {
		return err
	}
	run, err := folder.Run(ctx, "")
	if err == nil {
		err = register(ctx, a, contextName, archive.Run{ID: archive.ForkID, Origin: &archive.Origin{ContextName: of, RunID: run.ID, At: at}})
	}
	return err
}

// archivedThrough returns the counter up to which a log is archived.
func archivedThrough(t testing.TB, a *archive.Archive, contextName string) (through int) {
	t.Helper()
	parts, err := logOf(t.Context(), a, contextName, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		through = max(through, p.ArchivedThrough())
	}
	return through
}
