package event

import (
	"regexp"
	"slices"
	"unicode/utf8"
)

// Usage is the usage of an attempt; in an event that ends a request or falls back, of the last one.
// Counts are 0 if unknown.
type Usage struct {
	// Tokens of the request; absent: none or unknown, as for the fields below.
	InputTokens int `json:"inputTokens,omitempty" schema:"min=0"`
	// Input tokens that the provider read from its cache.
	CachedTokens int `json:"cachedTokens,omitempty" schema:"min=0"`
	OutputTokens int `json:"outputTokens,omitempty" schema:"min=0"` // tokens of the answer
	// Output tokens that are reasoning.
	ReasoningTokens int `json:"reasoningTokens,omitempty" schema:"min=0"`
	// Whether the worker counted the tokens, because the provider reported none.
	Estimated bool `json:"estimated,omitempty"`
	// The cost in millionths of a US dollar; absent: no price is known.
	CostMicros   *int64 `json:"costMicros,omitempty" schema:"min=0"`
	PriceVersion string `json:"priceVersion,omitempty"` // the version of the prices
	// Quirks are what the worker repaired, skipped or worked around in the request or the answer, as sorted,
	// distinct words such as "parameter_dropped": at most [MaxQuirks] of a-z, 0-9 and _.
	Quirks []string `json:"quirks,omitempty" schema:"is=Quirks"`
}

// Bounds of a [Usage].
const (
	MaxTokens            = 1_000_000_000
	MaxCostMicros        = 1_000_000_000_000_000 // a billion US dollars
	MaxPriceVersionBytes = 64
	MaxQuirks            = 16
	maxQuirkBytes        = 40
	quirkPattern         = `^[a-z][a-z0-9_]{0,39}$`
)

// Bounded clamps out-of-range numbers and clears an invalid price version.
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
	u.Quirks = DistinctQuirks(u.Quirks)
	return u
}

// DistinctQuirks returns the valid words of lists of [Usage.Quirks], sorted, without duplicates, at most [MaxQuirks];
// nil for none.
func DistinctQuirks(lists ...[]string) []string {
	quirks := slices.DeleteFunc(slices.Concat(lists...), func(quirk string) bool { return !quirkWord.MatchString(quirk) })
	if len(quirks) == 0 {
		return nil
	}
	slices.Sort(quirks)
	quirks = slices.Compact(quirks)
	return quirks[:min(len(quirks), MaxQuirks)]
}

var quirkWord = regexp.MustCompile(quirkPattern)

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
	if len(u.Quirks) > MaxQuirks {
		return fieldf("quirks", "%d words are too many (at most %d)", len(u.Quirks), MaxQuirks)
	}
	for _, quirk := range u.Quirks {
		if !quirkWord.MatchString(quirk) {
			return fieldf("quirks", "want words of a-z, 0-9 and _, at most %d bytes, got %s", maxQuirkBytes, quote(quirk))
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

// MayQuote reports whether the error of such a failure may quote a message or an answer.
func (k FailureKind) MayQuote() bool {
	return k == FailureBadResponse || k == FailureContentFilter || k == FailureRefusedByHook
}

var failureKinds = []FailureKind{
	FailureConfiguration, FailureUnauthorized, FailureQuota, FailureRateLimited, FailureContextTooLong,
	FailureContentFilter, FailureModelNotFound, FailureBadRequest, FailureTimeout, FailureUnavailable,
	FailureBadResponse, FailureBudgetExceeded, FailureRefusedByHook, FailureHookFailed,
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
	AttemptFailed     AttemptOutcome = "failed"      // another attempt follows
	AttemptHandedBack AttemptOutcome = "handed_back" // its worker shut down, its run continued as new, or nobody had asked it to stop
	AttemptLost       AttemptOutcome = "lost"        // its worker died
	AttemptToolCalls  AttemptOutcome = "tool_calls"  // the next attempt contains the results of the calls
	AttemptCompacted  AttemptOutcome = "compacted"   // its answer is the summary of a [Compacted]
)

var attemptOutcomes = []AttemptOutcome{AttemptFailed, AttemptHandedBack, AttemptLost, AttemptToolCalls, AttemptCompacted}
