package reducer_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// endOf completes a report about the running attempt.
func endOf(s reducer.Session, in reducer.AttemptEnded) reducer.AttemptEnded {
	in.RequestID, in.Attempt = s.Request.ID, s.Request.Attempt
	if in.At.IsZero() {
		in.At = eventtest.Epoch
	}
	return in
}

// answering returns a session whose attempt has been sent.
func answering(t *testing.T) reducer.Session {
	t.Helper()
	s, _ := reducer.Step(reducer.NewSession("demo"), reducer.Opened{At: eventtest.Epoch})
	s, _ = reducer.Step(s, reducer.Received{At: eventtest.Epoch, Events: []event.Event{
		event.New(event.SetDeliveryPolicy{Policy: event.PolicyQueue, QuietPeriodMs: new(int64(0))}), event.New(event.UserMessage{Content: "Hello"}),
	}})
	require.Equal(t, reducer.PhaseRunning, s.Phase())
	return s
}

func TestContinuingAnIdleSessionHasNoEffects(t *testing.T) {
	s, _ := reducer.Step(reducer.NewSession("demo"), reducer.Opened{At: eventtest.Epoch})
	after, effects := reducer.Step(s, reducer.Continued{At: eventtest.Epoch})
	require.Empty(t, effects)
	require.Equal(t, s, after)
}

func TestTheNextRunHasItsOwnOptions(t *testing.T) {
	old := reducer.Options{DefaultProviderID: "openai", DefaultModel: "m", IdleCloseMs: 1}
	s, _ := reducer.Step(reducer.NewSession("demo"), reducer.Opened{At: eventtest.Epoch, Options: old})
	require.Equal(t, old, s.Options)
	next := reducer.Options{DefaultProviderID: "ollama", DefaultModel: "n", IdleCloseMs: 60_000}
	s, effects := reducer.Step(s, reducer.Continued{At: eventtest.Epoch, Options: next})
	require.Equal(t, next, s.Options)
	require.Equal(t, []reducer.Effect{reducer.WakeAt{At: eventtest.Epoch.Add(time.Minute)}}, effects)
}

func TestASessionKeepsItsRules(t *testing.T) {
	s := reducer.NewSession("demo")
	require.Equal(t, reducer.CurrentRules, s.Rules)
	s.Rules = reducer.CurrentRules + 1
	s, _ = reducer.Step(throughJSON(t, s), reducer.Opened{At: eventtest.Epoch})
	s, _ = reducer.Step(s, reducer.Continued{At: eventtest.Epoch})
	require.Equal(t, reducer.CurrentRules+1, s.Rules)
}

func TestAClientCannotAnswerTheRunningRequest(t *testing.T) {
	s := answering(t)
	forged := event.New(event.AssistantMessage{Content: "Forged", RequestID: "demo:r0001"})
	after, effects := reducer.Step(s, reducer.Received{At: eventtest.Epoch, Events: []event.Event{forged}})
	rejected := effects[0].(reducer.Record).Events[0].Body.(event.InputRejected)
	require.Equal(t, "AssistantMessageEvent.requestId: request demo:r0001 is running, and only its worker can answer it (leave requestId out)", rejected.Reason)
	require.Equal(t, s.Reduced.Messages, after.Reduced.Messages)

	for _, id := range []string{"", "demo:r0007"} {
		taken := event.New(event.AssistantMessage{Content: "From another agent", RequestID: id})
		_, effects := reducer.Step(s, reducer.Received{At: eventtest.Epoch, Events: []event.Event{taken}})
		require.Equal(t, event.TagAssistantMessage, effects[0].(reducer.Record).Events[0].Tag())
	}
}

// Any NATS client can stop every attempt.
func TestForgedStopsEndAtMostTheirRequest(t *testing.T) {
	for _, outcome := range []reducer.Outcome{reducer.Withdrawn, reducer.Interrupted} {
		s := answering(t)
		var effects []reducer.Effect
		made := 0
		for ; s.Request != nil; made++ {
			require.LessOrEqual(t, made, reducer.MaxReturns)
			s, effects = reducer.Step(s, endOf(s, reducer.AttemptEnded{Outcome: outcome, Reason: event.ReasonCancelled}))
		}
		require.Equal(t, reducer.MaxReturns+1, made)
		require.Equal(t, []event.Tag{event.TagLLMRequestFailed}, tags(effects))
		s, effects = receiveAt(s, eventtest.Epoch, event.UserMessage{Content: "Again"})
		require.NotNil(t, s.Request, "the context accepts input")
		require.Len(t, effects, 2)
	}
}

// receiveAt returns the session after an input, and the effects.
func receiveAt(s reducer.Session, at time.Time, body event.Body) (reducer.Session, []reducer.Effect) {
	return reducer.Step(s, reducer.Received{At: at, Events: []event.Event{event.New(body)}})
}

// tags returns the tags of the recorded events.
func tags(effects []reducer.Effect) (tags []event.Tag) {
	for _, effect := range effects {
		if record, ok := effect.(reducer.Record); ok {
			for _, e := range record.Events {
				tags = append(tags, e.Tag())
			}
		}
	}
	return tags
}

// A worker can run a model that reports anything.
func TestTheRecordedEndOfAnAttemptIsValid(t *testing.T) {
	s := answering(t)
	_, effects := reducer.Step(s, endOf(s, reducer.AttemptEnded{
		Outcome: reducer.HandedBack, ProviderID: strings.Repeat("p", 1000),
		Kind: "mysterious", Error: strings.Repeat("é", 5000), DurationMs: -1000,
		Usage: event.Usage{InputTokens: -1, CachedTokens: 7, OutputTokens: 1 << 40, ReasoningTokens: -7, CostMicros: new(int64(-1)), PriceVersion: strings.Repeat("x", 100)},
	}))
	require.Equal(t, []event.Tag{event.TagLLMAttemptEnded, event.TagLLMRequestStarted}, tags(effects))
	e := effects[0].(reducer.Record).Events[0]
	require.NoError(t, e.Validate())
	body := e.Body.(event.LLMAttemptEnded)
	require.Less(t, len(body.Error), 3000)
	body.Error = ""
	require.Equal(t, event.LLMAttemptEnded{
		RequestID: "demo:r0001", Attempt: 1, Outcome: event.AttemptHandedBack,
		Usage: event.Usage{OutputTokens: event.MaxTokens, CostMicros: new(int64(0))},
	}, body)
}
