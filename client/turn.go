package client

import (
	"cmp"
	"slices"

	"github.com/seed-9ed7edd4/chronicle/event"
)

type turn struct {
	waiting []string    // client event ids that are not in the log yet
	seen    []sentEvent // sent events that are in the log
	last    int         // counter of the newest event of the log
	through int         // counter of the newest event in the newest request
}

type sentEvent struct {
	clientEventID string
	counter       int
	triggers      bool // it requires an answer
}

func newTurn(clientEventIDs []string) turn {
	var t turn
	for _, id := range clientEventIDs {
		if !slices.Contains(t.waiting, id) {
			t.waiting = append(t.waiting, id)
		}
	}
	return t
}

func (t *turn) add(e event.Event) (belongs, ends bool) {
	if counter := event.Counter(e.ID); counter > 0 {
		if counter <= t.last {
			t.rewind(counter)
		}
		t.last = counter
	}
	begun := len(t.seen) > 0
	if e.Tag() == event.TagInputRejected {
		isOwn := slices.Contains(t.waiting, e.ClientEventID)
		return isOwn || begun, isOwn
	}
	if i := slices.Index(t.waiting, e.ClientEventID); i >= 0 && e.ClientEventID != "" {
		t.waiting = slices.Delete(t.waiting, i, i+1)
		t.seen = append(t.seen, sentEvent{e.ClientEventID, event.Counter(e.ID), event.RequiresAnswer(e.Body)})
		return true, len(t.waiting) == 0 && t.trigger() == 0
	}
	switch body := e.Body.(type) {
	case event.LLMRequestStarted:
		t.through = event.Counter(body.ThroughEventID)
	case event.RequestEnd:
		return begun, t.answeredBy(cmp.Or(event.Counter(body.Unanswered()), t.through))
	case event.SessionStarted:
		return begun, begun && body.PreviousRunID != "" // the previous run was terminated
	}
	return begun, false
}

// rewind discards the events from counter on: after a reset, the log continues there with others.
func (t *turn) rewind(counter int) {
	t.seen = slices.DeleteFunc(t.seen, func(e sentEvent) bool {
		if e.counter < counter {
			return false
		}
		t.waiting = append(t.waiting, e.clientEventID)
		return true
	})
}

// trigger is the counter of the newest sent event that requires an answer; 0: none.
func (t *turn) trigger() (counter int) {
	for _, e := range t.seen {
		if e.triggers {
			counter = max(counter, e.counter)
		}
	}
	return counter
}

func (t *turn) answeredBy(through int) bool {
	trigger := t.trigger()
	return trigger > 0 && through >= trigger
}
