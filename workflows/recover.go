package workflows

import (
	"fmt"
	"log/slog"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// A run that is terminated may leave accepted input in its history that it did not record. [activities.OpenResult] names
// such runs, oldest first. For each of them the inbox begins with an element that stands for the input, which the
// activity Recover reads in parts, as Load reads a reference. Each record says how far the run had processed the inbox,
// in the same transaction as the events, so a run that follows a terminated one begins exactly there.

// taken is how far the run has processed its input.
type taken struct {
	now    *wire.Taken // nil: input of earlier runs comes first
	stated wire.Taken  // in the newest record
	isNew  bool        // no record states a position
}

// next returns the position for the next record; nil: it is the same as in the record before, or unknown.
func (t *taken) next() *wire.Taken {
	if t.now == nil || !t.isNew && *t.now == t.stated {
		return nil
	}
	t.stated, t.isNew = *t.now, false
	return t.now
}

// takeUnrecorded puts the unrecorded input of earlier runs before that of this run.
func (r *run) takeUnrecorded() {
	var unrecorded []signal
	for _, after := range r.opened.Unrecorded {
		unrecorded = append(unrecorded, signal{origin: after, isUnrecorded: true})
	}
	r.inbox.putFirst(unrecorded...)
	r.opened.Unrecorded = nil
	r.beginTaking(len(unrecorded) > 0)
}

func (r *run) beginTaking(isAfterEarlierRuns bool) {
	r.taken = taken{isNew: true}
	if !isAfterEarlierRuns {
		r.taken.now = &wire.Taken{}
	}
}

// recoverInput replaces the element at the head of the inbox by a part of the input that it stands for, and by an element
// for the rest. It reports whether it has; if not, it waits for the activity.
func (r *run) recoverInput() bool {
	after := r.inbox.signals[0].origin
	if r.loading == nil {
		r.loading = r.startRecovering(after)
		return false
	}
	var result activities.RecoverResult
	err := r.loading.Get(r.ctx, &result)
	r.loading = nil
	if err != nil {
		panic(fmt.Sprintf("recover input of run %s: %v", after.RunID, err)) // fails the workflow task, so no input is lost
	}
	r.inbox.take()
	if result.IsGone {
		r.log(event.Line{Level: slog.LevelWarn, Message: "the history of an earlier run is gone; input that it had not recorded is lost", Fields: []any{"run", after.RunID}})
	}
	var recovered []signal
	for _, in := range result.Inputs {
		after.Signals = in.Signals
		if s, ok := recoveredSignal(in, after); ok {
			recovered = append(recovered, s)
			r.loadedBytes += s.size()
		}
	}
	if !result.IsComplete {
		recovered = append(recovered, signal{origin: after, isUnrecorded: true})
	}
	r.inbox.putFirst(recovered...)
	return true
}

// recoveredSignal returns an update as a signal with the ids that the update would have assigned to its events. It
// returns false for an invalid update, which the run would have rejected.
func recoveredSignal(in activities.RecoveredInput, origin wire.Taken) (signal, bool) {
	payloads := &commonpb.Payloads{}
	if err := proto.Unmarshal(in.Payloads, payloads); err != nil {
		panic(fmt.Sprintf("decode input of run %s: %v", origin.RunID, err))
	}
	if in.Name != "" {
		return signal{name: in.Name, payloads: payloads, origin: origin}, true
	}
	events, err := appendedEvents(converter.NewRawValue(payloads.GetPayloads()[0]), in.UpdateID)
	if err != nil {
		return signal{}, false
	}
	a := &pendingAppend{events: events}
	return signal{name: wire.SignalEvent, payloads: a.payloads(), origin: origin}, true
}

// startRecovering retries without an end: the input is accepted.
func (r *run) startRecovering(after wire.Taken) workflow.Future {
	return workflow.ExecuteActivity(workflow.WithActivityOptions(r.traced(r.ctx), workflow.ActivityOptions{
		StartToCloseTimeout: activities.RecoverTimeout,
		HeartbeatTimeout:    r.failover(),
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, MaximumInterval: 10 * time.Second},
		Summary:             "recover input of a run that ended before it recorded it",
	}), acts.Recover, activities.RecoverInput{ContextName: r.name, After: after})
}
