package llm

import (
	"strings"
	"sync"

	"github.com/sashabaranov/go-openai"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// meter measures the usage of one request. It is safe for concurrent use.
type meter struct {
	counter  *tokenCounter
	encoding encoding
	sent     [][]byte // the messages of the request
	// parameters are the parameters of a request with tools; nil without tools.
	parameters []byte

	counting sync.Mutex // held while tokens are counted
	input    int        // counted tokens of sent; 0: not counted

	mu sync.Mutex // guards the fields below
	// answer is the text of the answer so far, reasoning that of the reasoning, and calls the
	// names and arguments of the tool calls.
	answer, reasoning, calls tally
	// reported is the usage reported by the provider; nil if it reported none.
	reported *event.Usage
	// isRefused means that the provider or the connection failed before an answer began.
	// Providers charge only for answers that began.
	isRefused bool
}

// tally is a text that grows, and the tokens of its first counted bytes.
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

// writeCall adds a piece of a tool call.
func (m *meter) writeCall(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls.text.WriteString(text)
}

// report records the usage reported by the provider. Some report zeros if they do not know it.
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
			// Some providers report reasoning in addition to the completion; OpenAI includes
			// it.
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

// texts returns the texts so far.
func (m *meter) texts() (answer, reasoning string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.answer.text.String(), m.reasoning.text.String()
}

// usage returns the usage so far: the reported one, or an estimate. It counts only new text.
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
	return usage.Bounded()
}

// count returns the tokens of the text of a tally.
func (m *meter) count(t *tally, text string) int {
	t.tokens += m.counter.text(m.encoding, text[t.counted:])
	t.counted = len(text)
	return t.tokens
}

// Usage returns the usage of the target's newest request so far, with its cost. It is an
// estimate if the provider has not reported it. It may be called during [Target.Stream], and
// may take a second for a long conversation that has not been counted before.
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
