package tool

import (
	"context"
	"errors"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
)

type call struct {
	contextName, id string
	progress        func(text string) // nil: progress is discarded
	blobs           *archive.Blobs    // of the context; nil: none
}

type callKey struct{}

// NewContext returns the context of a call, for tests. If progress is nil, Progress has no effect.
func NewContext(ctx context.Context, contextName, callID string, progress func(text string)) context.Context {
	return withCall(ctx, call{contextName: contextName, id: callID, progress: progress})
}

func withCall(ctx context.Context, c call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

func callOf(ctx context.Context) call {
	c, _ := ctx.Value(callKey{}).(call) // zero outside of a call
	return c
}

// CallID returns the id of the tool call. With [ContextName], it is an idempotency key: unique in
// the context and the same for all attempts of the call. It is empty outside of a call.
func CallID(ctx context.Context) string { return callOf(ctx).id }

// ContextName returns the name of the calling context, TENANT/NAME in a tenant; empty outside of a call.
func ContextName(ctx context.Context) string { return callOf(ctx).contextName }

// Progress shows a text to followers, in place of the previous one. It is neither recorded nor sent
// to the model. Texts that arrive too fast are dropped.
func Progress(ctx context.Context, text string) {
	if c := callOf(ctx); c.progress != nil {
		c.progress(text)
	}
}

type retryable struct{ error }

func (r retryable) Unwrap() error { return r.error }

// Retryable marks an error after which a later attempt may succeed. The call of an [Idempotent] tool
// is then repeated, up to the number in [Attempts]. Retryable(nil) is nil.
func Retryable(err error) error {
	if err == nil {
		return nil
	}
	return retryable{err}
}

func isRetryable(err error) bool { return errors.As(err, new(retryable)) }
