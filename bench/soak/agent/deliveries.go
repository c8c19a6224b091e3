package agent

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
)

// Observe is the hook that receives the events of all contexts.
const Observe = "observe"

// Every failsEvery-th delivery fails after it was recorded, and is repeated.
const failsEvery = 16

// Delivered are the events of a context that the hook Observe received. Duplicates, replaced events and
// late deliveries are handled as the comment of [hook.Events] requires.
type Delivered struct {
	Events   []DeliveredEvent
	Repeated int // events that were received again
	Ignored  int // events of abandoned branches that arrived late
	Problems []error
	epoch    int // the highest
}

// DeliveredEvent is an event without its content.
type DeliveredEvent struct {
	ID, RunID string
	Hash      [sha256.Size]byte // see [Hash]
}

// Hash identifies the content of an event.
func Hash(e event.Event) ([sha256.Size]byte, error) {
	data, err := e.MarshalJSON()
	return sha256.Sum256(data), err
}

// add takes a delivery. Events that do not follow the ones before are problems.
func (d *Delivered) add(events hook.Events) error {
	if len(events.Events) == 0 {
		return errors.New("a delivery has no events")
	}
	first, last := events.Events[0], events.Events[len(events.Events)-1]
	if events.Cursor != last.ID || event.Counter(events.After) != event.Counter(first.ID)-1 {
		d.Problems = append(d.Problems, fmt.Errorf("the delivery of %s to %s says that it begins after %q and ends with %s", first.ID, last.ID, events.After, events.Cursor))
	}
	if events.Epoch < d.epoch {
		d.Ignored += len(events.Events)
		return nil
	}
	d.epoch = events.Epoch
	for _, e := range events.Events {
		hash, err := Hash(e)
		if err != nil {
			return err
		}
		n := event.Counter(e.ID)
		switch {
		case n < 1 || n > len(d.Events)+1:
			d.Problems = append(d.Problems, fmt.Errorf("%s of run %s in epoch %d was delivered after %d events", e.ID, events.RunID, events.Epoch, len(d.Events)))
			continue
		case n <= len(d.Events) && d.Events[n-1].RunID == events.RunID:
			d.Repeated++
			if d.Events[n-1].Hash != hash {
				d.Problems = append(d.Problems, fmt.Errorf("%s of run %s was delivered again with another content", e.ID, events.RunID))
			}
			continue
		}
		d.Events = append(d.Events[:n-1:n-1], DeliveredEvent{e.ID, events.RunID, hash})
	}
	return nil
}

// DeliveredTo returns the events of a context that were delivered so far.
func (e *Executions) DeliveredTo(contextName string) Delivered {
	e.mu.Lock()
	defer e.mu.Unlock()
	d := e.delivered[contextName]
	if d == nil {
		return Delivered{}
	}
	copied := *d
	copied.Events, copied.Problems = slices.Clone(d.Events), slices.Clone(d.Problems)
	return copied
}

func (e *Executions) deliver(w http.ResponseWriter, r *http.Request) {
	var events hook.Events
	if err := json.NewDecoder(r.Body).Decode(&events); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	d := e.delivered[events.ContextName]
	if d == nil {
		d = &Delivered{}
		e.delivered[events.ContextName] = d
	}
	if err := d.add(events); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if e.deliveries++; e.deliveries%failsEvery == 0 {
		http.Error(w, "deliver it again", http.StatusServiceUnavailable)
	}
}

func observe(url string) hook.Hook {
	return hook.Hook{Name: Observe, FromStart: true, OnEvent: func(ctx context.Context, events hook.Events) error {
		_, err := post(ctx, url+deliveryPath, events)
		return err
	}}
}
