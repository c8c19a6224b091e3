package main

import (
	"cmp"
	"crypto/sha256"
	"fmt"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

type outcome int

const (
	// unknown: sending failed; the input may have been stored.
	unknown outcome = iota
	// stored: Temporal stored it as a signal.
	stored
	// recorded: it is in the log as eventID.
	recorded
	// rejected: the context rejected it, by its delivery policy or because the call has ended.
	rejected
)

func (o outcome) String() string {
	return [...]string{"of unknown outcome", "stored", "recorded", "rejected"}[o]
}

// message is a sent message, or an answer to a call. Its key is its client event id.
type message struct {
	key      string
	content  [sha256.Size]byte
	isAnswer bool // it may be rejected, since the call may have ended
	outcome  outcome
	eventID  string
}

// journal is what the user of a context did.
type journal struct {
	name                 string
	policy               event.Policy
	sent                 []message
	closes, terminations int
}

func contentOf(body event.Body) [sha256.Size]byte {
	text := ""
	switch body := body.(type) {
	case event.UserMessage:
		text = body.Content
	case event.ApprovalDecided:
		text = fmt.Sprint(body.Decision, body.ToolCallID, string(body.Parameters))
	case event.ToolResult:
		text = fmt.Sprint(body.ToolCallID, string(body.Value), string(body.Error))
	}
	return sha256.Sum256([]byte(text))
}

// mustBe reports whether input n is in the log, or its rejection if the policy or its call allows one.
func (j *journal) mustBe(n int) bool {
	m := j.sent[n]
	return m.outcome == recorded || m.outcome == stored
}

func (j *journal) mayReject(m message) bool { return m.isAnswer || reducer.RuleOf(j.policy).Rejects }

// missing returns the key of an input that should be in the log but is not; "": none.
func (j *journal) missing(p progress) string {
	for n, m := range j.sent {
		if j.mustBe(n) && !p.found[m.key] && !(p.rejected[m.key] && m.outcome == stored) {
			return m.key
		}
	}
	return ""
}

// progress tracks which inputs are in the log, and which messages are done: answered, or without an answer for a
// reason in the log.
type progress struct {
	read            int             // number of events
	found, rejected map[string]bool // keys of inputs
	newest          int             // counter of the newest message
	through         int             // counter of the newest event that the running request includes
	done            int             // counter through which messages are done
	isOpen          bool            // a request is running
	isEnded         bool            // the session has ended
}

func (p *progress) add(e event.Event) {
	if p.read++; p.found == nil {
		p.found, p.rejected = map[string]bool{}, map[string]bool{}
	}
	switch body := e.Body.(type) {
	case event.UserMessage:
		p.newest, p.found[e.ClientEventID] = event.Counter(e.ID), true
	case event.ApprovalDecided, event.ToolResult:
		p.found[e.ClientEventID] = true
	case event.InputRejected:
		p.rejected[e.ClientEventID] = true
	case event.SessionStarted:
		if !p.isEnded {
			p.done, p.isOpen = event.Counter(e.ID), false // the run of the previous session was terminated
		}
		p.isEnded = false
	case event.SessionEnded:
		p.isEnded = true
	case event.LLMRequestStarted:
		p.isOpen, p.through = true, event.Counter(body.ThroughEventID)
	case event.RequestEnd:
		p.isOpen = false
		p.done = max(p.done, cmp.Or(event.Counter(body.Unanswered()), p.through))
	}
}

func (p *progress) isIdle() bool { return !p.isOpen && p.newest <= p.done }
