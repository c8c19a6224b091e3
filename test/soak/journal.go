package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
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

func storedUnless(err error) outcome {
	if err != nil {
		return unknown
	}
	return stored
}

// input was accepted, or may have been. Its key is its client event id.
type input struct {
	key      string
	first    string            // key of the first event of the same input, which its rejection has
	content  [sha256.Size]byte // zero: not compared
	isAnswer bool              // it may be rejected, since the call may have ended
	outcome  outcome
	eventID  string
}

// journal is what the user of a context did.
type journal struct {
	policy                       event.Policy
	sent                         []input
	closes, terminations, resets int
}

// lose forgets the outcome of everything that is not recorded, or that a reset may have left to be recorded again: a
// termination may lose what was sent without the client, since a plain start after it does not name the run before.
func (j *journal) lose() {
	for i := range j.sent {
		if j.sent[i].outcome != recorded || j.resets > 0 {
			j.sent[i].outcome = unknown
		}
	}
}

func contentOf(body event.Body) [sha256.Size]byte {
	if decided, ok := body.(event.ApprovalDecided); ok {
		decided.DecidedBy, decided.Reason = "", ""
		body = decided
	}
	return sha256.Sum256(encode(body))
}

func encode(value any) []byte {
	data, _ := json.Marshal(value) // events and states always encode
	return data
}

func (j *journal) mayReject(m input) bool { return m.isAnswer || reducer.RuleOf(j.policy).Rejects }

// missing returns the key of an input that should be in the log but is not; "": none.
func (j *journal) missing(p progress) string {
	for _, m := range j.sent {
		if m.mustBeInLog() && !p.found[m.key] && !(p.rejected[m.key] && m.outcome == stored) {
			return m.key
		}
	}
	return ""
}

// check checks that each input is in the log once among the newest events that contexts deduplicate, under its id, or is
// rejected there.
func (j *journal) check(p *problems, log []event.Event) {
	recordedAs, rejections, repeated := map[string][]event.Event{}, map[string]bool{}, map[string]bool{}
	keyed, newest := 0, map[string]int{} // the number of the newest event with a key
	for _, e := range log {
		key := e.ClientEventID
		switch {
		case key == "":
		case e.Tag() == event.TagInputRejected:
			rejections[key] = true
		default:
			keyed++
			if n, ok := newest[key]; ok && keyed-n <= reducer.MaxRecent {
				repeated[key] = true
			}
			newest[key] = keyed
			recordedAs[key] = append(recordedAs[key], e)
		}
	}
	for _, m := range j.sent {
		as := recordedAs[m.key]
		isRejected := rejections[m.first]
		switch {
		case repeated[m.key]:
			p.add("input %s is duplicated: it is in the log %d times", m.key, len(as))
		case len(as) > 1: // the context has forgotten the first one
		case m.outcome == rejected && len(as) > 0:
			p.add("input %s is %s, but it was reported as rejected", m.key, as[0].ID)
		case m.outcome == rejected && !isRejected:
			p.add("input %s was rejected, but the log has no rejection", m.key)
		case m.mustBeInLog() && len(as) == 0 && !(isRejected && (m.outcome == stored || j.resets > 0)):
			p.add("input %s is lost; it was reported as %q", m.key, m.eventID)
		case m.outcome == recorded && j.resets == 0 && as[0].ID != m.eventID:
			p.add("input %s is %s, but it was reported as %s", m.key, as[0].ID, m.eventID)
		case m.content != [sha256.Size]byte{} && j.resets == 0 && len(as) > 0 && m.content != contentOf(as[0].Body):
			p.add("input %s is another event, which was not sent: %s", m.key, as[0].Tag())
		}
	}
}

func (m input) mustBeInLog() bool { return m.outcome == recorded || m.outcome == stored }

// checkConversation checks that the log has no other input, that messages are in the order sent and have an answer or a
// reason for having none, and that sessions end only if the user closed or terminated them.
func (j *journal) checkConversation(p *problems, log []event.Event) {
	sent := map[string]int{}
	for n, m := range j.sent {
		sent[m.key] = n
	}
	at, newest := progress{}, -1
	for _, e := range log {
		at.add(e)
		n, isSent := sent[e.ClientEventID]
		switch e.Body.(type) {
		case event.InputRejected:
			if !isSent || !j.mayReject(j.sent[n]) {
				p.add("%s rejects input %s", e.ID, e.ClientEventID)
			}
		case event.UserMessage, event.ApprovalDecided, event.ToolResult:
			switch {
			case e.ClientEventID == "": // the result of a worker
			case !isSent:
				p.add("%s is input %s, which was not sent", e.ID, e.ClientEventID)
			case j.sent[n].isAnswer || j.sent[n].outcome == unknown:
			case n < newest:
				p.add("message %s is after one that was sent later", e.ClientEventID)
			default:
				newest = n
			}
		}
	}
	if !at.isIdle() {
		p.add("a message has neither an answer nor a reason for having none")
	}
	if at.ended > j.closes || at.cut > j.terminations {
		p.add("%d sessions ended and %d were cut off, but the user closed %d and terminated %d", at.ended, at.cut, j.closes, j.terminations)
	}
}

// progress tracks which inputs are in the log, and which messages are done: answered, or without an answer for a
// reason in the log.
type progress struct {
	read            int             // number of events
	found, rejected map[string]bool // keys of inputs
	newest          int             // counter of the newest message
	through         int             // counter of the newest event that the running request includes
	done            int             // counter through which messages are done
	isRunning       bool            // a request
	isOpen          bool            // a session
	ended, cut      int             // number of sessions with and without an end
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
		if p.isOpen { // its run was terminated
			p.cut++
			p.done, p.isRunning = event.Counter(e.ID), false
		}
		p.isOpen = true
	case event.SessionEnded:
		p.ended++
		p.isOpen = false
	case event.LLMRequestStarted:
		p.isRunning, p.through = true, event.Counter(body.ThroughEventID)
	case event.RequestEnd:
		p.isRunning = false
		p.done = max(p.done, cmp.Or(event.Counter(body.Unanswered()), p.through))
	}
}

func (p *progress) isIdle() bool { return !p.isRunning && p.newest <= p.done }

// problems are the violations of laws.
type problems []error

func (p *problems) add(format string, args ...any) { *p = append(*p, fmt.Errorf(format, args...)) }
