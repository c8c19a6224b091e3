package show

import (
	"fmt"
	"io"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
)

// Budget prints what is spent of a budget and what running requests reserve.
func Budget(w io.Writer, name string, limit event.Budget, spent, reserved event.Amount) error {
	text := name + ": " + Spent(limit, spent)
	if reserved != (event.Amount{}) {
		text += "; reserved: " + amount(reserved)
	}
	_, err := fmt.Fprintln(w, terminal.Line(text))
	return err
}

// Spent formats usage and the limits: "1500 of 5000 tokens, $0.02 of $2.50".
func Spent(limit event.Budget, spent event.Amount) string {
	var parts []string
	if limit.Tokens != nil {
		parts = append(parts, fmt.Sprintf("%d of %d tokens", spent.Tokens, *limit.Tokens))
	}
	if limit.CostMicros != nil {
		parts = append(parts, event.FormatCost(spent.CostMicros)+" of "+event.FormatCost(*limit.CostMicros))
	}
	if len(parts) == 0 {
		return amount(spent)
	}
	return strings.Join(parts, ", ")
}

func amount(a event.Amount) string {
	text := fmt.Sprintf("%d tokens", a.Tokens)
	if a.CostMicros > 0 {
		text += ", " + event.FormatCost(a.CostMicros)
	}
	return text
}
