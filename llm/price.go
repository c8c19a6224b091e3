package llm

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Price is in US dollars per million tokens, exact to six decimal places.
type Price struct {
	Input, CachedInput, Output float64
}

// priceUnit is the number of internal units in a millionth of a US dollar. The price of a token is a
// whole number of units.
const priceUnit = 1_000_000

func (p Price) units() (input, cached, output int64) {
	unit := func(price float64) int64 { return int64(math.Round(price * priceUnit)) }
	return unit(p.Input), unit(p.CachedInput), unit(p.Output)
}

// cost returns the cost of an attempt in millionths of a US dollar, rounded half up.
func (p Price) cost(usage event.Usage) int64 {
	sum := new(big.Int)
	add := func(tokens int, price int64) {
		sum.Add(sum, new(big.Int).Mul(big.NewInt(int64(tokens)), big.NewInt(price)))
	}
	input, cached, output := p.units()
	add(usage.InputTokens-usage.CachedTokens, input)
	add(usage.CachedTokens, cached)
	add(usage.OutputTokens, output)
	sum.Div(sum.Add(sum, big.NewInt(priceUnit/2)), big.NewInt(priceUnit))
	if !sum.IsInt64() {
		return event.MaxCostMicros
	}
	return min(sum.Int64(), event.MaxCostMicros)
}

func versionOf(providers []Provider) string {
	var lines []string
	add := func(id, model string, p *Price) {
		if p != nil {
			input, cached, output := p.units()
			lines = append(lines, fmt.Sprintf("%q %q %d %d %d\n", id, model, input, cached, output))
		}
	}
	for _, p := range providers {
		add(p.ID, "", p.Price)
		for _, name := range slices.Sorted(maps.Keys(p.Models)) {
			add(p.ID, name, p.Models[name].Price)
		}
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "")))
	return fmt.Sprintf("%x", sum[:6])
}
