package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/doctor"
	"github.com/seed-9ed7edd4/chronicle/internal/retention"
)

func TestTheCheckOfRetentionNamesAllShortRules(t *testing.T) {
	rules := []retention.Rule{{After: time.Hour}, {After: 48 * time.Hour}, {After: 30 * time.Minute}}
	for want, given := range map[string][]retention.Rule{
		"": rules[1:2],
		"set after of rule 1 to a day or more, unless contexts are only needed for so short":        rules[:2],
		"set after of rules 1 and 3 to a day or more, unless contexts are only needed for so short": rules,
	} {
		result := retentionChecks(given)[0].Run(t.Context())
		require.Equal(t, want, result.Fix)
		require.Equal(t, want != "", result.Severity == doctor.Warning)
	}
}
