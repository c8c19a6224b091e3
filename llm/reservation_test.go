package llm_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/baseurl"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func TestAReservationIsTheInputAndTheLongestOutput(t *testing.T) {
	for name, test := range map[string]struct {
		settings  event.RequestSettings
		maxOutput int
		want      int // tokens of output
		sent      string
	}{
		"no limit":                     {event.RequestSettings{}, 0, 0, `{}`},
		"a response format":            {event.RequestSettings{ResponseFormat: &event.ResponseFormat{Type: event.FormatJSONObject}}, 0, 0, `{}`},
		"the default limit":            {event.RequestSettings{}, 4096, 4096, `{"max_tokens":4096}`},
		"a setting":                    {event.RequestSettings{MaxTokens: new(100)}, 4096, 100, `{"max_tokens":100}`},
		"a higher setting":             {event.RequestSettings{MaxTokens: new(9000)}, 4096, 9000, `{"max_tokens":9000}`},
		"an extra field":               {event.RequestSettings{MaxTokens: new(100), Extra: event.Object(`{"max_tokens":9000}`)}, 4096, 9000, `{"max_tokens":9000}`},
		"both names":                   {event.RequestSettings{MaxTokens: new(100), Extra: event.Object(`{"max_completion_tokens":9000}`)}, 4096, 9000, `{"max_completion_tokens":9000,"max_tokens":100}`},
		"an extra field without limit": {event.RequestSettings{MaxTokens: new(100), Extra: event.Object(`{"max_tokens":null}`)}, 4096, 4096, `{"max_tokens":4096}`},
		"an invalid extra field":       {event.RequestSettings{Extra: event.Object(`{"max_completion_tokens":"all"}`)}, 4096, 4096, `{"max_tokens":4096}`},
	} {
		t.Run(name, func(t *testing.T) {
			model := llmtest.Start(t, llmtest.Answer("{}").NoUsage())
			to := resolve(t, reducer.ProviderConfig{ProviderID: "mine", Model: "m", BaseURL: model.URL})
			to.Settings, to.MaxOutput = test.settings, test.maxOutput
			usage, err := to.Reservation(within(t), hello)
			require.NoError(t, err)
			require.Equal(t, test.want, usage.OutputTokens)
			require.True(t, usage.Estimated)
			require.Nil(t, usage.CostMicros, "the price is unknown")
			result, err := to.Stream(within(t), hello, nil)
			require.NoError(t, err)
			require.Equal(t, result.InputTokens, usage.InputTokens, "both are estimates")
			var fields map[string]json.RawMessage
			require.NoError(t, json.Unmarshal(model.Requests()[0].Body, &fields))
			for field := range fields {
				if field != "max_tokens" && field != "max_completion_tokens" {
					delete(fields, field)
				}
			}
			sent, err := json.Marshal(fields)
			require.NoError(t, err)
			require.JSONEq(t, test.sent, string(sent))
		})
	}
}

func TestAReservationHasTheHighestCost(t *testing.T) {
	adapter := llm.New(llm.Options{Providers: []llm.Provider{{
		ID: "house", BaseURL: baseurl.MustParse("http://127.0.0.1:1/v1"), Price: &llm.Price{Input: 1, CachedInput: 2, Output: 10},
	}}})
	target, err := adapter.Resolve(reducer.ProviderConfig{ProviderID: "house", Model: "m"})
	require.NoError(t, err)
	target.MaxOutput = 50
	usage, err := target.Reservation(within(t), hello)
	require.NoError(t, err)
	require.Equal(t, int64(2*usage.InputTokens+10*50), *usage.CostMicros)
}
