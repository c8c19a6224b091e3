package llm

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Kind says what went wrong.
type Kind string

// The kinds of an [Error].
const (
	// KindConfiguration: the worker or the context is set up so that no
	// request can be made.
	KindConfiguration Kind = "configuration"
	// KindUnauthorized: the key is missing, wrong or not allowed (401, 403).
	KindUnauthorized Kind = "unauthorized"
	// KindNotFound: there is no such model or endpoint (404).
	KindNotFound Kind = "not found"
	// KindBadRequest: the provider refuses the request (400, 422, other 4xx).
	KindBadRequest Kind = "bad request"
	// KindContextTooLong: the conversation does not fit into the model.
	KindContextTooLong Kind = "context too long"
	// KindNoVision: the model takes no images, and was sent one.
	KindNoVision Kind = "no vision"
	// KindToolCall: the answer is nothing but calls of tools, and none were
	// offered.
	KindToolCall Kind = "unasked tool call"
	// KindContentFilter: the provider will not talk about this.
	KindContentFilter Kind = "content filter"
	// KindQuota: the account has no money left (402, insufficient_quota).
	KindQuota Kind = "quota exceeded"
	// KindRateLimited: too many requests for now (429).
	KindRateLimited Kind = "rate limited"
	// KindServer: the provider is overloaded or broken (5xx, 409, 425).
	KindServer Kind = "server error"
	// KindConnection: no answer began; the connection failed before.
	KindConnection Kind = "connection failed"
	// KindTruncated: an answer began, or seemed to, and did not come to its end.
	KindTruncated Kind = "answer cut off"
	// KindTimeout: the deadline passed, nothing came for longer than the target
	// allows, or the provider says that its own time is over (408).
	KindTimeout Kind = "timeout"
	// KindCanceled: the caller gave up.
	KindCanceled Kind = "canceled"
)

// Error says why there is no complete answer.
type Error struct {
	ProviderID string
	// Status is the HTTP status, or the one that an error inside a stream
	// names. 0 means that no answer came.
	Status int
	Kind   Kind
	// Message is a description of our own, or the message of an error object that
	// a configured provider sent. Secrets are removed and it is cut to about 500
	// bytes.
	Message string
	// RetryAfter is how long the provider asks to wait; 0 when it does not say.
	RetryAfter time.Duration
	// RetryOnce says that another attempt may succeed, but many are a waste:
	// what failed looks like a server without vision that was sent an image.
	RetryOnce bool

	// blamesImages says that the provider refuses images.
	blamesImages bool
	// cause is why the caller gave up.
	cause error
}

// Error is the provider, the kind, the status and the message.
func (e *Error) Error() string {
	switch {
	case e.Kind == KindConfiguration:
		return fmt.Sprintf("%s: %s", e.ProviderID, e.Message)
	case e.Status >= 300:
		return fmt.Sprintf("%s: %s (%d): %s", e.ProviderID, e.Kind, e.Status, e.Message)
	default:
		return fmt.Sprintf("%s: %s: %s", e.ProviderID, e.Kind, e.Message)
	}
}

// Unwrap returns what the kind stands for: [context.Canceled] and the cause of
// the caller's context, [context.DeadlineExceeded], [io.ErrUnexpectedEOF]. The
// error of the HTTP client is not among them, since a chain of errors is kept
// as a whole by those who store errors, and its text may hold a secret.
func (e *Error) Unwrap() []error {
	switch e.Kind {
	case KindCanceled:
		return []error{context.Canceled, e.cause}
	case KindTimeout:
		return []error{context.DeadlineExceeded}
	case KindTruncated:
		return []error{io.ErrUnexpectedEOF}
	}
	return nil
}

// Retryable reports whether the same request may succeed later.
func (e *Error) Retryable() bool {
	switch e.Kind {
	case KindRateLimited, KindServer, KindConnection, KindTruncated, KindTimeout:
		return true
	}
	return false
}
