package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// budgetOf returns the state of the budget of a label.
func (w *world) budgetOf(label, value string) (state wire.BudgetState) {
	w.t.Helper()
	answer, err := w.temporal.QueryWorkflow(w.ctx, wire.BudgetID("", label, value), "", wire.QueryBudget)
	require.NoError(w.t, err)
	require.NoError(w.t, answer.Get(&state))
	return state
}

// labelBudget limits the requests of this test, which have the label team with the task queue as value.
func (w *world) labelBudget(tokens int64) activities.LabelBudget {
	return activities.LabelBudget{Label: "team", Value: w.queue, Limit: event.Budget{Tokens: &tokens}}
}

func (w *world) labelled(maxTokens int) event.Event {
	return event.New(event.SetRequestSettings{MaxTokens: &maxTokens, Labels: map[string]string{"team": w.queue}})
}

func exceededIn(t *testing.T, events []event.Event) event.BudgetExceeded {
	t.Helper()
	last := events[len(events)-1].Body.(event.LLMRequestFailed)
	require.Equal(t, event.FailureBudgetExceeded, last.Kind)
	require.False(t, last.Retryable)
	b := events[len(events)-2].Body.(event.BudgetExceeded)
	require.Contains(t, last.Error, b.String())
	return b
}

func TestAContextStaysWithinItsBudget(t *testing.T) {
	t.Parallel()
	w := newWorld(t,
		llmtest.Error(500, "server_error", "down"),
		llmtest.Answer("Here", " I", " am.").Usage(120, 30),
		llmtest.Answer("Hello", " again").Usage(130, 20),
	)
	w.worker()
	c := w.open("budget")
	w.send(c, event.New(event.SetRetryConfig{MaxRetries: 1, InitialDelayMs: 1}), event.New(event.SetRequestSettings{MaxTokens: new(50)}),
		event.New(event.SetProviderConfig{ProviderID: "openai", Model: "other", AsFallback: true}),
		event.New(event.BudgetSet{Tokens: new(int64(200))}))
	w.say(c, "Hello?")
	b := exceededIn(t, w.say(c, "And now?"))
	require.Equal(t, event.BudgetOfContext, b.Budget)
	require.Equal(t, event.Amount{Tokens: 150}, b.Used)
	require.Greater(t, b.Wanted.Tokens, int64(50))
	require.Equal(t, story(`
		SessionStarted after 0
		SetRetryConfig
		SetRequestSettings
		SetProviderConfig
		BudgetSet at most 200 tokens
		UserMessage "Hello?"
		LLMRequestStarted 1 scripted attempt 1
		LLMAttemptEnded 1 failed
		LLMRequestStarted 1 scripted attempt 2
		AssistantMessage "Here I am."
		LLMRequestCompleted 1 stop
		UserMessage "And now?"
		LLMRequestStarted 2 scripted attempt 1
		BudgetExceeded 2 context
	`), strings.Split(withoutPositions(w.log(c)), "\nLLMRequestFailed")[0])
	w.send(c, event.New(event.BudgetSet{Tokens: new(int64(2000))}))
	last := w.say(c, "With more?")
	require.Equal(t, event.TagLLMRequestCompleted, last[len(last)-1].Tag())
	w.replay(c, "budget")

	fork := w.open("budget-fork")
	require.NoError(t, c.Fork(w.ctx, last[len(last)-1].ID, fork.Name()))
	w.model.Then(llmtest.Answer("Forked").Usage(140, 10))
	last = w.say(fork, "And in a fork?")
	require.Equal(t, event.TagLLMRequestCompleted, last[len(last)-1].Tag())
}

// Fifty contexts of one label ask at the same time. The model uses as much as a request may.
func TestConcurrentContextsStayWithinTheBudgetOfTheirLabel_Alone(t *testing.T) {
	large(t)
	const asked, maxTokens, limit = 50, 100, 2000
	var used atomic.Int64
	w := newWorld(t, llmtest.Func(func(r llmtest.Request) llmtest.Step {
		const input = 10
		var output struct {
			Limit int `json:"max_tokens"`
		}
		if err := json.Unmarshal(r.Body, &output); err != nil {
			t.Error(err)
		}
		used.Add(int64(input + output.Limit))
		return llmtest.Answer("Hi").Usage(input, output.Limit)
	}))
	for range 2 {
		w.worker(func(o *contexts.Options) { o.Budgets = []activities.LabelBudget{w.labelBudget(limit)} })
	}
	var all sync.WaitGroup
	var answered, refused atomic.Int64
	for i := range asked {
		c := w.open(fmt.Sprintf("budget-%d", i))
		all.Go(func() {
			var last event.Event
			for e, err := range c.Ask(w.ctx, w.labelled(maxTokens), event.New(event.UserMessage{Content: "Hello"})) {
				if !assert.NoError(t, err) {
					return
				}
				last = e
			}
			switch body := last.Body.(type) {
			case event.LLMRequestCompleted:
				answered.Add(1)
			case event.LLMRequestFailed:
				assert.Equal(t, event.FailureBudgetExceeded, body.Kind, body.Error)
				refused.Add(1)
			}
		})
	}
	all.Wait()
	require.Equal(t, int64(asked), answered.Load()+refused.Load())
	require.LessOrEqual(t, used.Load(), int64(limit))
	require.Positive(t, refused.Load())
	require.Positive(t, answered.Load())
	state := w.budgetOf("team", w.queue)
	require.LessOrEqual(t, state.Spent.Plus(state.Reserved).Tokens, int64(limit))
	w.replayWorkflow(wire.BudgetID("", "team", w.queue), "", "label-budget")
}

// The budget allows one attempt at a time.
func TestTheUsageOfAKilledWorkerReplacesItsReservation_Alone(t *testing.T) {
	needsTimelyHeartbeats(t)
	w := newWorld(t, llmtest.Answer("I was", " saying").HoldAfter(1, llmtest.NewGate()),
		llmtest.Answer("I was", " saying: hello.").Usage(12, 3),
	)
	const limit = 150
	settings := workerSettings{Budgets: []activities.LabelBudget{w.labelBudget(limit)}}
	first := w.processWith(settings)
	c := w.open("budget-killed")
	w.send(c, w.labelled(100), event.New(event.SetTimeout{TimeoutMs: 20_000}))
	turn := w.ask(c, "Hello")
	turn.underWay()
	last := w.awaitHeartbeat(c, func(l activities.Heartbeat) bool { return l.OutputTokens > 0 })
	require.Greater(t, 2*w.budgetOf("team", w.queue).Reserved.Tokens, int64(limit), "two reservations")
	first.kill()
	w.processWith(settings)
	require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag())
	state := w.budgetOf("team", w.queue)
	require.Equal(t, event.Amount{Tokens: 15}.Plus(event.AmountOf(last.Usage)), state.Spent)
	require.Zero(t, state.Reserved)
	lost := bodiesOf[event.LLMAttemptEnded](w, c)
	require.Len(t, lost, 1)
	require.Equal(t, event.AttemptLost, lost[0].Outcome)
	require.Equal(t, last.Usage, lost[0].Usage, "that of the last heartbeat")
	require.Equal(t, reducer.Usage{
		Attempts: 2, InputTokens: 12 + last.InputTokens, OutputTokens: 3 + last.OutputTokens, Estimated: true, Unpriced: 2,
	}, w.usageOf(c))
	w.replay(c, "budget-killed")
}
