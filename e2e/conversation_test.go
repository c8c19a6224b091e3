package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

func TestAConversationOfThreeTurns(t *testing.T) {
	w := newWorld(t,
		llmtest.Answer("Hello", " there"),
		llmtest.Answer("A cat"),
		llmtest.Answer("Bye"),
	)
	w.worker()
	c := w.open("demo")
	w.say(c, "Hi")
	w.say(c, "What is this?")
	w.say(c, "Thanks")
	require.Equal(t, story(`
		SessionStarted after 0
		UserMessage "Hi"
		LLMRequestStarted 1 scripted attempt 1 through 2
		AssistantMessage "Hello there" through 2
		LLMRequestCompleted 1 stop
		UserMessage "What is this?"
		LLMRequestStarted 2 scripted attempt 1 through 6
		AssistantMessage "A cat" through 6
		LLMRequestCompleted 2 stop
		UserMessage "Thanks"
		LLMRequestStarted 3 scripted attempt 1 through 10
		AssistantMessage "Bye" through 10
		LLMRequestCompleted 3 stop
	`), w.log(c))
}
