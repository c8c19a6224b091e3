package workflows

import (
	"errors"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/activities"
)

// Input of 64 KiB and more is in the blob store, and its signal contains a reference. Anyone can send any
// reference, so the workflow receives it as data ([references.MakeInert]), and the activity Load reads what it
// refers to: one input at a time, in the order of the inbox, while later input waits. Whatever the store contains
// later, a replay sees the result of the activity.

// hasInput reports whether the run can process its oldest input. It does not wait for what cannot be read.
func (r *run) hasInput() bool {
	return !r.inbox.empty() && (r.loading == nil || r.loading.IsReady())
}

// load reports whether the oldest input is ready. If it is a reference, load starts to read it.
func (r *run) load() bool {
	oldest := &r.inbox.signals[0]
	switch {
	case oldest.isUnrecorded:
		return r.recoverInput() && !r.inbox.empty() && r.load()
	case !oldest.isReference():
		return true
	case len(oldest.payloads.GetPayloads()) != 1:
		oldest.problem = errors.New("a reference to a large input among other payloads (send one payload)")
		return true
	case r.loading == nil:
		r.loading = r.startLoading(oldest.payloads.GetPayloads()[0].GetData())
		return false
	}
	var payload converter.RawValue
	err := r.loading.Get(r.ctx, &payload)
	r.loading = nil
	if err == nil {
		oldest.loaded = &commonpb.Payloads{Payloads: []*commonpb.Payload{payload.Payload()}}
		r.loadedBytes += len(payload.Payload().GetData())
		return true
	}
	oldest.problem = fmt.Errorf("read the reference to a large input: %w", err)
	if problem := new(temporal.ApplicationError); errors.As(err, &problem) {
		oldest.problem = errors.New(problem.Message())
	}
	return true
}

// startLoading retries without an end while the store is unavailable: the input is accepted. What the context has no
// room for is not loaded.
func (r *run) startLoading(reference []byte) workflow.Future {
	return workflow.ExecuteActivity(workflow.WithActivityOptions(r.traced(r.ctx), workflow.ActivityOptions{
		StartToCloseTimeout: activities.LoadTimeout,
		HeartbeatTimeout:    r.failover(),
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, MaximumInterval: 10 * time.Second},
		Summary:             "load a large input",
	}), acts.Load, activities.LoadInput{ContextName: r.name, Reference: reference, Room: r.session.Reduced.Room()})
}
