package main

import (
	"crypto/sha256"

	"github.com/seed-9ed7edd4/chronicle/bench/soak/agent"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/eventlog/blobs"
)

type outcome int

const (
	// unknown: sending failed; the message may have been stored.
	unknown outcome = iota
	// stored: Temporal stored it as a signal.
	stored
	// recorded: it is in the log as eventID.
	recorded
	// rejected: the context rejected it, by its delivery policy or because the call has ended.
	rejected
	// lost: the run was terminated before it recorded the message.
	lost
)

// message is a sent message, or an answer to a call: a decision or the result of a client's tool.
// Its key is its client event id.
type message struct {
	key     string
	content [sha256.Size]byte
	// answers: it answers a call, and may be rejected, since the call may have ended.
	answers bool
	// file is an attachment of the same input; "" without one.
	file    blobs.Ref
	outcome outcome
	eventID string
	// unordered: the next message was sent before the outcome of this one was known.
	unordered bool
}

func fileID(key string) string { return key + ".file" }

type fault struct {
	isReset bool
	// sent is the number of messages sent before.
	sent int
	// lastRemaining is the counter of the last event that a reset keeps; math.MaxInt: it keeps all.
	lastRemaining int
}

type journal struct {
	name       string
	policy     event.Policy
	executions []agent.Execution
	sent       []message
	faults     []fault
	closed     int
}

func (j *journal) count(isReset bool) (n int) {
	for _, f := range j.faults {
		if f.isReset == isReset {
			n++
		}
	}
	return n
}

type expectation struct {
	// must: the message, or with the policy "reject" its rejection, is in the log. mustNot:
	// it is not. Neither: both are allowed.
	must, mustNot bool
	// at is its event id; "": any.
	at string
	// inOrder: it follows all such messages that were sent before.
	inOrder bool
}

// A recorded message keeps its id, unless a run was reset to an earlier point. A stored message is
// recorded, unless a run was terminated in the meantime. A reset to an earlier point makes the
// server deliver the message again, as if just stored.
func (j *journal) expect(n int) expectation {
	m := j.sent[n]
	e := expectation{inOrder: !m.unordered}
	switch m.outcome {
	case unknown:
		return expectation{}
	case rejected:
		// A reset delivers it again, and the call may then wait for it.
		return expectation{mustNot: !m.answers || j.count(true) == 0}
	case lost:
		return expectation{mustNot: true}
	case recorded:
		e.at = m.eventID
	}
	e.must = true
	for _, f := range j.faults {
		switch {
		case f.sent <= n:
		case f.isReset && (e.at == "" || event.Counter(e.at) > f.lastRemaining):
			e.at, e.inOrder = "", false
		case !f.isReset && e.at == "":
			e.must, e.inOrder = false, false
		}
	}
	return e
}

// view is the log as a client that follows a context received it. After a reset, new events replace the ones
// from the reset point on.
type view struct {
	events  []event.Event
	rewinds int
}

// add returns false if an event before e is missing.
func (v *view) add(e event.Event) bool {
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
