package reducer_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// TestALedgerNeverExceedsItsLimit makes reservations in any order, repeats them, and settles some,
// late, twice or never. A list of all attempts is the oracle.
func TestALedgerNeverExceedsItsLimit(t *testing.T) {
	type attempt struct {
		day     int
		wanted  event.Amount
		used    event.Amount
		settled bool
	}
	rapid.Check(t, func(t *rapid.T) {
		limit := event.Budget{Tokens: new(rapid.Int64Range(0, 100).Draw(t, "tokens"))}
		if rapid.Bool().Draw(t, "limits the cost") {
			limit.CostMicros = new(rapid.Int64Range(0, 100).Draw(t, "cost"))
		}
		granted, released := map[string]*attempt{}, map[string]bool{}
		day := 1
		var ledger reducer.Ledger
		use := func() (sum event.Amount) {
			for _, a := range granted {
				switch {
				case a.day != day:
				case a.settled:
					sum = sum.Plus(a.used)
				default:
					sum = sum.Plus(a.wanted)
				}
			}
			return sum
		}
		amount := func(most event.Amount) event.Amount {
			return event.Amount{Tokens: rapid.Int64Range(0, most.Tokens).Draw(t, "tokens"), CostMicros: rapid.Int64Range(0, most.CostMicros).Draw(t, "cost")}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			key := fmt.Sprintf("demo:r%04d/%d", rapid.IntRange(1, 12).Draw(t, "attempt"), day)
			ledger = ledger.On(fmt.Sprint("day ", day))
			before, err := json.Marshal(ledger)
			require.NoError(t, err)
			old := ledger
			switch rapid.SampledFrom([]string{"reserve", "reserve", "settle", "release", "late", "restart", "midnight"}).Draw(t, "step") {
			case "reserve":
				a := granted[key]
				if a != nil && a.settled {
					continue // keys are unique
				}
				wanted := amount(event.Amount{Tokens: 60, CostMicros: 60})
				isAllowed := a != nil || !released[key] && limit.Allows(use().Plus(wanted))
				var isGranted bool
				ledger, isGranted = ledger.Reserve(reducer.Reservation{Key: key, Wanted: wanted, Limit: limit})
				require.Equal(t, isAllowed, isGranted)
				if isGranted && a == nil {
					granted[key] = &attempt{day: day, wanted: wanted}
				}
			case "settle":
				used := event.Amount{}
				if a := granted[key]; a != nil {
					if used = amount(a.wanted); !a.settled {
						a.settled, a.used = true, used
					}
				}
				ledger = ledger.Settle(key, used)
			case "release":
				if a := granted[key]; a != nil && a.settled {
					continue
				} else if a != nil {
					a.settled, a.used = true, event.Amount{}
				} else {
					released[key] = true
				}
				ledger = ledger.Release(key)
			case "late":
				ledger = ledger.Settle(fmt.Sprintf("demo:r0001/%d", day-1), event.Amount{Tokens: 1000})
			case "restart":
				ledger = reducer.Ledger{}
				require.NoError(t, json.Unmarshal(before, &ledger))
			case "midnight":
				day++
				ledger = ledger.On(fmt.Sprint("day ", day))
				require.True(t, ledger.IsEmpty())
			}
			require.Equal(t, use(), ledger.Used())
			require.True(t, limit.Allows(ledger.Used()))
			after, err := json.Marshal(old)
			require.NoError(t, err)
			require.Equal(t, string(before), string(after), "a ledger is immutable")
		}
	})
}
