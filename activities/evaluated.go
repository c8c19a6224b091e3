package activities

import (
	"context"
	"slices"
	"sync"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
)

// maxEvaluatedBytes bounds the events that a worker keeps for evaluations. Those after them are read for each question.
const maxEvaluatedBytes = 64 << 20

// evaluatedLog keeps the log of the context that was evaluated last, so that many questions about it read it once.
type evaluatedLog struct {
	mu          sync.Mutex
	contextName string
	events      []event.Event // the beginning of the log
	bytes       int           // of JSON
}

// through returns the events of a log up to a counter.
func (l *evaluatedLog) through(ctx context.Context, log *eventlog.Log, contextName string, counter int) ([]event.Event, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.contextName != contextName {
		l.contextName = contextName
		l.clear()
	}
	events, isReset, err := l.read(ctx, log, counter)
	if isReset {
		l.clear()
		events, _, err = l.read(ctx, log, counter)
	}
	end, _ := slices.BinarySearchFunc(events, counter+1, func(e event.Event, n int) int { return event.Counter(e.ID) - n })
	return events[:end], err
}

func (l *evaluatedLog) clear() { l.events, l.bytes = nil, 0 }

// read reads the events after those that it keeps. It reads the newest of these again: if it differs, the log was reset.
func (l *evaluatedLog) read(ctx context.Context, log *eventlog.Log, counter int) (events []event.Event, isReset bool, err error) {
	events = slices.Clip(l.events)
	from, newest := "", event.Event{}
	if n := len(events); n > 0 {
		newest = events[n-1]
		from = newest.ParentID
	}
	isConfirmed := newest.ID == ""
	for e, err := range log.Events(ctx, l.contextName, from) {
		if err != nil {
			return nil, false, err
		}
		switch {
		case isConfirmed:
			events = append(events, e)
			if data, err := e.MarshalJSON(); err == nil && l.bytes < maxEvaluatedBytes {
				l.bytes += len(data)
				l.events = events
			}
		case e.ID == newest.ID && e.Timestamp.Equal(newest.Timestamp):
			isConfirmed = true
		default:
			return nil, true, nil
		}
		if event.Counter(e.ID) >= counter {
			break
		}
	}
	return events, !isConfirmed, nil
}
