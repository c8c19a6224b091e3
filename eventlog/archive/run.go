package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/seed-9ed7edd4/chronicle/eventlog/blobs"
)

// ErrNoRun: the run is not registered.
var ErrNoRun = errors.New("the run is not registered in the archive")

// Run is the registration of a run, written before the run records anything and
// never changed.
type Run struct {
	Version int `json:"version"`
	// ID is the id of the run in Temporal, or one of [ImportID] and [ForkID].
	ID string `json:"runId"`
	// After is the counter of the last event that stands before its own.
	After int `json:"after"`
	// Behind is the run whose log it continues; "" for the first one.
	Behind string `json:"behind,omitempty"`
	// Origin is set for the first run of a fork, which has no events of its own.
	Origin *Origin `json:"origin,omitempty"`
}

// Origin says where the first events of a fork are.
type Origin struct {
	// ContextName is the context that was forked, and RunID the run whose log it
	// was.
	ContextName string `json:"contextName"`
	RunID       string `json:"runId"`
	// At is the counter of the last event that both have.
	At int `json:"at"`
}

const (
	// ForkID is the id of the run that stands for the origin of a fork.
	ForkID = "fork"
	// ImportID begins the id of the run that stands for an import.
	ImportID = "import-"
)

// Part is what a run contributes to a log: its events behind After, through
// Through, which is math.MaxInt for the newest run.
type Part struct {
	// ContextName is the context of the run: before a fork another one.
	ContextName    string
	RunID          string
	After, Through int

	spans []span
}

// Reach is the counter up to which the archive has every event of the part.
func (p Part) Reach() int {
	reach := p.After
	for _, s := range cover(p.spans, p.After+1, p.Through) {
		reach = min(s.last, p.Through)
	}
	return reach
}

// Segments is how many segments of the archive the part needs.
func (p Part) Segments() int { return len(cover(p.spans, p.After+1, p.Through)) }

// maxForks is the depth of forks of forks that readers follow.
const maxForks = 100

// readers is how many objects of a store are read at once.
const readers = 64

// Register registers a run as the next one behind those in the folder. The error
// is blobs.ErrExists when another run was faster: list the folder again.
func (f *Folder) Register(ctx context.Context, run Run) error {
	run.Version = version
	data, err := json.Marshal(run)
	if err != nil {
		return err
	}
	if err := f.archive.store.WriteOnce(ctx, runEntry(f.contextName, f.newest+1), data); err != nil {
		return fmt.Errorf("register run %s of context %s: %w", run.ID, f.contextName, err)
	}
	return nil
}

// Run finds the registration of a run; with "", that of the newest. The error is
// ErrNoRun when there is none.
func (f *Folder) Run(ctx context.Context, runID string) (Run, error) {
	chain, err := f.chain(ctx, runID, math.MaxInt)
	if err != nil {
		return Run{}, err
	}
	return chain[len(chain)-1], nil
}

// View returns the parts of the log of a run, oldest first, as far back as is
// needed to have the events behind a counter. With "" it is the log of the newest
// run. The error is ErrNoRun when there is no such run.
func (f *Folder) View(ctx context.Context, runID string, after int) ([]Part, error) {
	return f.view(ctx, runID, after, 0)
}

// view is View at a fork depth.
func (f *Folder) view(ctx context.Context, runID string, after, depth int) ([]Part, error) {
	chain, err := f.chain(ctx, runID, after)
	if err != nil {
		return nil, err
	}
	parts := partsOf(f.contextName, chain)
	for i := range parts {
		parts[i].spans = f.spans[parts[i].RunID]
	}
	origin := chain[0].Origin
	if origin == nil {
		return parts, nil
	}
	var inherited []Part
	if after < origin.At {
		if depth == maxForks {
			return nil, fmt.Errorf("read the origin of context %s: more than %d forks of forks, or a circle", f.contextName, maxForks)
		}
		of, err := f.archive.Folder(ctx, origin.ContextName)
		if err == nil {
			inherited, err = of.view(ctx, origin.RunID, after, depth+1)
		}
		if err != nil {
			return nil, fmt.Errorf("read the origin of context %s: %w", f.contextName, err)
		}
	}
	return append(Through(inherited, min(origin.At, parts[0].Through)), parts[1:]...), nil
}

// partsOf is the log of a chain of runs, oldest first.
func partsOf(contextName string, chain []Run) []Part {
	parts := make([]Part, len(chain))
	through := math.MaxInt
	for i, run := range slices.Backward(chain) {
		parts[i] = Part{ContextName: contextName, RunID: run.ID, After: run.After, Through: through}
		through = min(through, run.After)
	}
	return parts
}

// Through cuts a log behind an event.
func Through(parts []Part, through int) []Part {
	parts = slices.Clone(parts)
	for i := range parts {
		parts[i].Through = min(parts[i].Through, through)
	}
	return parts
}

// chain is a run and those whose log it continues, oldest first, as far back as
// events behind a counter need it.
func (f *Folder) chain(ctx context.Context, runID string, after int) ([]Run, error) {
	var chain []Run
	want := runID
	// As a rule the newest ones are enough.
	for last, batch := f.newest, 4; last > 0; batch = readers {
		first := max(1, last-batch+1)
		runs, err := f.runs(ctx, first, last)
		if err != nil {
			return nil, err
		}
		for _, run := range slices.Backward(runs) {
			if want != "" && run.ID != want {
				continue
			}
			chain = append(chain, run)
			if run.Behind == "" || run.After <= after {
				slices.Reverse(chain)
				return chain, nil
			}
			want = run.Behind
		}
		last = first - 1
	}
	if len(chain) == 0 {
		return nil, fmt.Errorf("context %s, run %q: %w", f.contextName, runID, ErrNoRun)
	}
	return nil, fmt.Errorf("context %s: run %s %w: it continues run %s, which is not registered",
		f.contextName, chain[len(chain)-1].ID, blobs.ErrCorrupt, want)
}

// runs reads the registrations with the numbers from first to last.
func (f *Folder) runs(ctx context.Context, first, last int) ([]Run, error) {
	runs := make([]Run, last-first+1)
	errs := make([]error, len(runs))
	var all sync.WaitGroup
	for i := range runs {
		all.Go(func() { runs[i], errs[i] = f.run(ctx, first+i) })
	}
	all.Wait()
	return runs, errors.Join(errs...)
}

func (f *Folder) run(ctx context.Context, number int) (Run, error) {
	var run Run
	data, err := f.archive.store.Read(ctx, runEntry(f.contextName, number))
	if err == nil {
		if err = json.Unmarshal(data, &run); err != nil || run.ID == "" {
			err = fmt.Errorf("its entry %w", blobs.ErrCorrupt)
		} else if run.Version != version {
			err = fmt.Errorf("it has the format %d and this program reads %d: use a newer one", run.Version, version)
		}
	}
	if err != nil {
		return run, fmt.Errorf("read run %d of context %s in the archive: %w", number, f.contextName, err)
	}
	return run, nil
}
