package event

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
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

// suffix describes usage after other text: ", 12 tokens in, 3 out"; "" if it is unknown.
func (u Usage) suffix() string {
	if u.InputTokens == 0 && u.OutputTokens == 0 && len(u.Quirks) == 0 {
		return ""
	}
	return ", " + DescribeUsage(u)
}

func (u Usage) logged() []any {
	fields := []any{"input_tokens", u.InputTokens, "output_tokens", u.OutputTokens}
	if u.CostMicros != nil {
		fields = append(fields, "cost_micros", *u.CostMicros)
	}
	return fields
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

func validatePriceVersion(version string) error {
	if len(version) > MaxPriceVersionBytes || !utf8.ValidString(version) {
		return fieldf("priceVersion", "want at most %d bytes of UTF-8", MaxPriceVersionBytes)
	}
	return nil
}

// DescribeUsage describes usage: "~12 tokens in (4 cached), 3 out, $0.0042". A ~ means estimated.
func DescribeUsage(u Usage) string {
	text := fmt.Sprintf("%d tokens in", u.InputTokens)
	if u.Estimated {
		text = "~" + text
	}
	if u.CachedTokens > 0 {
		text += fmt.Sprintf(" (%d cached)", u.CachedTokens)
	}
	text += fmt.Sprintf(", %d out", u.OutputTokens)
	if u.ReasoningTokens > 0 {
		text += fmt.Sprintf(" (%d reasoning)", u.ReasoningTokens)
	}
	if u.CostMicros != nil {
		text += ", " + FormatCost(*u.CostMicros)
	}
	if len(u.Quirks) > 0 {
		text += ", quirks: " + strings.Join(u.Quirks, " ")
	}
	return text
}

// FormatCost formats millionths of a US dollar with at least two decimal places: "$0.0042".
func FormatCost(micros int64) string {
	text := strings.TrimRight(fmt.Sprintf("$%d.%06d", micros/1_000_000, micros%1_000_000), "0")
	for len(text)-strings.IndexByte(text, '.') <= 2 {
		text += "0"
	}
	return text
}
