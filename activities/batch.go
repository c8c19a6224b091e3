package activities

import (
	"encoding/json"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
)

// batch collects consecutive events of a run for one call of a hook.
type batch struct {
	through int // counter of the last event of the failed batch to repeat; 0: none
	runID   string
	events  []event.Event
	bytes   int
}

// add returns false if the event belongs to the next batch.
func (b *batch) add(e eventlog.Recorded) bool {
	data, err := json.Marshal(e.Event)
	size := len(data)
	if err != nil {
		size = hook.MaxBatchBytes // unreachable: the event was decoded from JSON
	}
	if n := len(b.events); n > 0 {
		isOver := b.through > 0 && e.Through > b.through
		if n == hook.MaxBatchEvents || b.bytes+size > hook.MaxBatchBytes || e.RunID != b.runID || isOver {
			return false
		}
	}
	b.runID, b.events, b.bytes = e.RunID, append(b.events, e.Event), b.bytes+size
	return true
}

// end returns the position after the first n events.
func (b *batch) end(n int) archive.Position {
	return archive.Position{RunID: b.runID, After: event.Counter(b.events[n-1].ID)}
}

// of returns the events of a batch that is not empty.
func (b *batch) of(contextName string, epoch int) hook.Events {
	events := hook.Events{ContextName: contextName, RunID: b.runID, Epoch: epoch, Cursor: b.events[len(b.events)-1].ID, Events: b.events}
	if first := event.Counter(b.events[0].ID); first > 1 {
		events.After = event.FormatID(contextName, first-1)
	}
	return events
}
