package llm

import (
	"context"
	"slices"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Reservation returns the usage to reserve for a request: its input, estimated by the tokenizer, and
// the maximum output that its parameters allow. CostMicros is nil if no price is known. Callers set
// MaxOutput: an unlimited output counts as 0. Errors are of type [*Error].
func (t *Target) Reservation(ctx context.Context, messages []reducer.Message) (event.Usage, error) {
	input, parameters, err := t.input(ctx, messages)
	if err != nil {
		return event.Usage{}, err
	}
	usage := event.Usage{InputTokens: input, OutputTokens: outputLimit(parameters), Estimated: true}.Bounded()
	if t.price != nil {
		highest := Price{Input: max(t.price.Input, t.price.CachedInput), Output: t.price.Output}
		usage.CostMicros, usage.PriceVersion = new(highest.cost(usage)), t.priceVersion
	}
	return usage, nil
}

// input returns the estimated tokens of a request, and its parameters.
func (t *Target) input(ctx context.Context, messages []reducer.Message) (tokens int, parameters []byte, err error) {
	sent, err := t.render(ctx, t.prompt(messages))
	if err == nil {
		parameters, err = t.parameters()
	}
	if err != nil {
		return 0, nil, t.failBeforeAnswer(ctx, err)
	}
	return t.counter.messages(encodingOf(t.Model), sent) + t.counter.parameters(encodingOf(t.Model), prompting(parameters)), parameters, nil
}

// prompting returns the parameters of a request that are input of the model: tools and the response format.
func prompting(parameters []byte) []byte {
	fields := valueOf(parameters)
	return slices.Concat(fields.field(parameterTools), fields.field(parameterResponseFormat))
}

// outputLimit returns the larger of the output limits in the parameters of a request. 0: none.
func outputLimit(parameters []byte) int {
	fields := valueOf(parameters)
	return max(0, fields.field(parameterMaxTokens).number(), fields.field(parameterMaxCompletion).number())
}
