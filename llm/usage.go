package llm

import (
	"strings"
	"sync"

	"github.com/sashabaranov/go-openai"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// meter measures the usage of one request. It is safe for concurrent use.
type meter struct {
	counter    *tokenCounter
	encoding   encoding
	sent       conversation
	parameters []byte // that the model reads
	maxOutput  int    // that the request allows; 0: unlimited

	mu                       sync.Mutex      // guards the fields below
	answer, reasoning, calls strings.Builder // texts so far; calls: names and arguments
	known                    *event.Usage    // reported by the provider, or else set by count; nil: unknown
	isRefused                bool            // no answer began, so the provider charges nothing
}

func (m *meter) write(delta Delta) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if delta.IsReasoning {
		m.reasoning.WriteString(delta.Text)
	} else {
		m.answer.WriteString(delta.Text)
	}
}

func (m *meter) writeCall(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls.WriteString(text)
}

// relabel makes the answer so far reasoning.
func (m *meter) relabel() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reasoning.WriteString(m.answer.String())
	m.answer.Reset()
}

// report takes a usage as [chunk.decodeUsage] reads it; nil: none.
func (m *meter) report(u *openai.Usage) {
	if u == nil {
		return
	}
	reasoning := u.CompletionTokensDetails.ReasoningTokens
	usage := event.Usage{
		InputTokens: u.PromptTokens, OutputTokens: u.CompletionTokens,
		CachedTokens: u.PromptTokensDetails.CachedTokens, ReasoningTokens: reasoning,
	}
	if u.TotalTokens == u.PromptTokens+u.CompletionTokens+reasoning {
		// Some providers report reasoning in addition to the completion; OpenAI includes it.
		usage.OutputTokens += reasoning
	}
	usage = usage.Bounded()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known = &usage
}

// isKnown reports whether the provider reported the usage.
func (m *meter) isKnown() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known != nil
}

func (m *meter) refuse() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.isRefused = true
}

func (m *meter) texts() (answer, reasoning string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.answer.String(), m.reasoning.String()
}

// count returns the usage of a request that ended: the reported one, or an estimate by the tokenizer.
func (m *meter) count() event.Usage {
	text := func(text string) int { return m.counter.text(m.encoding, text) }
	usage := m.usage(func() int {
		return m.counter.extrapolated(m.encoding, m.sent) + m.counter.parameters(m.encoding, m.parameters)
	}, text)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known = &usage
	return usage
}

// soFar returns the known usage, or an estimate without counting.
func (m *meter) soFar() event.Usage {
	return m.usage(func() int {
		tokens, _, uncounted := m.counter.known(m.encoding, m.sent)
		return tokens + tokensBySize(uncounted+len(m.parameters))
	}, func(text string) int { return tokensBySize(len(text)) })
}

func (m *meter) usage(input func() int, tokens func(text string) int) event.Usage {
	m.mu.Lock()
	known, isRefused := m.known, m.isRefused
	answer, reasoning, calls := m.answer.String(), m.reasoning.String(), m.calls.String()
	m.mu.Unlock()
	switch {
	case known != nil:
		return *known
	case isRefused:
		return event.Usage{}
	}
	usage := event.Usage{InputTokens: input(), ReasoningTokens: tokens(reasoning), Estimated: true}
	usage.OutputTokens = usage.ReasoningTokens + tokens(answer) + tokens(calls)
	if m.maxOutput > 0 { // the estimate can exceed it: some models have longer, and thus fewer, tokens
		usage.OutputTokens = min(usage.OutputTokens, m.maxOutput)
		usage.ReasoningTokens = min(usage.ReasoningTokens, m.maxOutput)
	}
	return usage.Bounded()
}

// Usage returns the usage and cost so far of the newest request. It may be called during [Target.Stream].
// Until the provider reports the usage or the request ends, text that was not counted before is estimated by its size:
// tokenizing every running answer again and again would delay all answers of the process.
func (t *Target) Usage() event.Usage { return t.usage((*meter).soFar) }

func (t *Target) usage(of func(*meter) event.Usage) event.Usage {
	m := t.meter.Load()
	if m == nil {
		return event.Usage{}
	}
	usage := of(m)
	if t.price != nil && usage.InputTokens+usage.OutputTokens > 0 {
		usage.CostMicros, usage.PriceVersion = new(t.price.cost(usage)), t.priceVersion
	}
	return usage
}
