package llm

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Kind classifies an [Error].
type Kind string

// The kinds of an [Error].
const (
	KindConfiguration  Kind = "configuration" // the settings of the worker or the context allow no request
	KindUnauthorized   Kind = "unauthorized"  // the key is missing, invalid or lacks permission (401, 403)
	KindNotFound       Kind = "not found"     // no such model or endpoint (404)
	KindBadRequest     Kind = "bad request"   // 400, 422, other 4xx, and redirects
	KindContextTooLong Kind = "context too long"
	KindToolCall       Kind = "unasked tool call" // only tool calls, although no tools were offered
	KindContentFilter  Kind = "content filter"    // of the provider, for the request or the answer
	KindQuota          Kind = "quota exceeded"    // of the account (402, insufficient_quota)
	KindRateLimited    Kind = "rate limited"      // 429
	KindServer         Kind = "server error"      // the provider is overloaded or failed (5xx, 409, 425)
	KindConnection     Kind = "connection failed" // before a response
	KindTruncated      Kind = "answer cut off"    // the response ended before the answer was complete
	// KindMalformed: the provider could not parse what the model wrote, such as a tool call.
	KindMalformed Kind = "malformed answer"
	// KindInvalidAnswer: not in the response format, or tool calls that are incomplete or too large.
	KindInvalidAnswer Kind = "invalid answer"
	// KindTimeout: the deadline passed, a token took too long, or the provider timed out (408).
	KindTimeout  Kind = "timeout"
	KindCanceled Kind = "canceled" // by the caller
)

// failureKinds omits KindCanceled: a cancelled request is not a failure.
var failureKinds = map[Kind]event.FailureKind{
	KindConfiguration:  event.FailureConfiguration,
	KindUnauthorized:   event.FailureUnauthorized,
	KindNotFound:       event.FailureModelNotFound,
	KindBadRequest:     event.FailureBadRequest,
	KindContextTooLong: event.FailureContextTooLong,
	KindToolCall:       event.FailureBadResponse,
	KindContentFilter:  event.FailureContentFilter,
	KindQuota:          event.FailureQuota,
	KindRateLimited:    event.FailureRateLimited,
	KindServer:         event.FailureUnavailable,
	KindConnection:     event.FailureUnavailable,
	KindTruncated:      event.FailureBadResponse,
	KindMalformed:      event.FailureBadResponse,
	KindInvalidAnswer:  event.FailureBadResponse,
	KindTimeout:        event.FailureTimeout,
}

// Failure returns the kind of the error in events; empty if the request was cancelled.
func (k Kind) Failure() event.FailureKind { return failureKinds[k] }

// Error is why there is no complete answer.
type Error struct {
	ProviderID string
	Status     int // HTTP status of a refused request, or of an error in a stream; 0: none
	Kind       Kind
	// Message has no secrets, and at most about 700 bytes unless the kind is [KindConfiguration]. It may
	// be the error message of a preset or a configured provider.
	Message    string
	RetryAfter time.Duration // requested by the provider; 0: not requested
	// Suspects is the content that the provider may have refused, the most probable first; nil: none, or there is
	// an answer. If the error is retryable, at most one more attempt with the content is useful.
	Suspects []reducer.Suspect

	// Window is the maximum input in tokens, and InputTokens the input of the request, if the provider
	// states them with a [KindContextTooLong]; otherwise 0.
	Window, InputTokens int

	// Problem of a [KindInvalidAnswer], for [reducer.Repair]. It is empty if a repair would not help: the answer was cut
	// off, or has too many or too large calls.
	Problem string

	refusal refusal
	cause   error // of the caller's cancellation
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

// Unwrap returns [context.DeadlineExceeded] for a timeout, [io.ErrUnexpectedEOF] for an answer that was cut off, and
// [context.Canceled] with the cause for a cancellation. Other errors wrap nothing. Unwrap omits the error of the HTTP
// client, which may contain a secret: Temporal stores wrapped errors, too.
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
	case KindRateLimited, KindServer, KindConnection, KindTruncated, KindMalformed, KindTimeout:
		return true
	}
	return false
}
