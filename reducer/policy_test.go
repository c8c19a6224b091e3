package reducer

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func TestEveryDeliveryPolicyHasARuleAndAStory(t *testing.T) {
	require.ElementsMatch(t, event.Policies(), slices.Collect(maps.Keys(policies)))
	for _, policy := range event.Policies() {
		story, err := txtar.ParseFile(filepath.Join("testdata", "session", "policy_"+string(policy)+".txtar"))
		require.NoError(t, err)
		require.Contains(t, string(story.Comment), "Delivery policy "+string(policy))
	}
}

func TestTheDefaultPolicyIsListedFirst(t *testing.T) {
	require.Equal(t, event.Policies()[0], Initial().Config.Delivery.Policy)
}
