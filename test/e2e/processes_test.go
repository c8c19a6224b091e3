package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// Generate must query the session, because no activity process has it in memory.
func TestWorkflowsAndActivitiesRunInSeparateProcesses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Answer("Hello", " there"),
		llmtest.Answer("Once upon", " a time").HoldAfter(1, llmtest.NewGate()),
		llmtest.Answer("Fine."),
		llmtest.Answer("One", " two").HoldAfter(1, llmtest.NewGate()),
		llmtest.Answer("All three."),
	)
	w.process(contexts.OnlyWorkflows)
	activities := w.process(contexts.OnlyActivities)
	c := w.open("apart")
	first := w.say(c, "Hi", event.New(event.SystemPrompt{Content: "Be brief."}))
	require.Equal(t, "Hello there", deltaText(first))

	turn := w.ask(c, "Tell me a story")
	turn.underWay()
	w.say(c, "Shorter")
	require.NoError(t, w.model.Aborted(w.ctx, 2))
	require.Equal(t, event.TagLLMRequestInterrupted, turn.rest().Tag())

	turn = w.ask(c, "Count")
	turn.underWay()
	require.NoError(t, c.Interrupt(w.ctx))
	require.NoError(t, w.model.Aborted(w.ctx, 4))
	require.Equal(t, event.TagLLMRequestInterrupted, turn.rest().Tag())

	quiet, wait := int64(60_000), int64(500)
	w.send(c, event.New(event.SetDeliveryPolicy{QuietPeriodMs: &quiet, MaxWaitMs: &wait}))
	require.NoError(t, activities.Stop(testTimeout))
	w.send(c, event.New(event.UserMessage{Content: "A."}))
	w.send(c, event.New(event.UserMessage{Content: "B."}))
	turn = w.ask(c, "C.")
	w.process(contexts.OnlyActivities) // the wait begins after the third message
	turn.rest()

	require.Equal(t, story(`
		SessionStarted after 0
		SystemPrompt "Be brief."
		UserMessage "Hi"
		LLMRequestStarted 1 scripted attempt 1 through 3
		AssistantMessage "Hello there" through 3
		LLMRequestCompleted 1 stop
		UserMessage "Tell me a story"
		LLMRequestStarted 2 scripted attempt 1 through 7
		UserMessage "Shorter"
		AssistantMessage "Once upon" through 7 partial
		LLMRequestInterrupted 2 new_user_input "Once upon"
		LLMRequestStarted 3 scripted attempt 1 through 11
		AssistantMessage "Fine." through 11
		LLMRequestCompleted 3 stop
		UserMessage "Count"
		LLMRequestStarted 4 scripted attempt 1 through 15
		AssistantMessage "One" through 15 partial
		LLMRequestInterrupted 4 cancelled "One"
		SetDeliveryPolicy
		UserMessage "A."
		LLMRequestStarted 5 scripted attempt 1 through 20
		UserMessage "B."
		LLMRequestStarted 5 scripted attempt 2 through 22
		UserMessage "C."
		LLMRequestStarted 5 scripted attempt 3 through 24
		AssistantMessage "All three." through 24
		LLMRequestCompleted 5 stop
	`), w.log(c), "the log must equal that of a single process")
	require.Equal(t, []string{
		"system: Be brief.", "user: Hi", "assistant: Hello there",
		"user: Tell me a story", "assistant: Once upon", "user: Shorter", "assistant: Fine.",
		"user: Count", "assistant: One", "user: A.", "user: B.", "user: C.",
	}, contents(w.model.Requests()[4]))
	w.replay(c, "")
}

func TestFiftyContextsSurviveAKilledWorker_Alone(t *testing.T) {
	needsTimelyHeartbeats(t)
	const each = 25 // contexts before and after the second worker starts
	gate := llmtest.NewGate()
	w := newWorld(t, llmtest.Func(func(r llmtest.Request) llmtest.Step {
		answer := llmtest.Answer("Answer", " to "+r.LastUser())
		if r.LastUser() == "Hello" {
			return answer.HoldAfter(1, gate)
		}
		return answer
	}))
	hello := event.New(event.UserMessage{Content: "Hello"})
	var all []*client.Context
	greet := func() {
		for range each {
			c := w.open(fmt.Sprintf("many-%d", len(all)))
			all = append(all, c)
			_, err := c.Send(w.ctx, hello)
			require.NoError(t, err)
		}
		_, err := w.model.Request(w.ctx, len(all))
		require.NoError(t, err)
	}
	first := w.process(contexts.Both)
	greet() // all on the first worker
	w.process(contexts.Both)
	greet() // on either worker

	// All contexts are answering. One third receives nothing, one third a message, and one
	// third an interrupt.
	first.kill()
	gate.Open()
	for i, c := range all {
		switch i % 3 {
		case 1:
			_, err := c.Send(w.ctx, event.New(event.UserMessage{Content: fmt.Sprintf("And %d?", i)}))
			require.NoError(t, err)
		case 2:
			require.NoError(t, c.Interrupt(w.ctx))
		}
	}
	for i, c := range all {
		switch i % 3 {
		case 0:
			w.await(c, isTag(event.TagLLMRequestCompleted))
			require.Equal(t, []string{"Answer to Hello"}, w.requireConsistentLog(c, "Hello"))
		case 1:
			more := fmt.Sprintf("And %d?", i)
			answered := false
			w.await(c, func(e event.Event) bool {
				m, ok := e.Body.(event.AssistantMessage)
				answered = answered || ok && m.Content == "Answer to "+more
				return answered && e.Tag() == event.TagLLMRequestCompleted
			})
			w.requireConsistentLog(c, "Hello", more)
		case 2:
			w.await(c, func(e event.Event) bool {
				// The answer may complete before the interrupt arrives.
				return e.Tag() == event.TagLLMRequestCompleted || e.Tag() == event.TagLLMRequestInterrupted
			})
			w.requireConsistentLog(c, "Hello")
		}
	}
	greetings := 0
	for _, r := range w.model.Requests() {
		if r.LastUser() == "Hello" {
			greetings++
		}
	}
	require.Greater(t, greetings, len(all), "requests of the killed worker must be repeated")
	for i, c := range all {
		if i%10 == 0 {
			w.replay(c, "")
		}
	}
}
