package llm

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Kind classifies an [Error].
type Kind string

// The kinds of an [Error].
const (
	// KindConfiguration: the settings of the worker or the context allow no request.
	KindConfiguration Kind = "configuration"
	// KindUnauthorized: the key is missing, invalid or lacks permission (401, 403).
	KindUnauthorized Kind = "unauthorized"
	// KindNotFound: no such model or endpoint (404).
	KindNotFound Kind = "not found"
	// KindBadRequest: the provider rejected the request (400, 422, other 4xx).
	KindBadRequest Kind = "bad request"
	// KindContextTooLong: the conversation exceeds the context window.
	KindContextTooLong Kind = "context too long"
	// KindNoVision: the request has an image and the model accepts none.
	KindNoVision Kind = "no vision"
	// KindNoPDF: the request contains a PDF, which the model does not accept.
	KindNoPDF Kind = "no PDF input"
	// KindNoAudio: the request contains an audio file, which the model does not accept.
	KindNoAudio Kind = "no audio input"
	// KindNoTools: the request offers tools and the model does not support tools.
	KindNoTools Kind = "no tools"
	// KindToolCall: the answer contains only tool calls, although no tools were offered.
	KindToolCall Kind = "unasked tool call"
	// KindContentFilter: the content filter of the provider rejected the request or the answer.
	KindContentFilter Kind = "content filter"
	// KindQuota: the account has no quota left (402, insufficient_quota).
	KindQuota Kind = "quota exceeded"
	// KindRateLimited: too many requests (429).
	KindRateLimited Kind = "rate limited"
	// KindServer: the provider is overloaded or failed (5xx, 409, 425).
	KindServer Kind = "server error"
	// KindConnection: the connection failed before a response.
	KindConnection Kind = "connection failed"
	// KindTruncated: the response ended before the answer was complete.
	KindTruncated Kind = "answer cut off"
	// KindInvalidAnswer: the answer does not match the response format, or its tool calls are
	// incomplete or too large.
	KindInvalidAnswer Kind = "invalid answer"
	// KindTimeout: the deadline passed, a token took longer than the target allows, or the
	// provider timed out (408).
	KindTimeout Kind = "timeout"
	// KindCanceled: the caller cancelled the request.
	KindCanceled Kind = "canceled"
)

// failureKinds are the kinds of errors in events. KindCanceled is absent, because a cancelled
// request is not a failure.
var failureKinds = map[Kind]event.FailureKind{
	KindConfiguration:  event.FailureConfiguration,
	KindUnauthorized:   event.FailureUnauthorized,
	KindNotFound:       event.FailureModelNotFound,
	KindBadRequest:     event.FailureBadRequest,
	KindContextTooLong: event.FailureContextTooLong,
	KindNoVision:       event.FailureBadRequest,
	KindNoPDF:          event.FailureBadRequest,
	KindNoAudio:        event.FailureBadRequest,
	KindNoTools:        event.FailureBadRequest,
	KindToolCall:       event.FailureBadResponse,
	KindContentFilter:  event.FailureContentFilter,
	KindQuota:          event.FailureQuota,
	KindRateLimited:    event.FailureRateLimited,
	KindServer:         event.FailureUnavailable,
	KindConnection:     event.FailureUnavailable,
	KindTruncated:      event.FailureBadResponse,
	KindInvalidAnswer:  event.FailureBadResponse,
	KindTimeout:        event.FailureTimeout,
}

// Failure returns the kind of the error in events; empty if the request was cancelled.
func (k Kind) Failure() event.FailureKind { return failureKinds[k] }

// Error is why there is no complete answer.
type Error struct {
	ProviderID string
	// Status is the HTTP status, or the one in an error inside a stream; 0 without a response.
	Status int
	Kind   Kind
	// Message describes the error, or is the message in the error object of a configured
	// provider. Secrets are removed, and it has at most about 500 bytes.
	Message string
	// RetryAfter is the delay requested by the provider; 0 if it requests none.
	RetryAfter time.Duration
	// RetryOnce means that one more attempt may succeed, but further ones are pointless: the
	// failure looks like that of a model that does not accept an attachment.
	RetryOnce bool

	// Problem describes what is wrong with an answer of [KindInvalidAnswer], for
	// [Target.Repair]. It is empty if the answer was incomplete.
	Problem string

	// refused are the kinds of media that the message of the server rejects, and refusesTools
	// means that it rejects tools.
	refused      mediaSet
	refusesTools bool
	// cause is the cause of the caller's cancellation.
	cause error
}

// Error formats the provider, the kind, the status and the message.
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

// Unwrap returns the errors that the kind stands for: [context.Canceled] with the cause of the
// caller's context, [context.DeadlineExceeded] or [io.ErrUnexpectedEOF]. It omits the error of
// the HTTP client, which may contain a secret: error chains are stored as a whole.
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
