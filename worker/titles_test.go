package main_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

func TestAWorkerGivesContextsTitles(t *testing.T) {
	t.Parallel()
	model := llmtest.Start(t, llmtest.Func(func(r llmtest.Request) llmtest.Step {
		if r.Model == "vendor/small" {
			return llmtest.Answer("The canary")
		}
		return llmtest.Answer("It sings.")
	}))
	worker := prepare(t, devArgs(t.TempDir(), "--titles", "openai/vendor/small")...)
	worker.cmd.Env = append(worker.cmd.Env, "OPENAI_BASE_URL="+model.URL, "OPENAI_MODEL=large")
	worker.start()
	facts := worker.ready()
	require.Equal(t, "openai/vendor/small", facts["titles"])
	require.Equal(t, "It sings.", ask(t, facts, "Does the canary sing?"))
	c := dial(t, facts)
	require.Eventually(t, func() bool {
		for listed, err := range c.List(t.Context(), `ContextTitle = "The canary"`) {
			return err == nil && listed.ContextName == "demo"
		}
		return false
	}, time.Minute, 100*time.Millisecond)
}
