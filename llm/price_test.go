package llm

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func TestCost(t *testing.T) {
	for name, test := range map[string]struct {
		price Price
		usage event.Usage
		want  int64
	}{
		"nothing":             {Price{1, 1, 1}, event.Usage{}, 0},
		"free":                {Price{}, event.Usage{InputTokens: 1000, OutputTokens: 1000}, 0},
		"a million tokens":    {Price{Input: 0.6, Output: 0.9}, event.Usage{InputTokens: 1_000_000, OutputTokens: 1_000_000}, 1_500_000},
		"cached tokens":       {Price{Input: 2, CachedInput: 0.5, Output: 8}, event.Usage{InputTokens: 10, CachedTokens: 4, OutputTokens: 3}, 38},
		"reasoning is output": {Price{Output: 8}, event.Usage{OutputTokens: 3, ReasoningTokens: 2}, 24},
		"half rounds up":      {Price{Input: 0.5}, event.Usage{InputTokens: 1}, 1},
		"less rounds down":    {Price{Input: 0.4, Output: 0.09}, event.Usage{InputTokens: 1, OutputTokens: 1}, 0},
		"rounded once":        {Price{Input: 0.4, Output: 0.1}, event.Usage{InputTokens: 1, OutputTokens: 1}, 1},
		"the largest":         {Price{maxPrice, maxPrice, maxPrice}, event.Usage{InputTokens: event.MaxTokens, OutputTokens: event.MaxTokens}, event.MaxCostMicros},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, test.price.cost(test.usage)) })
	}
}

func TestTheCostIsThatOfExactArithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		price := func(name string) int64 { return rapid.Int64Range(0, maxPrice*100).Draw(t, name) } // in cents per million
		input, cached, output := price("input"), price("cached"), price("output")
		usage := event.Usage{InputTokens: rapid.IntRange(0, 1e7).Draw(t, "input"), OutputTokens: rapid.IntRange(0, 1e7).Draw(t, "output")}
		usage.CachedTokens = rapid.IntRange(0, usage.InputTokens).Draw(t, "cached")
		exact := new(big.Rat)
		add := func(tokens int, cents int64) { exact.Add(exact, big.NewRat(int64(tokens)*cents, 100)) }
		add(usage.InputTokens-usage.CachedTokens, input)
		add(usage.CachedTokens, cached)
		add(usage.OutputTokens, output)
		exact.Add(exact, big.NewRat(1, 2))
		want := new(big.Int).Div(exact.Num(), exact.Denom()).Int64()
		got := Price{float64(input) / 100, float64(cached) / 100, float64(output) / 100}.cost(usage)
		require.Equal(t, min(want, event.MaxCostMicros), got)
	})
}

func TestAChangedPriceIsAnotherVersion(t *testing.T) {
	file := func(input float64) []Provider {
		return []Provider{
			{ID: "a", Price: &Price{Input: input, Output: 2}},
			{ID: "b", Models: map[string]Model{"x": {Price: &Price{Input: 1, Output: 2}}, "y": {ContextWindow: 7}}},
		}
	}
	version := versionOf(file(1))
	require.Regexp(t, `^[0-9a-f]{12}$`, version)
	require.Equal(t, version, versionOf(file(1.00)))
	require.Equal(t, version, versionOf([]Provider{file(1)[1], file(1)[0], {ID: "c"}}), "the order and unpriced providers do not matter")
	require.NotEqual(t, version, versionOf(file(math.Nextafter(1, 2)+0.000001)))
	require.NotEqual(t, version, versionOf(file(1)[:1]))
}
