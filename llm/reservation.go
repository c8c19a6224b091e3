package llm

import (
	"context"
	"encoding/json"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Reservation returns the usage to reserve for a request: its input, estimated as by [Target.Usage],
// and the maximum output that its parameters allow. CostMicros is nil if no price is known. Callers
// set MaxOutput: an unlimited output counts as 0. Errors are of type [*Error].
func (t *Target) Reservation(ctx context.Context, messages []reducer.Message) (event.Usage, error) {
	sent, err := t.render(ctx, t.prompt(messages))
	if err != nil {
		return event.Usage{}, t.failBeforeAnswer(ctx, err)
	}
	parameters, err := t.parameters()
	if err != nil {
		return event.Usage{}, t.failBeforeAnswer(ctx, err)
	}
	encoding := encodingOf(t.Model)
	usage := event.Usage{InputTokens: t.counter.conversation(encoding, sent.json), OutputTokens: outputLimit(parameters), Estimated: true}
	if t.offersTools() || t.settings().ResponseFormat != nil {
		usage.InputTokens += t.counter.text(encoding, string(parameters))
	}
	usage = usage.Bounded()
	if t.price != nil {
		highest := Price{Input: max(t.price.Input, t.price.CachedInput), Output: t.price.Output}
		usage.CostMicros, usage.PriceVersion = new(highest.cost(usage)), t.priceVersion
	}
	return usage, nil
}

// outputLimit returns the larger of the output limits in the parameters of a request. 0: none.
func outputLimit(parameters []byte) int {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(parameters, &fields) // it is an object
	limit := 0
	for _, name := range []string{parameterMaxTokens, parameterMaxCompletion} {
		var n int
		if json.Unmarshal(fields[name], &n) == nil {
			limit = max(limit, n)
		}
	}
	return limit
}
