package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/internal/references"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

func recovered(t *testing.T, name, updateID string, signals int, value any) activities.RecoveredInput {
	t.Helper()
	payload, ok := value.(*commonpb.Payload)
	if !ok {
		var err error
		payload, err = converter.GetDefaultDataConverter().ToPayload(value)
		require.NoError(t, err)
	}
	data, err := proto.Marshal(&commonpb.Payloads{Payloads: []*commonpb.Payload{payload}})
	require.NoError(t, err)
	return activities.RecoveredInput{Name: name, UpdateID: updateID, Signals: signals, Payloads: data}
}

func message(text string) map[string]any {
	return map[string]any{"_tag": "UserMessage", "content": text, "triggersTurn": false}
}

// opensAfter opens a run with unrecorded input of earlier runs.
func (w *world) opensAfter(unrecorded ...wire.Taken) {
	result := opened
	result.RunID, result.Unrecorded = "default-test-run-id", unrecorded
	w.OnActivity(acts.Open, mock.Anything, mock.Anything).Return(result, nil).Once()
}

func (w *world) recovers(after wire.Taken, result activities.RecoverResult) {
	w.OnActivity(acts.Recover, mock.Anything, activities.RecoverInput{ContextName: "demo", After: after}).Return(result, nil).Once()
}

func TestUnrecordedInputComesFirst(t *testing.T) {
	w := newWorld(t)
	w.at(0, func() {
		w.SignalWorkflow(wire.SignalEvent, message("new"))
		w.close()
	})
	w.opensAfter(wire.Taken{RunID: "A", Signals: 3}, wire.Taken{RunID: "B"}, wire.Taken{RunID: "C"})
	w.recovers(wire.Taken{RunID: "A", Signals: 3}, activities.RecoverResult{Inputs: []activities.RecoveredInput{
		recovered(t, wire.SignalEvent, "", 4, message("four")), recovered(t, "", "u1", 4, message("appended")),
	}})
	reference := references.Active([]byte(`{"driverName":"chronicle-blobs"}`))
	inert := []*commonpb.Payload{reference}
	references.MakeAllInert(inert)
	w.recovers(wire.Taken{RunID: "A", Signals: 4}, activities.RecoverResult{IsComplete: true, Inputs: []activities.RecoveredInput{
		recovered(t, "", "u1", 4, message("appended")), recovered(t, wire.SignalEvent, "", 5, inert[0]),
		recovered(t, "", "u2", 5, map[string]any{"_tag": "nonsense"}), recovered(t, "typo", "", 6, "x"),
	}})
	large, err := converter.GetDefaultDataConverter().ToPayload(message("large"))
	require.NoError(t, err)
	w.OnActivity(acts.Load, mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.LoadInput) (converter.RawValue, error) {
		require.Equal(t, reference.GetData(), in.Reference)
		return converter.NewRawValue(large), nil
	}).Once()
	w.recovers(wire.Taken{RunID: "B"}, activities.RecoverResult{IsComplete: true, IsGone: true})
	w.recovers(wire.Taken{RunID: "C"}, activities.RecoverResult{IsComplete: true})
	w.run("SessionStarted", "UserMessage four", "UserMessage appended", "UserMessage large", "InputRejected", "UserMessage new", "SessionEnded done")
}

func TestUnrecordedInputIsPendingAndContinuesAsNew(t *testing.T) {
	first := newWorld(t)
	first.opensAfter(wire.Taken{RunID: "A", Signals: 3}, wire.Taken{RunID: "B"})
	first.OnActivity(acts.Recover, mock.Anything, mock.Anything).After(time.Hour).Return(activities.RecoverResult{}, nil)
	first.at(time.Minute, func() {
		value, err := first.QueryWorkflow(wire.QueryDelivery, []string{})
		require.NoError(t, err)
		var delivery wire.Delivery
		require.NoError(t, value.Get(&delivery))
		require.True(t, delivery.Pending)
		first.grows(17 << 20)
		first.note("new", true)
	})
	input := first.continues()
	require.Equal(t, []string{"SessionStarted"}, first.log)

	second := newWorld(t)
	second.opens()
	second.recovers(wire.Taken{RunID: "A", Signals: 3}, activities.RecoverResult{IsComplete: true, Inputs: []activities.RecoveredInput{
		recovered(t, wire.SignalEvent, "", 4, message("four")),
	}})
	second.recovers(wire.Taken{RunID: "B"}, activities.RecoverResult{IsComplete: true})
	second.at(time.Minute, second.close)
	second.resumes(input, "UserMessage four", "UserMessage new", "SessionEnded done")
}
