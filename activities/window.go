package activities

import (
	"context"
	"errors"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// overflow returns how the request exceeds the part of the context window that triggers a compaction;
// nil if it does not, if the window is unknown, or if the conversation cannot be compacted.
func overflow(ctx context.Context, p prepared, mayCompact bool) (*reducer.Overflow, error) {
	if !mayCompact {
		return nil, nil
	}
	known, err := windowOf(ctx, p)
	if err != nil || known.Window == 0 {
		return nil, err
	}
	limit := known.Window * p.session.Reduced.Config.Compaction.Limits().Trigger / 100
	known.Tokens, err = p.model.InputTokens(ctx, p.request, limit)
	if err != nil || known.Tokens <= limit {
		return nil, err
	}
	return &known, nil
}

// windowOf returns the smaller of the configured and the learned window; zero if both are unknown.
func windowOf(ctx context.Context, p prepared) (reducer.Overflow, error) {
	configured, err := p.model.MaxInput(ctx, p.request)
	learned := p.session.LearnedWindow(p.model.ID())
	if learned > 0 && (configured == 0 || learned < configured) {
		return reducer.Overflow{Window: learned, Source: event.WindowLearned}, err
	}
	return reducer.Overflow{Window: configured, Source: event.WindowConfigured}, err
}

// refusedLength returns how the input exceeds the window, if err is the rejection of a provider. Nil: it is not,
// or the tokens cannot be counted.
func refusedLength(ctx context.Context, p prepared, err error) *reducer.Overflow {
	var refusal *ModelError
	if !errors.As(err, &refusal) || refusal.Failure != event.FailureContextTooLong {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	tokens, err := p.model.InputTokens(ctx, p.request, 0)
	window := learnedWindow(tokens, refusal.Window, refusal.InputTokens)
	if err != nil || window == 0 {
		return nil
	}
	refused := reducer.Overflow{Tokens: tokens, Window: window, Source: event.WindowLearned}
	if known, err := windowOf(ctx, p); err == nil && known.Window > 0 && known.Window < window {
		refused.Window, refused.Source = known.Window, known.Source
	}
	return &refused
}

// learnedWindow returns the window that a rejection shows, in tokens as this worker counts them. window
// and input are the numbers in the rejection; 0: not stated. The result is 0 if the input fits,
// and only the output is too long.
func learnedWindow(counted, window, input int) int {
	switch {
	case window == 0:
		window = counted * 9 / 10
	case input == 0:
		window = min(window, counted*9/10)
	case input <= window:
		return 0
	default:
		window = min(window, int(int64(counted)*int64(window)/int64(input)))
	}
	return max(1, window)
}
