package event

import "cmp"

// Running is what a log shows of the running request. Only its running attempt has deltas: anyone who may
// publish can send others. The zero value is that of an empty log.
type Running struct {
	// Unknown is set by a reader that does not know the log up to here, until an event shows the request.
	Unknown bool

	ended   int // number of the newest request that ended
	sent    int // the newest attempt of the next request that the log shows; 0: none
	done    int // the newest attempt of that request that ended
	asked   int // counter of the newest message that requires an answer
	through int // counter of the newest event that requires none any more, or is in the attempt
}

// After returns what the log shows after its next event.
func (r Running) After(e Event) Running {
	number := RequestNumber(RequestOf(e.Body))
	isRunning := number > 0 && number == r.ended+1
	if RequiresAnswer(e.Body) {
		r.asked = Counter(e.ID)
	}
	switch body := e.Body.(type) {
	case SessionEnded:
		r.asked = 0
	case LLMRequestStarted:
		if number > r.ended+1 {
			r.ended, r.done = number-1, 0
		}
		if number > r.ended {
			r.Unknown, r.sent, r.through = false, max(1, body.Attempt), Counter(body.ThroughEventID)
		}
	case AssistantMessage, LLMAttemptEnded, LLMRequestFellBack:
		if isRunning {
			r.done = max(r.done, r.sent)
		}
	case RequestEnd:
		if number > r.ended {
			r = Running{ended: number, asked: r.asked, through: cmp.Or(Counter(body.Unanswered()), r.through)}
		}
	}
	return r
}

// Attempt returns the number of the running request and of its attempt. Until the log shows them, they are
// those that come next.
func (r Running) Attempt() (request, attempt int) {
	if r.sent > r.done {
		return r.ended + 1, r.sent
	}
	return r.ended + 1, r.done + 1
}

// IsSameAttempt reports whether deltas of the same attempt are shown. Otherwise those shown before are removed.
func (r Running) IsSameAttempt(other Running) bool {
	request, attempt := r.Attempt()
	otherRequest, otherAttempt := other.Attempt()
	return request == otherRequest && attempt == otherAttempt
}

// Compare returns 0 for a delta of the running attempt, less for one of an earlier attempt, and more for one
// that the log does not show yet. Without a message to answer, no request runs.
func (r Running) Compare(requestID string, attempt int) int {
	number := RequestNumber(requestID)
	request, running := r.Attempt()
	switch {
	case number == 0:
		return -1
	case r.Unknown:
		return 0
	case number == request && r.sent+r.done == 0 && r.asked <= r.through:
		return 1
	}
	return cmp.Or(cmp.Compare(number, request), cmp.Compare(attempt, running))
}
