package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/workflows"
)

// The run ends, so that the deletion does not terminate it, and the next one waits for the end of the deletion.
func TestInputStartsNoSessionInARunThatADeletionEnds(t *testing.T) {
	closing := wire.Close{Reason: "deletion", IsDeletion: true}
	t.Run("in the same task", func(t *testing.T) {
		w := newRun(t)
		w.opens()
		w.at(time.Minute, func() {
			w.SignalWorkflowSkippingWorkflowTask(wire.SignalClose, closing)
			w.says("Late")
		})
		w.run("SessionStarted", "SessionEnded deletion")
	})
	t.Run("while the archive is written", func(t *testing.T) {
		w := bareRun(t, "context:demo", workflows.Interceptor())
		w.opens()
		w.OnActivity(acts.Archive, mock.Anything, mock.Anything).After(time.Hour).Return(nil)
		w.at(time.Minute, func() { w.SignalWorkflow(wire.SignalClose, closing) })
		w.at(2*time.Minute, func() { w.says("Late") })
		w.run("SessionStarted", "SessionEnded deletion")
	})
	t.Run("while the answer stops", func(t *testing.T) {
		w := newRun(t)
		w.opens()
		stopped := make(chan struct{})
		w.generates(func(context.Context, activities.AttemptInput) (reducer.AttemptEnded, error) {
			w.SignalWorkflow(wire.SignalClose, closing)
			select {
			case <-stopped:
			case <-t.Context().Done():
			}
			return reducer.AttemptEnded{Outcome: reducer.Interrupted, Reason: event.ReasonCancelled}, nil
		})
		var appended *update
		w.OnActivity(acts.Stop, mock.Anything, mock.Anything).Return(func(context.Context, activities.StopInput) (bool, error) {
			w.says("Late")
			appended = w.appendsUntil(w.Now().Add(time.Hour), "Later")
			close(stopped)
			return true, nil
		}).Once()
		w.at(time.Minute, func() { w.says("Hello") })
		w.run("SessionStarted", "UserMessage Hello", "LLMRequestStarted attempt 1", "LLMRequestInterrupted cancelled", "SessionEnded deletion")
		appended.requireFailed(wire.ErrorDeleting)
	})
	t.Run("not if it requires inactivity", func(t *testing.T) {
		w := newRun(t)
		w.opens()
		w.at(time.Minute, func() {
			w.SignalWorkflowSkippingWorkflowTask(wire.SignalClose, wire.Close{Reason: "deletion", InactiveSince: w.Now()})
			w.note("Late", true)
		})
		w.at(time.Hour, w.close)
		w.run("SessionStarted", "SessionEnded deletion", "SessionStarted", "UserMessage Late", "SessionEnded done")
	})
}
