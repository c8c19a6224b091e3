package llm_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/internal/ordering"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// TestNoStateOfAContextIsRejectedByAProvider_Alone drives a context with random input, answers with tool
// calls, results, approvals, faults and changes of the provider. After every step it renders the
// messages for every preset, with and without tools, and sometimes as if the provider refused all content.
// Package ordering checks the requests. Two more servers demand what they gave, and refuse images for ever: every
// conversation with them goes on.
func TestNoStateOfAContextIsRejectedByAProvider_Alone(t *testing.T) {
	seen := map[string]int{}
	isMissing := func(what string) bool { return seen[what] == 0 }
	for range 5 { // 100 random conversations can miss a rare situation
		if rapid.Check(t, converse(seen)); !slices.ContainsFunc(conversed, isMissing) {
			break
		}
	}
	t.Log(seen)
	for _, what := range conversed {
		require.Positive(t, seen[what], "no conversation has %s", what)
	}
}

// conversed is what conversations have.
var conversed = []string{
	"calls", "states", "requests with state", "late results", "approvals", "fallbacks", "requests without tools", "retries", "withdrawn attempts",
	"drop_tool_results", "summarise", "truncate", "requests for a summary", "refused images", "refused calls", "exact ids",
}

func converse(seen map[string]int) func(*rapid.T) {
	return func(t *rapid.T) {
		c := newConversation(t, seen)
		c.step(reducer.Opened{At: c.now})
		c.setProvider()
		c.setProvider()
		c.input(event.SetTools{Tools: event.ToolList{{Pattern: "*"}}, Parallel: new(rapid.IntRange(1, 3).Draw(t, "parallel"))})
		t.Repeat(map[string]func(*rapid.T){
			"message":  func(t *rapid.T) { c.in(t); c.message() },
			"exact":    func(t *rapid.T) { c.in(t); c.interrupt(); c.send(); c.end("interrupted"); c.stubborn("exact") },
			"blind":    func(t *rapid.T) { c.in(t); c.interrupt(); c.send(); c.end("interrupted"); c.stubborn("blind") },
			"retry":    func(t *rapid.T) { c.in(t); c.message(); c.send(); c.end("failed") },
			"client":   func(t *rapid.T) { c.in(t); c.clientInput() },
			"provider": func(t *rapid.T) { c.in(t); c.setProvider() },
			"settings": func(t *rapid.T) { c.in(t); c.setSettings() },
			"send":     func(t *rapid.T) { c.in(t); c.send() },
			"answer":   func(t *rapid.T) { c.in(t); c.send(); c.end("answered") },
			"turn":     func(t *rapid.T) { c.in(t); c.message(); c.send(); c.end("answered") },
			"step":     func(t *rapid.T) { c.in(t); c.endTool(); c.decide(); c.send(); c.end("answered") },
			"end":      func(t *rapid.T) { c.in(t); c.endSomehow() },
			"too long": func(t *rapid.T) { c.in(t); c.tooLong() },
			"dropped":  func(t *rapid.T) { c.in(t); c.longTurn(event.StrategyDropToolResults) },
			"long turn": func(t *rapid.T) {
				c.in(t)
				c.longTurn(rapid.SampledFrom(event.Strategy("").Values()).Draw(t, "strategy"))
			},
			"late": func(t *rapid.T) {
				c.in(t)
				c.message()
				c.send()
				c.end("answered")
				c.interrupt()
				c.endTool()
			},
			"strategy":  func(t *rapid.T) { c.in(t); c.input(eventtest.Of[event.SetCompaction]().Draw(t, "compaction")) },
			"tool":      func(t *rapid.T) { c.in(t); c.endTool() },
			"tools":     func(t *rapid.T) { c.in(t); c.endTool(); c.endTool() },
			"decide":    func(t *rapid.T) { c.in(t); c.decide() },
			"wake":      func(t *rapid.T) { c.in(t); c.wakeUp() },
			"interrupt": func(t *rapid.T) { c.in(t); c.interrupt() },
			"close":     func(t *rapid.T) { c.in(t); c.step(reducer.CloseAsked{At: c.now}) },
			"continue":  func(t *rapid.T) { c.in(t); c.continueAsNew() },
			"terminate": func(t *rapid.T) { c.in(t); c.terminate() },
			"":          func(t *rapid.T) { c.in(t); c.check() },
		})
	}
}

// peer is the providers without a network. It records requests.
type peer struct {
	answer string // a stream; "" for status 400
	bodies []string
	memory ordering.Memory
	vague  bool   // refusals have no reason
	newest string // the newest body
}

func (p *peer) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	p.bodies = append(p.bodies, string(body))
	status, answer, problem := http.StatusOK, p.answer, ""
	if answer == "" {
		problem = "no"
	}
	if problems := p.memory.Check(body); r.URL.Host == exactHost && len(problems) > 0 {
		problem = problems[0]
	}
	if r.URL.Host == blindHost && strings.Contains(string(body), "image_url") {
		problem = "the image could not be processed"
	}
	if problem != "" {
		if p.vague {
			problem = "Bad Request"
		}
		status, answer = http.StatusBadRequest, fmt.Sprintf(`{"error":{"message":%q}}`, problem)
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
}

// Hosts of the servers "exact", which demands what it gave, and "blind", which refuses images.
const (
	exactHost = "127.0.0.1:1"
	blindHost = "127.0.0.1:2"
)

// models are the models of presets whose rules depend on the model.
var models = map[string][]string{"gemini": {"gemini-3-pro", "gemini-2.5-flash"}, "vllm": {"m", "gemma-3"}}

// destinations are the presets with their models.
func destinations() (all []reducer.ProviderConfig) {
	for _, id := range llm.Presets() {
		names := models[id]
		if names == nil {
			names = []string{"m"}
		}
		for _, name := range names {
			all = append(all, reducer.ProviderConfig{ProviderID: id, Model: name})
		}
	}
	return all
}
