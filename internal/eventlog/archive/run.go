package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
)

// ErrNoRun reports a run that is not registered.
var ErrNoRun = errors.New("the run is not registered in the archive")

// Run is the registration of a run. It precedes all events of the run and never changes.
type Run struct {
	Version int     `json:"version"`
	ID      string  `json:"runId"`            // from Temporal, or [ForkID], or [ImportID] and a suffix
	After   int     `json:"after"`            // counter of the last event before the run's own
	Behind  string  `json:"behind,omitempty"` // the run that it continues; "": the first
	Origin  *Origin `json:"origin,omitempty"` // for the first run of a fork, which has no events of its own
	// Number is 1 for the first registration in a context, and increases by 1 with each. Set by readers.
	Number int `json:"-"`
}

// Origin references the events that a fork shares with another context.
type Origin struct {
	ContextName string `json:"contextName"` // with its tenant, which is that of the fork
	RunID       string `json:"runId"`
	At          int    `json:"at"` // counter of the last shared event
	// CreatedAt is when the fork was registered, in UTC; zero: unknown.
	CreatedAt time.Time `json:"createdAt,omitzero"`
	// Claim is the name ([ClaimName]) of the claim of the request that created the fork; "": it had no idempotency key.
	Claim string `json:"claim,omitempty"`
}

const (
	ForkID   = "fork"    // run that represents the origin of a fork
	ImportID = "import-" // prefix of runs that represent imports
)

// Part is the range of events that a run contributes to a log: those with counters above After, up
// to Through, which is math.MaxInt for the newest run.
type Part struct {
	ContextName    string // of the run; the origin's in the shared part of a fork
	RunID          string
	After, Through int
	Number         int // of the registration of the run; 0 if unknown

	spans []span
}

// ArchivedThrough returns the counter up to which the archive has all events of the part.
func (p Part) ArchivedThrough() int {
	through := p.After
	for _, s := range cover(p.spans, p.After+1, p.Through) {
		through = min(s.last, p.Through)
	}
	return through
}

// Segments returns the number of segments that a reader of the part needs.
func (p Part) Segments() int { return len(cover(p.spans, p.After+1, p.Through)) }

// MaxForkDepth is the maximum number of origins of a fork: its origin, the origin of that one, and so on.
const MaxForkDepth = 100

// Register registers a run as the successor of the newest one in the folder. It fails with
// [blobs.ErrExists] if another run was registered after the folder was listed. It lists the run of a fork
// among the [Archive.Forks] of its origin first.
func (f *Folder) Register(ctx context.Context, run Run) error {
	if run.Origin != nil {
		if err := f.archive.listFork(ctx, run.Origin.ContextName, f.contextName); err != nil {
			return err
		}
	}
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

// Run returns the registration of a run; "" is the newest run. [ErrNoRun]: there is no such run.
func (f *Folder) Run(ctx context.Context, runID string) (Run, error) {
	chain, err := f.chain(ctx, runID, math.MaxInt)
	if err != nil {
		return Run{}, err
	}
	return chain[len(chain)-1], nil
}

// View returns the parts of the log of a run, in order; "" is the newest run. They contain all
// events after a counter, and may omit earlier ones. [ErrNoRun]: there is no such run.
func (f *Folder) View(ctx context.Context, runID string, after int) ([]Part, error) {
	return f.view(ctx, runID, after, 0)
}

func (f *Folder) view(ctx context.Context, runID string, after, forkDepth int) ([]Part, error) {
	chain, err := f.chain(ctx, runID, after)
	if err != nil {
		return nil, err
	}
	parts := make([]Part, len(chain))
	through := math.MaxInt
	for i, run := range slices.Backward(chain) {
		parts[i] = Part{f.contextName, run.ID, run.After, through, run.Number, f.spans[run.ID]}
		through = min(through, run.After)
	}
	origin := chain[0].Origin
	if origin == nil {
		return parts, nil
	}
	if parts[0].Through = min(parts[0].Through, origin.At); f.isDetached(*origin) {
		return parts, nil
	}
	var shared []Part
	if after < origin.At {
		if forkDepth == MaxForkDepth {
			return nil, fmt.Errorf("read the origin of context %s: fork depth exceeds %d", f.contextName, MaxForkDepth)
		}
		of, err := f.archive.Folder(ctx, origin.ContextName)
		if err == nil {
			shared, err = of.view(ctx, origin.RunID, after, forkDepth+1)
		}
		if err != nil {
			return nil, fmt.Errorf("read the origin of context %s: %w", f.contextName, err)
		}
	}
	return append(Truncate(shared, parts[0].Through), parts[1:]...), nil
}

// Truncate removes the events after a counter from a log.
func Truncate(parts []Part, through int) []Part {
	parts = slices.Clone(parts)
	for i := range parts {
		parts[i].Through = min(parts[i].Through, through)
	}
	return parts
}

// chain returns a run and the runs that it continues, oldest first. It omits continued runs whose last
// event is at or before a counter.
func (f *Folder) chain(ctx context.Context, runID string, after int) ([]Run, error) {
	var chain []Run
	want := runID
	// The newest registrations usually suffice.
	for last, batch := f.newest, 4; last > 0; batch = maxConcurrentReads {
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

// Runs returns all registrations in their order, also those of abandoned branches.
func (f *Folder) Runs(ctx context.Context) ([]Run, error) {
	var all []Run
	for first := 1; first <= f.newest; first += maxConcurrentReads {
		runs, err := f.runs(ctx, first, min(f.newest, first+maxConcurrentReads-1))
		if err != nil {
			return nil, err
		}
		all = append(all, runs...)
	}
	return all, nil
}

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

func (f *Folder) run(ctx context.Context, number int) (run Run, err error) {
	err = f.archive.readEntry(ctx, runEntry(f.contextName, number), &run)
	if err == nil && run.ID == "" {
		err = fmt.Errorf("its entry %w: it has no run id", blobs.ErrCorrupt)
	}
	if err != nil {
		return run, fmt.Errorf("read run %d of context %s in the archive: %w", number, f.contextName, err)
	}
	run.Number = number
	return run, nil
}
