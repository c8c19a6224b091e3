package retention_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/internal/retention"
)

func TestRulesAreParsed(t *testing.T) {
	rules, err := retention.Parse("chronicle.toml", `
address = "ignored"
[[retention]]
after = "90d"
[[retention]]
after = "36h30m"
tenant = "acme"
labels = { team = "support", tier = "free" }
archived = true
forks = "delete"
`)
	require.NoError(t, err)
	require.Equal(t, []retention.Rule{
		{After: 90 * 24 * time.Hour, Forks: client.KeepForks},
		{
			After: 36*time.Hour + 30*time.Minute, Tenant: "acme", Labels: map[string]string{"team": "support", "tier": "free"},
			Archived: true, Forks: client.DeleteForks,
		},
	}, rules)
	require.Equal(t, "after 90d", rules[0].String())
	require.Equal(t, "after 36h30m0s, tenant acme, team=support, tier=free, archived, with forks", rules[1].String())
	rules, err = retention.Parse("chronicle.toml", "")
	require.NoError(t, err)
	require.Empty(t, rules)
}

func TestInvalidRulesAreRejected(t *testing.T) {
	const after = "after: missing or invalid (want a duration like 90d or 12h, 1s to 36500d)"
	for text, want := range map[string]string{
		``:                                 after,
		`after = ""`:                       after,
		`after = "9weeks"`:                 after,
		`after = "d"`:                      after,
		`after = "0d"`:                     after,
		`after = "-1d"`:                    after,
		`after = "1ms"`:                    after,
		`after = "36501d"`:                 after,
		`after = "99999999999999999999d"`:  after,
		"after = \"1d\"\nforks = \"all\"":  "forks: invalid (want keep or delete)",
		"after = \"1d\"\ntenant = \"a/b\"": "tenant: invalid (want 1-64 of A-Z a-z 0-9 . _ -, first a letter or digit)",
		"after = \"1d\"\nlabels = { \"\" = \"x\" }": `labels: invalid (want the labels of contexts, like labels = { team = "support" })`,
	} {
		_, err := retention.Parse("chronicle.toml", "[[retention]]\nafter = \"1d\"\n[[retention]]\n"+text)
		require.EqualError(t, err, "chronicle.toml: retention 2: "+want, text)
	}
	for text, want := range map[string]string{
		"[[retention]]\nafter = 90":      `incompatible types: TOML value has type int64; destination has type string`,
		"[[retention]]\nolder = \"90d\"": `unknown key "retention.older"`,
		"[[retention]]\nlabels = \"x\"":  `retention.labels`,
		"retention = \"90d\"":            `retention`,
	} {
		_, err := retention.Parse("chronicle.toml", text)
		require.ErrorContains(t, err, want, text)
	}
}
