package monitoring

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUsesOfLabels(t *testing.T) {
	for expr, want := range map[string][]Use{
		"chronicle_deltas_total": nil,
		`sum by (le, model) (rate(chronicle_token_gap_seconds_bucket[1m])) / 2`: {
			{"chronicle_token_gap_seconds_bucket", "le", ""}, {"chronicle_token_gap_seconds_bucket", "model", ""},
		},
		`sum by (kind) (chronicle_a{kind=~"x|y"} unless chronicle_b offset 1m) > 0 or up{job!="z"}`: {
			{"chronicle_a", "kind", "x"}, {"chronicle_a", "kind", "y"}, {"up", "job", "z"}, {"chronicle_a", "kind", ""}, {"chronicle_b", "kind", ""},
		},
	} {
		uses, err := Uses(expr)
		require.NoError(t, err)
		require.Equal(t, want, uses, expr)
	}
	for _, expr := range []string{"sum(chronicle_a) by (kind)", "sum by (kind) (chronicle_a"} {
		_, err := Uses(expr)
		require.ErrorContains(t, err, "want the operand in parentheses", expr)
	}
}
