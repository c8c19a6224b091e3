package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/baseurl"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// inputOf counts the input of a request as a provider with another tokenizer: a token for three bytes.
func inputOf(r llmtest.Request) int {
	n := 0
	for _, m := range r.Messages {
		n += 12 + len(m.Content)
		for _, call := range m.ToolCalls {
			n += 12 + len(call.Function.Arguments)
		}
	}
	return n / 3
}

// limited rejects requests beyond a window, as vLLM does, and answers others.
func limited(window int, answer func(llmtest.Request) llmtest.Step) func(llmtest.Request) llmtest.Step {
	return func(r llmtest.Request) llmtest.Step {
		if n := inputOf(r); n+r.OutputLimit() > window {
			return llmtest.Error(400, "BadRequestError", fmt.Sprintf("This model's maximum context length is %d tokens. However, you requested %d output tokens "+
				"and your prompt contains at least %d input tokens, for a total of at least %d tokens.", window, r.OutputLimit(), n, n+r.OutputLimit()))
		}
		return answer(r)
	}
}

func isSummary(r llmtest.Request) bool {
	return strings.HasPrefix(r.LastUser(), "Summarise the conversation above.")
}

func strategies(s ...event.Strategy) event.Event {
	return event.New(event.SetCompaction{Strategies: s})
}

// windowed configures the context window of the model.
func (w *world) windowed(tokens int) func(*contexts.Options) {
	return func(o *contexts.Options) {
		o.Models = llm.New(llm.Options{
			AllowLoopback: true,
			Providers:     []llm.Provider{{ID: "house", BaseURL: baseurl.MustParse(w.model.URL), ContextWindow: tokens}},
			Defaults:      llm.Defaults{ProviderID: "house", Model: "scripted"},
		})
	}
}

var (
	longText  = strings.TrimSpace(strings.Repeat("word ", 400)) // 2,000 bytes
	rejection = llmtest.Error(400, "context_length_exceeded", "prompt is too long: 1210 tokens > 1200 maximum")
)

func TestAConversationGrowsForever(t *testing.T) {
	growForever(t, 15)
}

func TestAConversationGrowsForHundredsOfTurns_Long(t *testing.T) {
	long(t)
	growForever(t, 500)
}

// A model server rejects every request beyond its window, and counts more tokens than the worker.
func growForever(t *testing.T, turns int) {
	const window = 4000
	for _, test := range []struct {
		strategy event.Strategy
		known    int // the configured window; 0: none
	}{
		{event.StrategyDropToolResults, 0},
		{event.StrategyTruncate, 0}, {event.StrategyTruncate, window},
		{event.StrategySummarise, 0}, {event.StrategySummarise, window},
	} {
		t.Run(fmt.Sprint(test.strategy, " ", test.known), func(t *testing.T) {
			t.Parallel()
			p := newProbe(t, func(_ context.Context, q string) string { return q + " " + longText })
			var mu sync.Mutex
			rejected, summaries, calls := 0, 0, 0
			w := newWorld(t, llmtest.Func(func(r llmtest.Request) llmtest.Step {
				mu.Lock()
				defer mu.Unlock()
				rejected++
				return limited(window, func(r llmtest.Request) llmtest.Step {
					rejected--
					results := r.Results()
					switch {
					case isSummary(r):
						summaries++
						return llmtest.Answer("Summary ", fmt.Sprint(summaries))
					case test.strategy == event.StrategyDropToolResults && len(results) == 0:
						calls++
						return llmtest.Calls(p.call("probe", fmt.Sprint(calls)))
					}
					return llmtest.Answer("Answer to ", r.LastUser()[:4])
				})(r)
			}))
			if test.known > 0 {
				w.worker(w.windowed(test.known))
			} else {
				w.worker()
			}
			c := w.open("forever")
			w.send(c, strategies(test.strategy), event.New(event.SetDeliveryPolicy{QuietPeriodMs: new(int64(0))}))
			text := longText
			n := turns
			if test.strategy == event.StrategyDropToolResults {
				w.setTools(c, "probe")
				text, n = "", min(turns, 40) // the questions and calls stay
			}
			for i := range n {
				said := w.say(c, fmt.Sprintf("%04d %s", i, text))
				last := said[len(said)-1]
				require.Equal(t, event.TagLLMRequestCompleted, last.Tag(), "turn %d: %v", i, last.Body)
				require.Equal(t, fmt.Sprintf("Answer to %04d", i), lastAnswer(said))
			}
			compacted := countOf(w, c, event.TagCompacted)
			require.Greater(t, compacted, min(n, 50)/10)
			mu.Lock()
			defer mu.Unlock()
			t.Logf("%d requests, %d rejected, %d compactions", len(w.model.Requests()), rejected, compacted)
			assert.LessOrEqual(t, rejected, 3, "a learned window prevents rejections")
			w.replay(c, "")
		})
	}
}

func lastAnswer(events []event.Event) (text string) {
	for _, e := range events {
		if b, ok := e.Body.(event.AssistantMessage); ok {
			text = b.Content
		}
	}
	return text
}
