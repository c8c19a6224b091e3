package main

import (
	"cmp"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// progress tracks which messages are in the log and which are done: answered, or without an answer
// for a reason in the log.
type progress struct {
	read     int             // number of events
	rewinds  int             // of the view that was read
	expected map[string]bool // keys of missing messages; true: a rejection counts, too
	newest   int             // counter of the newest message
	through  int             // counter of the newest event that the running request includes
	done     int             // counter through which messages are done
	isOpen   bool            // a request is running
	isEnded  bool            // the session has ended
}

func (j *journal) progress() progress {
	p := progress{expected: map[string]bool{}}
	for i, m := range j.sent {
		if expected := j.expect(i); expected.must {
			p.expected[m.key] = expected.at == ""
		}
	}
	return p
}

func (p *progress) add(e event.Event) {
	p.read++
	switch body := e.Body.(type) {
	case event.UserMessage:
		p.newest = event.Counter(e.ID)
		delete(p.expected, e.ClientEventID)
	case event.ApprovalDecided, event.ToolResult:
		delete(p.expected, e.ClientEventID)
	case event.InputRejected:
		if p.expected[e.ClientEventID] {
			delete(p.expected, e.ClientEventID)
		}
	case event.SessionStarted:
		if !p.isEnded {
			// The run of the previous session was terminated; its messages get no answer.
			p.done = event.Counter(e.ID)
		}
		p.isEnded = false
	case event.SessionEnded:
		p.isEnded = true
	case event.LLMRequestStarted:
		p.isOpen = true
		p.through = event.Counter(body.ThroughEventID)
	case event.RequestEnd:
		p.end(body.Unanswered())
	}
}

// end ends the running request. Messages up to the event with the id through are done; "": those that
// the request included.
func (p *progress) end(through string) {
	p.isOpen = false
	p.done = max(p.done, cmp.Or(event.Counter(through), p.through))
}

func (p progress) isIdle() bool { return len(p.expected) == 0 && !p.isOpen && p.newest <= p.done }
