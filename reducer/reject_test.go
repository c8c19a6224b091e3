package reducer

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
)

// decodedBy are the inputs and policies that each release added. Those of a release with a git tag
// never change.
var decodedBy = []struct {
	rules    Rules
	tags     []event.Tag
	policies []event.Policy
}{
	{Rules1, []event.Tag{
		event.TagSystemPrompt, event.TagUserMessage, event.TagAssistantMessage, event.TagFileAttachment, event.TagToolCall,
		event.TagToolResult, event.TagNote, event.TagSetRetryConfig, event.TagSetProviderConfig, event.TagSetTimeout,
		event.TagSetDeliveryPolicy,
	}, []event.Policy{event.PolicyInterrupt, event.PolicyQueue, event.PolicyReject}},
	{Rules2, []event.Tag{
		event.TagSetRequestSettings, event.TagSetTools, event.TagBudgetSet, event.TagSetCompaction, event.TagApprovalDecided,
	}, []event.Policy{event.PolicySteer}},
}

// TestRunsRejectInputsOfLaterReleases fails for a new input event or policy until acceptedSince or
// policyAcceptedSince, and decodedBy, list it.
func TestRunsRejectInputsOfLaterReleases(t *testing.T) {
	var inputs []event.Tag
	for _, tag := range event.Tags() {
		if tag.IsInput() {
			inputs = append(inputs, tag)
		}
	}
	require.ElementsMatch(t, inputs, slices.Collect(maps.Keys(acceptedSince)))
	require.ElementsMatch(t, event.Policies(), slices.Collect(maps.Keys(policyAcceptedSince)))

	examples := map[event.Tag]event.Body{}
	for _, body := range eventtest.Examples() {
		examples[body.Tag()] = body
	}
	var tags []event.Tag
	var policies []event.Policy
	for i, release := range decodedBy {
		tags, policies = append(tags, release.tags...), append(policies, release.policies...)
		require.Equal(t, Rules(i+1), release.rules)
		require.NotEmpty(t, releases[release.rules])
		d := decision{Session: Session{Rules: release.rules}}
		isSupported := func(body event.Body) bool { return d.unsupported([]event.Event{event.New(body)}) == "" }
		for _, tag := range inputs {
			require.Equal(t, slices.Contains(tags, tag), isSupported(examples[tag]), "rules %d, %s", release.rules, tag)
		}
		for _, policy := range event.Policies() {
			require.Equal(t, slices.Contains(policies, policy), isSupported(event.SetDeliveryPolicy{Policy: policy}),
				"rules %d, policy %s", release.rules, policy)
		}
		require.True(t, isSupported(event.SetDeliveryPolicy{QuietPeriodMs: new(int64(1))}))
	}
	require.Equal(t, CurrentRules, decodedBy[len(decodedBy)-1].rules)
	require.ElementsMatch(t, inputs, tags)
	require.ElementsMatch(t, event.Policies(), policies)
}

func TestARejectionNamesTheReleaseOfTheRun(t *testing.T) {
	d := decision{Session: Session{Rules: Rules1}}
	const want = ": the run was started by version 0.1.0, which does not support it (close the context; its next session does)"
	require.Equal(t, "SetToolsEvent"+want, d.unsupported([]event.Event{event.New(event.SetTools{})}))
	require.Equal(t, "SetProviderConfigEvent.useDefault"+want, d.unsupported([]event.Event{event.New(event.SetProviderConfig{UseDefault: true})}))
	require.Equal(t, "SetDeliveryPolicyEvent.policy: steer"+want,
		d.unsupported([]event.Event{event.New(event.SetDeliveryPolicy{Policy: event.PolicySteer})}))
}
