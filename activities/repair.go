package activities

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"go.temporal.io/sdk/activity"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Repair lets the next attempt correct an invalid answer.
type Repair struct {
	Answer  string `json:"answer,omitempty"` // invalid; empty: too long to send to the model
	Problem string `json:"problem"`          // what is wrong with the answer
}

// repair is the Repair of a request. If the provider's next answer is invalid, too, the request
// falls back or fails. An attempt in the same process reads the repair from memory, any other from the
// last heartbeat.
type repair struct {
	Repair
	Messages int `json:"messages"` // number in the conversation; if it changes, there is no repair
}

// maxRepairAnswer bounds the answer in a heartbeat, in bytes. If the worker dies, the heartbeat
// becomes part of the history.
const maxRepairAnswer = 32 << 10

// uncheckedProblem replaces the problem of an answer that hooks check: a problem can quote the answer.
const uncheckedProblem = "it does not have the response format"

// details returns what the history may contain.
func (r *repair) details(checksAnswers bool) *repair {
	if r == nil || !checksAnswers && len(r.Answer) <= maxRepairAnswer {
		return r
	}
	short := *r
	short.Answer = ""
	if checksAnswers {
		short.Problem = uncheckedProblem
	}
	return &short
}

func (r *repair) of(messages int) *Repair {
	if r == nil || r.Messages != messages {
		return nil
	}
	return &r.Repair
}

// repairBefore returns the repair that an earlier attempt requested. Nil: none.
func (a *Activities) repairBefore(ctx context.Context, key attemptKey, fallback bool) *repair {
	key.number--
	if previous := a.running.find(key); previous != nil {
		if previous.in.Fallback != fallback {
			return nil
		}
		select {
		case <-previous.done:
			if previous.result.Outcome == reducer.Called {
				return nil // that answer was valid: it called tools
			}
			return cmp.Or(previous.nextRepair, previous.repair)
		default:
			return nil
		}
	}
	var details heartbeatDetails
	if activity.HasHeartbeatDetails(ctx) && activity.GetHeartbeatDetails(ctx, &details) == nil {
		return details.Repair
	}
	return nil
}

// takeRepair stores the repair of a failure for the next attempt, which then does not count as a retry. It
// returns false if there is none, or if this attempt was already a repair.
func (a *attempt) takeRepair(failed *ModelError) bool {
	if failed.Repair == nil || a.repair != nil {
		return false
	}
	a.nextRepair = &repair{Repair: *failed.Repair, Messages: a.messages}
	return true
}

func (a *attempt) maxAttempts() int {
	if a.repair == nil {
		return a.in.MaxAttempts
	}
	return a.in.MaxAttempts + 1
}

const maxExcerpt = 400 // bytes of an invalid answer in an error

func (e *ModelError) excerpt() string {
	if e.Answer == "" {
		return ""
	}
	return fmt.Sprintf(" (the answer: %s)", event.Redact(strings.Join(strings.Fields(e.Answer), " "), maxExcerpt))
}

type heartbeatDetails struct {
	LostAttempt
	Repair *repair `json:"repair,omitempty"`
}

func (a *attempt) recordHeartbeat(ctx context.Context, next *repair) {
	activity.RecordHeartbeat(ctx, a.heartbeatDetails(next))
}

func (a *attempt) heartbeatDetails(next *repair) heartbeatDetails {
	return heartbeatDetails{a.progress(), next.details(a.checksAnswers())}
}
