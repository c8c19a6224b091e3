package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/baseurl"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/reducer/usage"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// usageOf returns the usage of a context, which is equal in its state, in the sums over its log,
// and in a session that is loaded from the log.
func (w *world) usageOf(c *client.Context) reducer.Usage {
	w.t.Helper()
	table := usage.New(usage.ByModel)
	var log []event.Event
	for _, e := range w.from(c, "") {
		table.Add(e)
		log = append(log, e)
	}
	state, err := c.State(w.ctx)
	require.NoError(w.t, err)
	require.Equal(w.t, state.Usage, table.Total())
	require.Equal(w.t, state.Usage, reducer.Load(c.Name(), reducer.Reduce, log...).Usage)
	return state.Usage
}

func TestEveryAttemptIsCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t,
		llmtest.Error(500, "server_error", "down"),
		llmtest.Error(429, "rate_limit_exceeded", "slow down"),
		llmtest.Answer("Here", " I", " am.").Usage(12, 3),
		llmtest.Answer("One", " two").HoldAfter(1, llmtest.NewGate()),
	)
	w.worker(func(o *contexts.Options) {
		base := baseurl.MustParse(w.model.URL)
		o.Models = llm.New(llm.Options{
			Getenv:   func(string) string { return "" },
			Defaults: llm.Defaults{ProviderID: "openai", BaseURL: w.model.URL, Model: "scripted"},
			Providers: []llm.Provider{
				{ID: "openai", BaseURL: base, Price: &llm.Price{Input: 2, CachedInput: 1, Output: 8}},
				{ID: "spare", BaseURL: base, Models: map[string]llm.Model{"other": {Price: &llm.Price{Input: 3, CachedInput: 1, Output: 5}}}},
			},
			PriceVersion: "2026-01",
		})
	})
	c := w.open("counted")
	w.send(c, event.New(event.SetRetryConfig{MaxRetries: 1, InitialDelayMs: 1}),
		event.New(event.SetProviderConfig{ProviderID: "spare", Model: "other", AsFallback: true}))
	first := w.say(c, "Hello?")
	require.Equal(t, event.Usage{InputTokens: 12, OutputTokens: 3, CostMicros: new(int64(51)), PriceVersion: "2026-01"},
		first[len(first)-1].Body.(event.LLMRequestCompleted).Usage)
	turn := w.ask(c, "Count")
	turn.underWay()
	require.NoError(t, c.Interrupt(w.ctx))
	interrupted := turn.rest().Body.(event.LLMRequestInterrupted)
	require.True(t, interrupted.Estimated)
	require.Positive(t, interrupted.InputTokens)
	require.Equal(t, 1, interrupted.OutputTokens)
	require.Equal(t, int64(2*interrupted.InputTokens+8), *interrupted.CostMicros)

	require.Equal(t, story(`
		SessionStarted after 0
		SetRetryConfig
		SetProviderConfig
		UserMessage "Hello?"
		LLMRequestStarted 1 scripted attempt 1
		LLMAttemptEnded 1 failed
		LLMRequestStarted 1 scripted attempt 2
		LLMRequestFellBack 1 from openai to spare after 1 retries: openai: rate limited (429): slow down
		LLMRequestStarted 1 other attempt 3
		AssistantMessage "Here I am."
		LLMRequestCompleted 1 stop
		UserMessage "Count"
		LLMRequestStarted 2 scripted attempt 1
		AssistantMessage "One" partial
		LLMRequestInterrupted 2 cancelled "One"
	`), withoutPositions(w.log(c)))
	for _, e := range w.from(c, "") {
		switch b := e.Body.(type) {
		case event.LLMAttemptEnded:
			b.RequestID, b.DurationMs = "", 0
			require.Equal(t, event.LLMAttemptEnded{
				Attempt: 1, Outcome: event.AttemptFailed, Kind: event.FailureUnavailable, Retryable: true, Error: "openai: server error (500): down",
			}, b)
		case event.LLMRequestFellBack:
			require.Equal(t, event.FailureRateLimited, b.Kind)
			require.True(t, b.Retryable)
		}
	}
	require.Equal(t, reducer.Usage{
		Attempts: 4, InputTokens: 12 + interrupted.InputTokens, OutputTokens: 4, Estimated: true, CostMicros: 51 + *interrupted.CostMicros,
	}, w.usageOf(c))
	w.replay(c, "attempts")
}

// awaitHeartbeat waits until the server has the heartbeat of an attempt.
func (w *world) awaitHeartbeat(c *client.Context, found func(activities.Heartbeat) bool) (last activities.Heartbeat) {
	w.t.Helper()
	for {
		d := w.described(c, "")
		for _, pending := range d.GetPendingActivities() {
			if details := pending.GetHeartbeatDetails(); details != nil {
				require.NoError(w.t, converter.GetDefaultDataConverter().FromPayloads(details, &last))
			}
		}
		if found(last) {
			return last
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-w.ctx.Done():
			require.Fail(w.t, "no such heartbeat", "the last one: %+v", last)
		}
	}
}
