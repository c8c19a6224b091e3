package main

import (
	"cmp"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// ledger is what a client knows from the events of its context, read one by
// one: which messages arrived, and up to where they are settled.
type ledger struct {
	read     int             // number of events
	awaited  map[string]bool // client ids that Temporal took and that were not read yet
	newest   int             // counter of the newest message
	through  int             // counter of the newest event that the newest request had seen
	settled  int             // counter up to which messages are answered, or go without
	isOpened bool            // a request runs
}

// ledger is that of a client who has read nothing.
func (c *client) ledger() ledger {
	l := ledger{awaited: map[string]bool{}}
	for _, m := range c.sent {
		if !c.unsure[m.id] {
			l.awaited[m.id] = true
		}
	}
	return l
}

func (l *ledger) note(e event.Event) {
	l.read++
	switch body := e.Body.(type) {
	case event.UserMessage:
		l.newest = event.Counter(e.ID)
		delete(l.awaited, e.ClientEventID)
	case event.LLMRequestStarted:
		l.isOpened = true
		l.through = event.Counter(body.ThroughEventID)
	case event.LLMRequestCompleted:
		l.end(cmp.Or(event.Counter(body.ThroughEventID), l.through))
	case event.LLMRequestInterrupted:
		l.end(cmp.Or(event.Counter(body.ThroughEventID), l.through))
	case event.LLMRequestFailed:
		l.end(cmp.Or(event.Counter(body.ThroughEventID), l.through))
	}
}

func (l *ledger) end(settled int) {
	l.isOpened = false
	l.settled = max(l.settled, settled)
}

// rests reports whether all that was sent has arrived and is settled.
func (l ledger) rests() bool { return len(l.awaited) == 0 && !l.isOpened && l.newest <= l.settled }
