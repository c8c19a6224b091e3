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
	// Answer is the invalid answer; empty if it is too long to send to the model.
	Answer string `json:"answer,omitempty"`
	// Problem describes what is wrong with the answer.
	Problem string `json:"problem"`
}

// repair is the Repair of a request. An activity has at most one: a second invalid answer fails
// the request. Attempts in the same process read it from memory, other workers from the details
// of the last heartbeat.
type repair struct {
	Repair
	// Messages is the number of messages in the conversation. If it has changed, there is no
	// repair.
	Messages int `json:"messages"`
}

// maxRepairAnswer bounds the answer in the details of a heartbeat, in bytes. If the worker dies,
// they become part of the history.
const maxRepairAnswer = 32 << 10

// details returns the repair for the heartbeat details, without an answer that is too long.
func (r *repair) details() *repair {
	if r == nil || len(r.Answer) <= maxRepairAnswer {
		return r
	}
	short := *r
	short.Answer = ""
	return &short
}

// of returns the repair for a conversation; nil if there is none.
func (r *repair) of(messages []reducer.Message) *Repair {
	if r == nil || r.Messages != len(messages) {
		return nil
	}
	return &r.Repair
}

// repairBefore returns the repair requested by an earlier attempt; nil if there is none.
func (a *Activities) repairBefore(ctx context.Context, key attemptKey, fallback bool) *repair {
	key.number--
	if previous := a.running.find(key); previous != nil {
		if previous.in.Fallback != fallback {
			return nil
		}
		select {
		case <-previous.done:
			if previous.result.Outcome == reducer.Called {
				return nil // that answer was valid: its calls ended a step
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

// takeRepair stores the repair that an error requests, and reports whether the next attempt is
// that repair. A repair does not count as a retry.
func (a *attempt) takeRepair(failed *ModelError) bool {
	if failed.Repair == nil || a.repair != nil {
		return false
	}
	a.nextRepair = &repair{Repair: *failed.Repair, Messages: a.messages}
	return true
}

// maxAttempts returns the maximum number of attempts of the activity, including a repair.
func (a *attempt) maxAttempts() int {
	if a.repair == nil {
		return a.in.MaxAttempts
	}
	return a.in.MaxAttempts + 1
}

// maxExcerpt bounds an invalid answer in an error, in bytes.
const maxExcerpt = 400

// excerpt returns the beginning of the invalid answer for the log; "" if the answer was not invalid.
func (e *ModelError) excerpt() string {
	if e.Answer == "" {
		return ""
	}
	return fmt.Sprintf(" (the answer: %s)", event.Redact(strings.Join(strings.Fields(e.Answer), " "), maxExcerpt))
}

// heartbeatDetails are the progress of an attempt, in case its worker dies, and the repair of the
// next one.
type heartbeatDetails struct {
	LostAttempt
	Repair *repair `json:"repair,omitempty"`
}

// recordHeartbeat records a heartbeat with the repair of the next attempt.
func (a *attempt) recordHeartbeat(ctx context.Context, next *repair) {
	activity.RecordHeartbeat(ctx, heartbeatDetails{a.progress(ctx), next.details()})
}
