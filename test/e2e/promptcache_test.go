package e2e

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// prefixCache is a model server with a prompt cache: it reports the longest common prefix with an
// earlier request as cached.
type prefixCache struct {
	mu      sync.Mutex
	earlier []string
}

func (p *prefixCache) answer(r llmtest.Request) llmtest.Step {
	prompt := strings.Join(contents(r), "\x00")
	p.mu.Lock()
	defer p.mu.Unlock()
	cached := 0
	for _, other := range p.earlier {
		n := 0
		for n < min(len(other), len(prompt)) && other[n] == prompt[n] {
			n++
		}
		cached = max(cached, n)
	}
	p.earlier = append(p.earlier, prompt)
	step := llmtest.Answer("Answer to ", r.LastUser()[:4])
	if isSummary(r) {
		step = llmtest.Answer("Summary: ", strings.Repeat("They said word. ", 30))
	}
	return step.Usage(len(prompt)/3, 10).Cached(cached / 3)
}

// rolling keeps the newest messages up to a size in bytes, as many chat clients do.
func rolling(bytes int) func(*contexts.Options) {
	return func(o *contexts.Options) {
		o.Reduce = func(current reducer.ReducedContext, events ...event.Event) reducer.ReducedContext {
			current = reducer.Reduce(current, events...)
			size, first := 0, len(current.Messages)
			for first > 0 && size+len(current.Messages[first-1].Content) <= bytes {
				first--
				size += len(current.Messages[first].Content)
			}
			current.Messages = current.Messages[first:]
			return current
		}
	}
}

// The figures are in docs/performance.md.
func TestCompactionKeepsPromptCaches_Long(t *testing.T) {
	long(t)
	t.Parallel()
	const window, turns = 8000, 60
	share := func(t *testing.T, name string, options func(*contexts.Options), settings event.Event) float64 {
		w := newWorld(t, llmtest.Func(new(prefixCache).answer))
		w.worker(w.windowed(window), options)
		c := w.open(name)
		w.send(c, settings, event.New(event.SetDeliveryPolicy{QuietPeriodMs: new(int64(0))}))
		for i := range turns {
			w.say(c, fmt.Sprintf("%04d %s", i, longText))
		}
		input, cached := w.inputUsage(c)
		t.Logf("%s: %d%% of %d input tokens in %d requests are cached", name, 100*cached/input, input, len(w.model.Requests()))
		return float64(cached) / float64(input)
	}
	none := func(*contexts.Options) {}
	// The worker counts about 400 tokens in a message of 2,000 bytes.
	window80 := rolling(window * 8 / 10 * 5)
	rolled := share(t, "rolling", window80, strategies())
	for _, s := range []event.Strategy{event.StrategySummarise, event.StrategyTruncate} {
		require.Greater(t, share(t, string(s), none, strategies(s)), 2*rolled)
	}
}

func (w *world) inputUsage(c *client.Context) (input, cached int) {
	w.t.Helper()
	for _, e := range w.from(c, "") {
		switch b := e.Body.(type) {
		case event.LLMRequestCompleted:
			input, cached = input+b.InputTokens, cached+b.CachedTokens
		case event.LLMAttemptEnded:
			input, cached = input+b.InputTokens, cached+b.CachedTokens
		}
	}
	return input, cached
}
