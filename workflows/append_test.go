package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// appendsUntil appends a message by an update that expires.
func (w *testRun) appendsUntil(expires time.Time, text string) *update {
	u := &update{t: w.t, expires: true}
	w.UpdateWorkflow(wire.UpdateAppend, "", u, quiet(text), wire.Sent{Expires: expires})
	return u
}

// quiet is a message with its text as its id.
func quiet(text string) event.Event {
	e := event.New(event.UserMessage{Content: text, TriggersTurn: new(false)})
	e.ClientEventID = text
	return e
}

func (u *update) requireFailed(kind string) {
	u.t.Helper()
	var failed *temporal.ApplicationError
	require.ErrorAs(u.t, u.err, &failed)
	require.Equal(u.t, kind, failed.Type())
}

// The sender has sent the events as a signal, and more input may lie between them than the context remembers.
func TestAnExpiredUpdateIsNotRecorded(t *testing.T) {
	w := newRun(t)
	w.OnActivity(acts.Open, mock.Anything, mock.Anything).Return(activities.OpenResult{Rules: reducer.CurrentRules}, nil).Once()
	w.OnActivity(acts.Load, mock.Anything, mock.Anything).After(time.Minute).Return(func(context.Context, activities.LoadInput) (converter.RawValue, error) {
		return wire.JSON(quiet("large"))
	}).Once()
	var late, waiting, timely *update
	w.at(time.Minute, func() {
		late = w.appendsUntil(w.Now(), "late")
		timely = w.appendsUntil(w.Now().Add(time.Second), "timely")
	})
	w.at(2*time.Minute, func() {
		reference := &commonpb.Payload{Metadata: map[string][]byte{converter.MetadataEncoding: []byte("chronicle/reference")}, Data: []byte("{}")}
		w.SignalWorkflow(wire.SignalEvent, converter.NewRawValue(reference))
		waiting = w.appendsUntil(w.Now().Add(10*time.Second), "waiting")
		w.SignalWorkflow(wire.SignalEvent, quiet("signal"))
	})
	w.at(time.Hour, w.close)
	w.run("SessionStarted", "UserMessage timely", "UserMessage large", "UserMessage signal", "SessionEnded done")
	late.requireFailed(wire.ErrorExpired)
	waiting.requireFailed(wire.ErrorExpired)
	require.NoError(t, timely.err)
}
