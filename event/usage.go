package event

import (
	"slices"
	"unicode/utf8"
)

// Usage is the usage of an attempt that was sent to a provider. Counts are 0 if the attempt
// used no tokens or its usage is unknown.
type Usage struct {
	// InputTokens counts the tokens of the request, including the CachedTokens that the
	// provider read from its cache.
	InputTokens  int `json:"inputTokens,omitempty"`
	CachedTokens int `json:"cachedTokens,omitempty"`
	// OutputTokens counts the tokens of the answer, including the ReasoningTokens.
	OutputTokens    int `json:"outputTokens,omitempty"`
	ReasoningTokens int `json:"reasoningTokens,omitempty"`
	// Estimated means that the worker counted the tokens because the provider reported no
	// usage.
	Estimated bool `json:"estimated,omitempty"`
	// CostMicros is the cost in millionths of a US dollar; nil if no price is known.
	CostMicros *int64 `json:"costMicros,omitempty"`
	// PriceVersion is the version of the operator's prices behind CostMicros.
	PriceVersion string `json:"priceVersion,omitempty"`
}

// Bounds of a [Usage].
const (
	// MaxTokens bounds each token count.
	MaxTokens = 1_000_000_000
	// MaxCostMicros is a billion US dollars.
	MaxCostMicros        = 1_000_000_000_000_000
	MaxPriceVersionBytes = 64
)

// Bounded returns the usage with out-of-range numbers clamped and an invalid price version
// cleared.
func (u Usage) Bounded() Usage {
	u.InputTokens = min(max(u.InputTokens, 0), MaxTokens)
	u.CachedTokens = min(max(u.CachedTokens, 0), u.InputTokens)
	u.OutputTokens = min(max(u.OutputTokens, 0), MaxTokens)
	u.ReasoningTokens = min(max(u.ReasoningTokens, 0), u.OutputTokens)
	if u.CostMicros != nil {
		u.CostMicros = new(min(max(*u.CostMicros, 0), MaxCostMicros))
	}
	if validatePriceVersion(u.PriceVersion) != nil {
		u.PriceVersion = ""
	}
	return u
}

func (u Usage) validate() error {
	for _, tokens := range []struct {
		name      string
		got, high int
	}{
		{"inputTokens", u.InputTokens, MaxTokens},
		{"cachedTokens", u.CachedTokens, u.InputTokens},
		{"outputTokens", u.OutputTokens, MaxTokens},
		{"reasoningTokens", u.ReasoningTokens, u.OutputTokens},
	} {
		if err := between(tokens.name, int64(tokens.got), 0, int64(tokens.high)); err != nil {
			return err
		}
	}
	if u.CostMicros != nil {
		if err := between("costMicros", *u.CostMicros, 0, MaxCostMicros); err != nil {
			return err
		}
	}
	return validatePriceVersion(u.PriceVersion)
}

func validatePriceVersion(version string) error {
	if len(version) > MaxPriceVersionBytes || !utf8.ValidString(version) {
		return fieldf("priceVersion", "want at most %d bytes of UTF-8", MaxPriceVersionBytes)
	}
	return nil
}

// FailureKind classifies why an attempt got no answer. It is empty if unknown.
type FailureKind string

// Kinds of failures.
const (
	// FailureConfiguration: the configuration of the worker or the context prevents the
	// request.
	FailureConfiguration FailureKind = "configuration"
	// FailureUnauthorized: the key is missing, invalid or lacks permission.
	FailureUnauthorized FailureKind = "unauthorized"
	// FailureQuota: the account has no quota left.
	FailureQuota FailureKind = "quota"
	// FailureRateLimited: too many requests.
	FailureRateLimited FailureKind = "rate_limited"
	// FailureContextTooLong: the conversation exceeds the context window.
	FailureContextTooLong FailureKind = "context_too_long"
	// FailureContentFilter: the provider's content filter rejected the request or the answer.
	FailureContentFilter FailureKind = "content_filter"
	// FailureModelNotFound: the provider has no such model or endpoint.
	FailureModelNotFound FailureKind = "model_not_found"
	// FailureBadRequest: the provider rejected the request.
	FailureBadRequest FailureKind = "bad_request"
	// FailureTimeout: the answer or a token took too long.
	FailureTimeout FailureKind = "timeout"
	// FailureUnavailable: the provider, the connection to it or a worker failed.
	FailureUnavailable FailureKind = "unavailable"
	// FailureBadResponse: the answer is incomplete or unusable.
	FailureBadResponse FailureKind = "bad_response"
	// FailureBudgetExceeded: the request would exceed a budget.
	FailureBudgetExceeded FailureKind = "budget_exceeded"
	// FailureRefusedByHook: an operator hook rejected the request.
	FailureRefusedByHook FailureKind = "refused_by_hook"
)

var failureKinds = []FailureKind{
	FailureConfiguration, FailureUnauthorized, FailureQuota, FailureRateLimited, FailureContextTooLong,
	FailureContentFilter, FailureModelNotFound, FailureBadRequest, FailureTimeout, FailureUnavailable,
	FailureBadResponse, FailureBudgetExceeded, FailureRefusedByHook,
}

// FailureKinds returns all kinds of failures.
func FailureKinds() []FailureKind { return slices.Clone(failureKinds) }

// IsKnown reports whether the kind is one of [FailureKinds].
func (k FailureKind) IsKnown() bool { return slices.Contains(failureKinds, k) }

func (k FailureKind) validate() error {
	if k != "" && !k.IsKnown() {
		return fieldf("kind", "want %s, got %s", oneOf(failureKinds), quote(string(k)))
	}
	return nil
}

// AttemptOutcome is how an attempt ended while its request continues.
type AttemptOutcome string

// Outcomes of an [LLMAttemptEnded].
const (
	// AttemptFailed: another attempt follows.
	AttemptFailed AttemptOutcome = "failed"
	// AttemptHandedBack: its worker shut down, or the attempt was stopped for input that the
	// next attempt includes.
	AttemptHandedBack AttemptOutcome = "handed_back"
	// AttemptLost: its worker died, or did not report the end.
	AttemptLost AttemptOutcome = "lost"
	// AttemptToolCalls: its answer has tool calls. The next attempt contains their results.
	AttemptToolCalls AttemptOutcome = "tool_calls"
)

var attemptOutcomes = []AttemptOutcome{AttemptFailed, AttemptHandedBack, AttemptLost, AttemptToolCalls}
