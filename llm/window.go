package llm

import (
	"context"

	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// MaxInput returns the maximum input of a request in tokens: the configured context window minus
// the maximum output that its parameters allow, or the whole window if that output is not smaller. 0: no window is
// configured. Errors are of type [*Error].
func (t *Target) MaxInput(ctx context.Context) (int, error) {
	if t.window == 0 {
		return 0, nil
	}
	parameters, err := t.parameters()
	if err != nil {
		return 0, t.failBeforeAnswer(ctx, err)
	}
	if limit := outputLimit(parameters); limit < t.window {
		return t.window - limit, nil
	}
	return t.window, nil // many servers then reduce the output
}

// renderedBytes bounds what rendering adds to a message and to a tool call.
const renderedBytes = 128

// InputTokens returns the input of a request in tokens, estimated by the tokenizer. If an upper
// bound by its size is at most limit, it returns that bound without counting.
// Counting a long conversation for the first time may take a second. Errors are of type [*Error].
func (t *Target) InputTokens(ctx context.Context, messages []reducer.Message, limit int) (int, error) {
	if bound, ok := t.maxTokens(t.prompt(messages)); ok && bound <= limit {
		return bound, nil
	}
	tokens, _, err := t.input(ctx, messages)
	return tokens, err
}

// maxTokens bounds the tokens of a request by its bytes, unless it has attachments.
func (t *Target) maxTokens(prompt []reducer.Message) (bound int, ok bool) {
	parameters, err := t.parameters()
	if err != nil {
		return 0, false
	}
	bound = len(prompting(parameters))
	for i := range prompt {
		m := &prompt[i]
		if len(m.Attachments) > 0 {
			return 0, false
		}
		bound += renderedBytes + len(m.Content)
		if m.ProviderState != nil {
			bound += len(m.ProviderState.Data)
		}
		for _, call := range m.ToolCalls {
			bound += renderedBytes + 2*len(call.Name) + len(call.Arguments)
		}
	}
	return bound, true
}
