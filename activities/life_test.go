package activities_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func TestTheServerEndsAnAttemptByItsAnswersToHeartbeats(t *testing.T) {
	for name, test := range map[string]struct {
		answer error
		ends   bool
	}{
		"the workflow cancelled it":     {temporal.NewCanceledError(), true},
		"the run or the activity ended": {serviceerror.NewNotFound("no activity"), true},
		"the server is unreachable":     {serviceerror.NewUnavailable("no route"), false},
		"the server is busy":            {serviceerror.NewResourceExhausted(0, "busy"), false},
		"all is well":                   {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gate := llmtest.NewGate()
			w := newEnvironment(t, newSession(), llmtest.Answer("One", " two").HoldAfter(1, gate))
			w.env.SetTestTimeout(time.Minute)
			w.server.beatErr = test.answer
			beats := 0
			w.server.beat = func(activities.Heartbeat) {
				if beats++; beats == 2 && !test.ends {
					gate.Open()
				}
			}
			result := w.generated()
			if !test.ends {
				require.Equal(t, reducer.Completed, result.Outcome)
				require.Equal(t, "One two", result.Text)
				return
			}
			require.Equal(t, reducer.Interrupted, result.Outcome)
			require.Equal(t, event.ReasonCancelled, result.Reason)
			require.Equal(t, "One", result.Text)
			require.Equal(t, 1, beats)
		})
	}
}

// The server ends an activity without heartbeats, and would lose the text of the answer.
func TestACancelledAttemptSendsHeartbeatsUntilItEnds(t *testing.T) {
	t.Parallel()
	w := newEnvironment(t, newSession(), llmtest.Answer("One", " two").HoldAfter(1, llmtest.NewGate()))
	w.env.SetTestTimeout(time.Minute)
	w.server.beatErr = temporal.NewCanceledError()
	again := make(chan struct{})
	beats := 0
	w.server.beat = func(activities.Heartbeat) {
		if beats++; beats == 2 {
			close(again)
		}
	}
	w.use(hook.Hook{Name: "slow", Timeout: time.Minute, After: func(ctx context.Context, _ hook.Request, _ hook.Response) (hook.Verdict, error) {
		select {
		case <-again:
		case <-ctx.Done():
		}
		return hook.Verdict{}, ctx.Err()
	}})
	w.env.SetTestTimeout(time.Minute)
	require.Equal(t, "One", w.generated().Text)
}

func TestACancelledAttemptThatWasNotSentIsWithdrawn(t *testing.T) {
	t.Parallel()
	w := newEnvironment(t, newSession())
	w.env.SetTestTimeout(time.Minute)
	w.in.SendAt = time.Now().Add(time.Hour)
	w.server.beatErr = temporal.NewCanceledError()
	require.Equal(t, reducer.AttemptEnded{Outcome: reducer.Withdrawn, Reason: event.ReasonCancelled}, w.generated())
	require.False(t, w.server.beats[0].Sent)
}

func TestThreeHeartbeatsFitIntoTheirTimeout(t *testing.T) {
	require.Equal(t, 10*time.Second, activities.HeartbeatInterval(activity.Info{HeartbeatTimeout: 30 * time.Second}))
	require.Equal(t, time.Second, activities.HeartbeatInterval(activity.Info{}))
}

// A worker that shuts down while Temporal is unreachable must not wait for it.
func TestAWaitingHeartbeatDoesNotDelayAShutdown(t *testing.T) {
	w := newEnvironment(t, newSession(), llmtest.Answer("One", " two").HoldAfter(1, llmtest.NewGate()))
	w.handBack = make(chan struct{})
	ended := make(chan struct{})
	w.reset(nil)
	w.server.beat = func(activities.Heartbeat) {
		close(w.handBack)
		<-ended
	}
	go func() {
		assert.NoError(t, w.model.Aborted(context.Background(), 1))
		close(ended)
	}()
	require.Equal(t, reducer.HandedBack, w.generated().Outcome)
}

func TestHeartbeatsReportTheUsageSoFar(t *testing.T) {
	gate := llmtest.NewGate()
	w := newEnvironment(t, newSession(), llmtest.Answer("One", " two").HoldAfter(1, gate))
	w.server.beat = func(activities.Heartbeat) { gate.Open() }
	w.generated()
	require.Equal(t, activities.Heartbeat{
		Sent: true, ProviderID: "openai", Model: "scripted", Usage: event.Usage{InputTokens: 12, OutputTokens: 1, Estimated: true},
	}, w.server.beats[0])
}

func TestAnActivityWhoseHeartbeatSaysThatItWasSentIsLost(t *testing.T) {
	usage := event.Usage{InputTokens: 8, OutputTokens: 1, Estimated: true}
	for name, test := range map[string]struct {
		heartbeat any
		want      reducer.AttemptEnded
	}{
		"it was sent": {activities.Heartbeat{Sent: true, ProviderID: "openai", Model: "m", Usage: usage, Trace: "t"},
			reducer.AttemptEnded{Outcome: reducer.Lost, ProviderID: "openai", Model: "m", Usage: usage, Trace: "t"}},
		"it was not sent":               {activities.Heartbeat{Reservation: "key"}, reducer.AttemptEnded{Outcome: reducer.Completed}},
		"a heartbeat of another format": {json.RawMessage(`"hello"`), reducer.AttemptEnded{Outcome: reducer.Completed}},
		"no heartbeat":                  {nil, reducer.AttemptEnded{Outcome: reducer.Completed}},
	} {
		t.Run(name, func(t *testing.T) {
			var steps []llmtest.Step
			if test.want.Outcome != reducer.Lost {
				steps = append(steps, llmtest.Answer("One"))
			}
			w := newEnvironment(t, newSession(), steps...)
			if test.heartbeat != nil {
				w.env.SetHeartbeatDetails(test.heartbeat)
			}
			result := w.generated()
			require.Equal(t, test.want.Outcome, result.Outcome)
			if test.want.Outcome == reducer.Lost {
				require.Equal(t, test.want, result)
			}
		})
	}
}

func TestAWorkerThatIsKilledByItsOperatorHandsTheAttemptBack(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	w := newEnvironment(t, newSession(), llmtest.Answer("One", " two").HoldAfter(1, llmtest.NewGate()))
	sub := w.connect()
	w.env.SetWorkerOptions(worker.Options{BackgroundActivityContext: ctx})
	go func() {
		awaitDelta(t, sub, "One")
		cancel(worker.ErrWorkerShutdown)
	}()
	require.Equal(t, reducer.HandedBack, w.generated().Outcome)
}
