package reducer

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func TestEveryDeliveryPolicyHasARuleAndAStory(t *testing.T) {
	require.ElementsMatch(t, event.Policy("").Values(), slices.Collect(maps.Keys(policies)))
	for _, policy := range event.Policy("").Values() {
		story, err := txtar.ParseFile(filepath.Join("testdata", "session", "policy_"+string(policy)+".txtar"))
		require.NoError(t, err)
		require.Contains(t, string(story.Comment), "Delivery policy "+string(policy))
	}
}

func TestTheDefaultPolicyIsListedFirst(t *testing.T) {
	require.Equal(t, event.Policy("").Values()[0], Initial().Config.Delivery.Policy)
}
