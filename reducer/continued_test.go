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

// answering returns a session in PhaseAnswering.
func answering(t *testing.T, worker string) reducer.Session {
	t.Helper()
	at := eventtest.Epoch
	s, _ := reducer.Step(reducer.NewSession("demo"), reducer.Opened{At: at})
	s, _ = reducer.Step(s, reducer.Received{At: at, Events: []event.Event{
		event.New(event.SetDeliveryPolicy{Policy: event.PolicyQueue}), event.New(event.UserMessage{Content: "Hello"}),
	}})
	s, effects := reducer.Step(s, reducer.RequestStarted{At: at, Attempted: reducer.Attempted{
		RequestID: "demo:r0001", Attempt: 1, Through: "demo:0003", ProviderID: "openai", Model: "m", Worker: worker,
	}})
	require.Len(t, effects, 1)
	return s
}

func TestTheNextRunAdoptsARunningAnswer(t *testing.T) {
	s := answering(t, "contexts/1")
	s, effects := reducer.Step(s, reducer.Continued{At: eventtest.Epoch})
	adopt := reducer.AdoptRequest{RequestID: "demo:r0001", Attempt: 1, Worker: "contexts/1"}
	require.Equal(t, []reducer.Effect{adopt}, effects)

	s, _ = reducer.Step(s, reducer.InterruptAsked{At: eventtest.Epoch})
	_, effects = reducer.Step(s, reducer.Continued{At: eventtest.Epoch})
	require.Equal(t, []reducer.Effect{
		adopt, reducer.InterruptRequest{RequestID: "demo:r0001", Reason: event.ReasonCancelled},
	}, effects, "the stop is repeated")
}

func TestTheNextRunRequeuesARequestWithoutAKnownWorker(t *testing.T) {
	for name, s := range map[string]reducer.Session{
		"before it was sent":   asked(t),
		"by an unknown worker": answering(t, ""),
	} {
		t.Run(name, func(t *testing.T) {
			_, effects := reducer.Step(s, reducer.Continued{At: eventtest.Epoch})
			if s.Request.Attempt > 0 {
				require.Equal(t, []event.Tag{event.TagLLMAttemptEnded}, tags(effects))
				effects = effects[1:]
			}
			require.Len(t, effects, 1)
			start := effects[0].(reducer.StartRequest)
			require.Equal(t, "demo:r0001", start.RequestID)
			require.Equal(t, 2, start.FirstAttempt, "attempt numbers are unique")
		})
	}
}

func asked(t *testing.T) reducer.Session {
	t.Helper()
	s, _ := reducer.Step(reducer.NewSession("demo"), reducer.Opened{At: eventtest.Epoch})
	s, _ = reducer.Step(s, reducer.Received{At: eventtest.Epoch, Events: []event.Event{event.New(event.UserMessage{Content: "Hello"})}})
	return s
}

func TestContinuingAnIdleSessionHasNoEffects(t *testing.T) {
	s, _ := reducer.Step(reducer.NewSession("demo"), reducer.Opened{At: eventtest.Epoch})
	after, effects := reducer.Step(s, reducer.Continued{At: eventtest.Epoch})
	require.Empty(t, effects)
	require.Equal(t, s, after)
}

func TestAClientCannotAnswerTheRunningRequest(t *testing.T) {
	s := answering(t, "contexts/1")
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

func TestForgedReportsHaveABoundedEffect(t *testing.T) {
	s := asked(t)
	for name, report := range map[string]reducer.Attempted{
		"another request":             {RequestID: "demo:r0002", Attempt: 1, Through: "demo:0002"},
		"a future event":              {RequestID: "demo:r0001", Attempt: 1, Through: "demo:0003"},
		"an event before the request": {RequestID: "demo:r0001", Attempt: 1, Through: "demo:0001"},
		"an attempt beyond the limit": {RequestID: "demo:r0001", Attempt: 1000, Through: "demo:0002"},
		"no attempt":                  {RequestID: "demo:r0001", Through: "demo:0002"},
	} {
		t.Run(name, func(t *testing.T) {
			after, effects := reducer.Step(s, reducer.RequestStarted{At: eventtest.Epoch, Attempted: report})
			require.Empty(t, effects)
			require.Equal(t, s, after)
		})
	}
	// A plausible report is recorded. The answer is recorded, too.
	s, _ = reducer.Step(s, reducer.RequestStarted{At: eventtest.Epoch, Attempted: reducer.Attempted{
		RequestID: "demo:r0001", Attempt: 3, Through: "demo:0002", Worker: "contexts/stopped",
	}})
	after, _ := reducer.Step(s, reducer.RequestEnded{At: eventtest.Epoch, Outcome: reducer.Completed, Text: "Hi", Attempted: reducer.Attempted{
		RequestID: "demo:r0001", Attempt: 1, Through: "demo:0002", ProviderID: "openai", Model: "m",
	}})
	require.Nil(t, after.Request)
	require.Equal(t, "Hi", after.Reduced.Messages[1].Content)
}

// Any NATS client can stop every attempt.
func TestForgedStopsEndAtMostTheirRequest(t *testing.T) {
	s := asked(t)
	var effects []reducer.Effect
	made := 0
	for ; s.Request != nil; made++ {
		require.LessOrEqual(t, made, reducer.MaxReturns)
		s, effects = reducer.Step(s, reducer.RequestEnded{At: eventtest.Epoch, Outcome: reducer.Interrupted, Reason: event.ReasonCancelled,
			Attempted: reducer.Attempted{RequestID: "demo:r0001", Attempt: s.Request.FirstAttempt, Through: "demo:0002"}})
	}
	require.Equal(t, reducer.MaxReturns+1, made)
	events := effects[0].(reducer.Record).Events
	require.Equal(t, event.TagLLMRequestFailed, events[len(events)-1].Tag())
	s, effects = reducer.Step(s, reducer.Received{At: eventtest.Epoch, Events: []event.Event{event.New(event.UserMessage{Content: "Again"})}})
	require.NotNil(t, s.Request, "the context accepts input")
	require.Len(t, effects, 2)
}

func TestRules1RecordNoEndOfAnAttempt(t *testing.T) {
	s := answering(t, "contexts/1")
	s.Rules = reducer.Rules1
	attempt := reducer.Attempted{RequestID: "demo:r0001", Attempt: 1, Through: "demo:0003", ProviderID: "openai", Model: "m"}
	usage := event.Usage{InputTokens: 5}
	ended := reducer.RequestStarted{At: eventtest.Epoch, Attempted: attempt, Ended: &reducer.AttemptEnd{Error: "no", Usage: usage}}
	s, effects := reducer.Step(s, ended)
	require.Empty(t, effects)

	next := attempt
	next.Attempt = 2
	s, effects = reducer.Step(s, reducer.RequestStarted{
		At: eventtest.Epoch, Attempted: next, Lost: &reducer.LostAttempt{Attempted: attempt, Usage: usage},
	})
	require.Equal(t, []event.Tag{event.TagLLMRequestStarted}, tags(effects))

	next.Attempt = 3 // which the session does not know
	_, effects = reducer.Step(s, reducer.RequestEnded{
		At: eventtest.Epoch, Attempted: next, Outcome: reducer.Lost, AttemptEnd: reducer.AttemptEnd{Usage: usage},
	})
	require.Empty(t, tags(effects))
	require.Len(t, effects, 1, "the request is enqueued again")
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

// Any client can send the signal with the report of an attempt.
func TestAForgedEndOfAnAttemptIsValid(t *testing.T) {
	s := answering(t, "contexts/1")
	_, effects := reducer.Step(s, reducer.RequestStarted{
		At:        eventtest.Epoch,
		Attempted: reducer.Attempted{RequestID: "demo:r0001", Attempt: 1, Through: "demo:0003"},
		Ended: &reducer.AttemptEnd{
			Kind: "mysterious", Error: strings.Repeat("é", 5000), Duration: -time.Hour,
			Usage: event.Usage{InputTokens: -1, CachedTokens: 7, OutputTokens: 1 << 40, ReasoningTokens: -7, CostMicros: new(int64(-1)), PriceVersion: strings.Repeat("x", 100)},
		},
	})
	require.Len(t, effects, 1)
	e := effects[0].(reducer.Record).Events[0]
	require.NoError(t, e.Validate())
	body := e.Body.(event.LLMAttemptEnded)
	require.Less(t, len(body.Error), 3000)
	body.Error = ""
	require.Equal(t, event.LLMAttemptEnded{
		RequestID: "demo:r0001", Attempt: 1, Outcome: event.AttemptFailed,
		Usage: event.Usage{OutputTokens: event.MaxTokens, CostMicros: new(int64(0))},
	}, body)
}
