package main

import (
	"cmp"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// ledger follows a log, event by event: which messages arrived, and up to where
// they are settled.
type ledger struct {
	read    int             // number of events
	rewinds int             // of the view that was read
	awaited map[string]bool // keys of the messages that have to arrive and did not yet; true: or a refusal
	newest  int             // counter of the newest message
	through int             // counter of the newest event that the newest request had seen
	settled int             // counter up to which messages are answered, or go without
	isOpen  bool            // a request runs
	isEnded bool            // the session has ended
}

// ledger is that of a client who has read nothing.
func (s *story) ledger() ledger {
	l := ledger{awaited: map[string]bool{}}
	for i, m := range s.sent {
		if s.expect(i).must {
			l.awaited[m.key] = m.outcome != recorded
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
	case event.InputRejected:
		if l.awaited[e.ClientEventID] {
			delete(l.awaited, e.ClientEventID)
		}
	case event.SessionStarted:
		if !l.isEnded {
			// The run of the session before was terminated: what waited for an answer
			// goes without.
			l.settled = event.Counter(e.ID)
		}
		l.isEnded = false
	case event.SessionEnded:
		l.isEnded = true
	case event.LLMRequestStarted:
		l.isOpen = true
		l.through = event.Counter(body.ThroughEventID)
	case event.RequestEnd:
		l.end(body.Unanswered())
	}
}

// end ends the request that runs. What it leaves without an answer goes through
// an event; "": what it was shown.
func (l *ledger) end(through string) {
	l.isOpen = false
	l.settled = max(l.settled, cmp.Or(event.Counter(through), l.through))
}

// rests reports whether all that has to arrive did, and is settled.
func (l ledger) rests() bool { return len(l.awaited) == 0 && !l.isOpen && l.newest <= l.settled }
