package main

import (
	"crypto/sha256"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/eventlog/blobs"
)

// outcome is what the sender of a message knows.
type outcome int

const (
	// unsure: sending failed, and the message may have arrived.
	unsure outcome = iota
	// stored: Temporal took it, as a signal.
	stored
	// recorded: it is in the log, as eventID.
	recorded
	// refused: the context did not take it, by its delivery policy.
	refused
	// lost: the run was terminated before it recorded the message.
	lost
)

// message is a message that was sent. Its key is its clientEventId.
type message struct {
	key     string
	content [sha256.Size]byte
	// file is an attachment of the same input; "" without one.
	file    blobs.Ref
	outcome outcome
	eventID string
	// unordered: the next message was sent before this one was known to be taken.
	unordered bool
}

// fileID is the clientEventId of the attachment of a message.
func fileID(key string) string { return key + ".file" }

// fault is what a client did to a run of its context.
type fault struct {
	// isReset: the run was reset; else it was terminated.
	isReset bool
	// sent is how many messages were sent before.
	sent int
	// kept is the counter of the last event that a reset did not take back;
	// math.MaxInt when it took back none.
	kept int
}

// story is what a client did to its context.
type story struct {
	name   string
	policy event.Policy
	sent   []message
	faults []fault
	// closed is how often the client asked to close.
	closed int
}

func (s *story) count(isReset bool) (n int) {
	for _, f := range s.faults {
		if f.isReset == isReset {
			n++
		}
	}
	return n
}

// expectation is what has to be true of a message in the log.
type expectation struct {
	// must: it is in the log, or with the policy "reject" a refusal is. mustNot: it
	// is not. Neither: it may be.
	must, mustNot bool
	// at is the id that it has; "": any.
	at string
	// inOrder: it stands behind all such messages that were sent before.
	inOrder bool
}

// expect says what has to be true of the n-th message:
//
//   - one that was recorded stays where it is, whatever is terminated, and whatever
//     is reset to a later point;
//   - one that Temporal stored is recorded, unless a run was terminated since;
//   - a reset to an earlier point takes it back, and then the server delivers it
//     again, later than it came, so that it is as if it was just stored.
func (s *story) expect(n int) expectation {
	m := s.sent[n]
	e := expectation{inOrder: !m.unordered}
	switch m.outcome {
	case unsure:
		return expectation{}
	case refused, lost:
		return expectation{mustNot: true}
	case recorded:
		e.at = m.eventID
	}
	e.must = true
	for _, f := range s.faults {
		switch {
		case f.sent <= n:
		case f.isReset && (e.at == "" || event.Counter(e.at) > f.kept):
			e.at, e.inOrder = "", false
		case !f.isReset && e.at == "":
			e.must, e.inOrder = false, false
		}
	}
	return e
}

// view is a log as a follower is told it. After a reset it goes back.
type view struct {
	events  []event.Event
	rewinds int
}

// tell adds an event. It returns false when events are missing before it.
func (v *view) tell(e event.Event) bool {
	n := event.Counter(e.ID)
	if n < 1 || n > len(v.events)+1 {
		return false
	}
	if n <= len(v.events) {
		v.rewinds++
		v.events = v.events[: n-1 : n-1]
	}
	v.events = append(v.events, e)
	return true
}
