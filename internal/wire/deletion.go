package wire

import (
	"slices"
	"time"
)

// Forks says what a deletion does with the forks of the context.
type Forks string

const (
	// KeepForks gives each fork a copy of what it shares with the deleted context. It is the default.
	KeepForks Forks = "keep"
	// DeleteForks deletes the forks, and their forks, too.
	DeleteForks Forks = "delete"
)

// Values returns the known values.
func (Forks) Values() []Forks { return []Forks{KeepForks, DeleteForks} }

// Delete is the input of [WorkflowDelete].
type Delete struct {
	ContextName string `json:"contextName"`
	Forks       Forks  `json:"forks,omitempty"` // "": [KeepForks]
	// InactiveSince keeps a context that was active later, is answering or waits; zero: it is deleted anyway.
	InactiveSince time.Time `json:"inactiveSince,omitzero"`
}

// Memo returns the memo of the deletion, for [ForksOf].
func (d Delete) Memo() map[string]any {
	if !d.InactiveSince.IsZero() {
		return nil
	}
	return map[string]any{MemoForks: d.Forks}
}

// Deletion is the receipt of a deletion, the result of [WorkflowDelete].
type Deletion struct {
	ContextName string    `json:"contextName"`
	StartedAt   time.Time `json:"startedAt"`
	EndedAt     time.Time `json:"endedAt,omitzero"` // absent while it runs
	// Why the deletion ended before it was complete, and what to do; a new one resumes it.
	Error   string    `json:"error,omitempty"`
	Removed []Removed `json:"removed"` // so far, with that of deleted forks
	// Names of the first 1,000 forks that have a copy of what they shared.
	KeptForks []string `json:"keptForks,omitempty"`
	// Names of the first 1,000 forks that were deleted, too, with forks of forks. Each has a receipt.
	DeletedForks []string `json:"deletedForks,omitempty"`
	// What remains by design, in words.
	Remains []string `json:"remains,omitempty"`
}

// Removed is what a deletion removed from one place.
type Removed struct {
	Place Place `json:"place"`
	// Count omits what an interrupted attempt removed.
	Count int       `json:"count"`
	At    time.Time `json:"at,omitzero"` // of the last removal; absent for none
}

// Place is where a context is stored.
type Place string

// Places of a context.
const (
	PlaceRuns        Place = "runs"        // histories in Temporal
	PlaceSchedules   Place = "schedules"   // of messages, with their own histories
	PlaceSends       Place = "sends"       // histories of scheduled messages
	PlaceEvaluations Place = "evaluations" // histories of evaluations, and of checks of tools
	PlaceLog         Place = "log"         // segments and registrations in the blob store
	PlaceBlobs       Place = "blobs"       // attachments, results and payloads in the blob store
	PlaceCursors     Place = "cursors"     // positions of hooks in the blob store
	PlaceForks       Place = "forks"       // entries in lists of forks in the blob store
)

// Values returns the known values.
func (Place) Values() []Place {
	return []Place{PlaceRuns, PlaceSchedules, PlaceSends, PlaceEvaluations, PlaceLog, PlaceBlobs, PlaceCursors, PlaceForks}
}

// StillActive is [Deletion.Error] of a context that was active after [Delete.InactiveSince].
const StillActive = "the context is active again: nothing was deleted"

// Remains is [Deletion.Remains].
var Remains = []string{
	"the name and this receipt, in the workflow of the deletion until the retention of the namespace ends",
	"ids, names and amounts, without content, in budgets, logs, traces and metrics",
	"deleted rows and objects, until the database, versioned buckets and backups discard them",
	"what hooks, tools and model providers received",
}

// maxForkNames bounds the lists of forks.
const maxForkNames = 1000

// Keep adds a fork that was kept.
func (d *Deletion) Keep(fork string) { d.KeptForks = addNames(d.KeptForks, fork) }

// AddFork adds the receipt of a fork that was deleted.
func (d *Deletion) AddFork(fork Deletion) {
	d.KeptForks = addNames(d.KeptForks, fork.KeptForks...)
	d.DeletedForks = addNames(d.DeletedForks, append([]string{fork.ContextName}, fork.DeletedForks...)...)
	for _, r := range fork.Removed {
		d.Add(r.At, r)
	}
}

func addNames(names []string, more ...string) []string {
	return append(names, more[:min(len(more), max(0, maxForkNames-len(names)))]...)
}

// Add adds removed entries to the receipt.
func (d *Deletion) Add(at time.Time, removed ...Removed) {
	for _, r := range removed {
		i := slices.IndexFunc(d.Removed, func(other Removed) bool { return other.Place == r.Place })
		if i < 0 {
			i = len(d.Removed)
			d.Removed = append(d.Removed, Removed{Place: r.Place})
		}
		if r.Count > 0 {
			d.Removed[i].Count += r.Count
			if at.After(d.Removed[i].At) {
				d.Removed[i].At = at
			}
		}
	}
}
