package event

import "slices"

// FailureKind classifies why an attempt got no answer. It is empty if unknown.
type FailureKind string

// Kinds of failures.
const (
	FailureConfiguration  FailureKind = "configuration"    // the configuration of the worker or the context prevents the request, for example a missing key
	FailureUnauthorized   FailureKind = "unauthorized"     // the key is missing, invalid, or lacks permission
	FailureQuota          FailureKind = "quota"            // the account has no quota left
	FailureRateLimited    FailureKind = "rate_limited"     // too many requests
	FailureContextTooLong FailureKind = "context_too_long" // the conversation exceeds the context window
	FailureContentFilter  FailureKind = "content_filter"   // the provider's content filter rejected the request or the answer
	FailureModelNotFound  FailureKind = "model_not_found"  // the provider has no such model or endpoint
	FailureBadRequest     FailureKind = "bad_request"      // the provider rejected the request, for example an image for a model without vision
	FailureTimeout        FailureKind = "timeout"          // the answer or a token took too long
	FailureUnavailable    FailureKind = "unavailable"      // the provider, the connection to it, or a worker failed
	FailureBadResponse    FailureKind = "bad_response"     // the answer is incomplete or unusable
	FailureBudgetExceeded FailureKind = "budget_exceeded"  // the next attempt could exceed a budget
	FailureRefusedByHook  FailureKind = "refused_by_hook"  // a hook of the operator refused the request or the answer
	FailureHookFailed     FailureKind = "hook_failed"      // a hook of the operator failed to check the request or the answer
)

// Values returns all values.
func (FailureKind) Values() []FailureKind {
	return []FailureKind{
		FailureConfiguration, FailureUnauthorized, FailureQuota, FailureRateLimited, FailureContextTooLong,
		FailureContentFilter, FailureModelNotFound, FailureBadRequest, FailureTimeout, FailureUnavailable,
		FailureBadResponse, FailureBudgetExceeded, FailureRefusedByHook, FailureHookFailed,
	}
}

// IsKnown reports whether the kind is one of its Values.
func (k FailureKind) IsKnown() bool { return slices.Contains(k.Values(), k) }

// MayQuote reports whether the error of such a failure may quote a message or an answer.
func (k FailureKind) MayQuote() bool {
	return k == FailureBadResponse || k == FailureContentFilter || k == FailureRefusedByHook
}

// advice says after an error what to do about it. Errors of other kinds contain it.
func (k FailureKind) advice(isRetryable bool) string {
	switch k {
	case FailureUnauthorized:
		return "; add a valid key for the provider"
	case FailureQuota:
		return "; the account at the provider needs more quota"
	case FailureContextTooLong:
		return "; send a shorter message, start a new context, or choose a model with a larger context window"
	case FailureContentFilter:
		return "; change the message"
	case FailureModelNotFound:
		return "; choose another model"
	case FailureRefusedByHook:
		return "; change the message: the operator's hook refuses it or its answer"
	}
	switch {
	case isRetryable:
		return "; try again later"
	case k == FailureHookFailed:
		return "; the operator of the worker must repair the hook"
	}
	return ""
}

// logged omits errors that may quote a message. The event contains them.
func (k FailureKind) logged(err string) []any {
	if k.MayQuote() {
		return []any{"kind", string(k)}
	}
	return []any{"kind", string(k), "error", RedactOutput(err, maxLoggedError)}
}
