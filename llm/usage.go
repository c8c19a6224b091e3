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
	sent       [][]byte // the messages of the request
	parameters []byte   // of a request with tools; nil without tools
	maxOutput  int      // that the request allows; 0: unlimited

	counting sync.Mutex // held while tokens are counted
	input    int        // counted tokens of sent; 0: not counted

	mu                       sync.Mutex   // guards the fields below
	answer, reasoning, calls tally        // texts so far; calls: names and arguments
	reported                 *event.Usage // by the provider, or nil
	isRefused                bool         // no answer began, so the provider charges nothing
}

// tally is a growing text. Counted is the length in bytes of the part whose tokens were counted.
type tally struct {
	text            strings.Builder
	counted, tokens int
}

func (m *meter) write(delta Delta) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if delta.IsReasoning {
		m.reasoning.text.WriteString(delta.Text)
	} else {
		m.answer.text.WriteString(delta.Text)
	}
}

func (m *meter) writeCall(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls.text.WriteString(text)
}

// Some providers report zeros if they do not know the usage.
func (m *meter) report(u *openai.Usage) {
	if u == nil || u.PromptTokens <= 0 && u.CompletionTokens <= 0 {
		return
	}
	usage := event.Usage{InputTokens: u.PromptTokens, OutputTokens: u.CompletionTokens}
	if details := u.PromptTokensDetails; details != nil {
		usage.CachedTokens = details.CachedTokens
	}
	if details := u.CompletionTokensDetails; details != nil {
		usage.ReasoningTokens = details.ReasoningTokens
		if u.TotalTokens == u.PromptTokens+u.CompletionTokens+details.ReasoningTokens {
			// Some providers report reasoning in addition to the completion; OpenAI includes it.
			usage.OutputTokens += details.ReasoningTokens
		}
	}
	usage = usage.Bounded()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reported = &usage
}

func (m *meter) refuse() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.isRefused = true
}

func (m *meter) texts() (answer, reasoning string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.answer.text.String(), m.reasoning.text.String()
}

// usage is the reported one, or an estimate; only text since the last estimate is counted.
func (m *meter) usage() event.Usage {
	m.counting.Lock()
	defer m.counting.Unlock()
	m.mu.Lock()
	reported, isRefused, calls := m.reported, m.isRefused, m.calls.text.String()
	m.mu.Unlock()
	answer, reasoning := m.texts()
	switch {
	case reported != nil:
		return *reported
	case isRefused:
		return event.Usage{}
	}
	if m.input == 0 {
		m.input = m.counter.conversation(m.encoding, m.sent)
		if m.parameters != nil {
			m.input += m.counter.text(m.encoding, string(m.parameters))
		}
	}
	usage := event.Usage{InputTokens: m.input, Estimated: true}
	usage.ReasoningTokens = m.count(&m.reasoning, reasoning)
	usage.OutputTokens = usage.ReasoningTokens + m.count(&m.answer, answer) + m.count(&m.calls, calls)
	if m.maxOutput > 0 { // the tokens of the model can be longer than the counted ones
		usage.OutputTokens = min(usage.OutputTokens, m.maxOutput)
		usage.ReasoningTokens = min(usage.ReasoningTokens, m.maxOutput)
	}
	return usage.Bounded()
}

func (m *meter) count(t *tally, text string) int {
	t.tokens += m.counter.text(m.encoding, text[t.counted:])
	t.counted = len(text)
	return t.tokens
}

// Usage returns the usage and cost of the newest request so far, estimated until the provider
// reports it. It may be called during [Target.Stream], and may take a second for a long
// conversation that was not counted before.
func (t *Target) Usage() event.Usage {
	m := t.meter.Load()
	if m == nil {
		return event.Usage{}
	}
	usage := m.usage()
	if t.price != nil && usage.InputTokens+usage.OutputTokens > 0 {
		usage.CostMicros, usage.PriceVersion = new(t.price.cost(usage)), t.priceVersion
	}
	return usage
}
