package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

func TestRerunSendsTheSameMessagesToAnotherModel(t *testing.T) {
	t.Parallel()
	w := newWorldOn(t, environment{timeout: buildTimeout}, llmtest.Func(func(r llmtest.Request) llmtest.Step {
		return llmtest.Answer(r.Model, " was told: ", r.LastUser())
	}))
	w.worker()
	c := w.open("asked")
	w.say(c, "One", event.New(event.SystemPrompt{Content: "Be brief."}))
	w.say(c, "Two")

	again := w.open("again")
	out := w.starter("", "rerun", "-n", c.Name(), "--as", again.Name(), "--provider", "other", "--model", "newer", "--base-url", w.model.URL)
	for _, cells := range []string{
		"| 1 | One | scripted was told: One<br>[", "| newer was told: One<br>[", "| 2 | Two | scripted was told: Two<br>[", "| newer was told: Two<br>[",
		"\nturns: 2, identical answers: 0, not answered: 0\n",
	} {
		require.Contains(t, out, cells)
	}
	requests := w.model.Requests()
	require.Equal(t, []string{"system: Be brief.", "user: One", "assistant: newer was told: One", "user: Two"}, contents(requests[3]))

	_, errOut, err := w.tryStarter("", "rerun", "-n", c.Name(), "--as", again.Name(), "--provider", "other", "--model", "newer")
	require.Error(t, err)
	require.True(t, strings.HasSuffix(errOut, "context already exists (choose another name)\n"), errOut)
}
