package activities_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

func checkTools(t *testing.T, tools activities.Tools, patterns ...string) (out wire.Offered, err error) {
	t.Helper()
	in := wire.Offer{ContextName: "demo"}
	for _, pattern := range patterns {
		in.Tools.Tools = append(in.Tools.Tools, event.Tool{Pattern: pattern})
	}
	env := silent()
	env.RegisterActivity(activities.New(activities.Options{Tools: tools}))
	value, err := env.ExecuteActivity(acts.CheckTools, in)
	if err == nil {
		err = value.Get(&out)
	}
	return out, err
}

func TestToolsOfASettingAreLookedFor(t *testing.T) {
	out, err := checkTools(t, toolbox{offer: offers}, "weather", "mcp:files/*", "mcp:mail/*", "files_read", "*r")
	require.NoError(t, err)
	require.Equal(t, wire.Offered{Unmatched: []string{"mcp:mail/*"}}, out)

	unknown := &activities.ModelError{Kind: "unknown-tool", Failure: event.FailureBadRequest, Err: errors.New("no tool matches")}
	out, err = checkTools(t, toolbox{offer: func(activities.OfferRequest) ([]activities.Tool, error) { return nil, unknown }}, "x")
	require.NoError(t, err)
	require.Equal(t, wire.Offered{Error: "no tool matches"}, out)

	out, err = checkTools(t, nil, "x")
	require.NoError(t, err)
	require.Contains(t, out.Error, "this worker has no tools")

	_, err = checkTools(t, toolbox{offer: func(activities.OfferRequest) ([]activities.Tool, error) {
		return nil, errors.New("the server is down, with key sk-live-0123456789")
	}}, "x")
	require.ErrorContains(t, err, "the server is down, with key [removed]")
}
