package llm_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

func TestTimeoutsBetweenTokensNameTheLimit(t *testing.T) {
	const short = 20 * time.Millisecond
	text := llmtest.Chunk(`{"content":"one"}`, "")
	tests := map[string]struct {
		step              llmtest.Step
		firstToken, stall time.Duration
		text, says        string
	}{
		"before the headers": {
			step: llmtest.Stall(), firstToken: short,
			says: "did not begin within 20ms (firstTokenMs)",
		},
		"after the headers": {
			step: llmtest.Raw("text/event-stream", "", text).HoldAfter(1, llmtest.NewGate()), firstToken: short,
			says: "did not begin within 20ms (firstTokenMs)",
		},
		"comments do not count": {
			step: llmtest.Raw("text/event-stream", ": queued\n\n", text).HoldAfter(1, llmtest.NewGate()), firstToken: short,
			says: "did not begin within 20ms (firstTokenMs)",
		},
		"in the middle of the text": {
			step: llmtest.Raw("text/event-stream", text, text).HoldAfter(1, llmtest.NewGate()), stall: short,
			text: "one", says: "the answer stalled: no token for 20ms (stallMs)",
		},
		"in the middle of the reasoning": {
			step:  llmtest.Raw("text/event-stream", llmtest.Chunk(`{"reasoning_content":"hm"}`, ""), text).HoldAfter(1, llmtest.NewGate()),
			stall: short, says: "the answer stalled",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			model := llmtest.Start(t, test.step)
			target := target(t, model)
			target.FirstToken, target.Stall = test.firstToken, test.stall
			result, err := target.Stream(within(t), hello, nil)
			failed := requireKind(t, llm.KindTimeout, err)
			require.True(t, failed.Retryable())
			require.ErrorContains(t, err, test.says)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, test.text, result.Text)
			require.NoError(t, model.Aborted(within(t), 1))
		})
	}
}

func TestPausesBelowTheLimitAreAllowed(t *testing.T) {
	const long = time.Minute
	gate := llmtest.NewGate()
	end := llmtest.Chunk(`{"content":"one"}`, "stop")
	tests := map[string]struct {
		step              llmtest.Step
		firstToken, stall time.Duration
	}{
		"no limit for the first token, but one for a stall": {step: llmtest.Raw("text/event-stream", end).HoldAfter(0, gate), stall: long},
		"no limit for a stall, but one for the first token": {step: llmtest.Answer("on", "e").HoldAfter(1, gate), firstToken: long},
		"limits that are not reached":                       {step: llmtest.Answer("on", "e").HoldAfter(1, gate), firstToken: long, stall: long},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			model := llmtest.Start(t, test.step)
			target := target(t, model)
			target.FirstToken, target.Stall = test.firstToken, test.stall
			go func() {
				_ = gate.Reached(t.Context())
				gate.Open()
			}()
			result, err := target.Stream(within(t), hello, nil)
			require.NoError(t, err)
			require.Equal(t, "one", result.Text)
		})
	}
	t.Run("a timeout after the finish reason does not fail the answer", func(t *testing.T) {
		model := llmtest.Start(t, llmtest.Raw("text/event-stream", end, llmtest.Done).HoldAfter(1, llmtest.NewGate()))
		target := target(t, model)
		target.Stall = 20 * time.Millisecond
		result, err := target.Stream(within(t), hello, nil)
		require.NoError(t, err)
		require.Equal(t, "stop", result.FinishReason)
	})
}
