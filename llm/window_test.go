package llm_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/baseurl"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func TestTheMaximumInputIsTheWindowWithoutTheOutput(t *testing.T) {
	adapter := llm.New(llm.Options{
		AllowBaseURLs: modelExample,
		Providers: []llm.Provider{{
			ID: "house", BaseURL: baseurl.MustParse("http://house.example/v1"), ContextWindow: 1000,
			Models: map[string]llm.Model{"large": {ContextWindow: 5000}},
		}},
	})
	for name, test := range map[string]struct {
		config   reducer.ProviderConfig
		settings event.RequestSettings
		want     int
	}{
		"a provider":              {reducer.ProviderConfig{ProviderID: "house", Model: "m"}, event.RequestSettings{}, 1000},
		"a model":                 {reducer.ProviderConfig{ProviderID: "house", Model: "large"}, event.RequestSettings{}, 5000},
		"another server":          {reducer.ProviderConfig{ProviderID: "house", Model: "m", BaseURL: "http://model.example/v1"}, event.RequestSettings{}, 0},
		"an output":               {reducer.ProviderConfig{ProviderID: "house", Model: "m"}, event.RequestSettings{MaxTokens: new(300)}, 700},
		"an output as the window": {reducer.ProviderConfig{ProviderID: "house", Model: "m"}, event.RequestSettings{MaxTokens: new(1000)}, 1000},
		"an extra field":          {reducer.ProviderConfig{ProviderID: "house", Model: "m"}, event.RequestSettings{Extra: event.Object(`{"max_completion_tokens":400}`)}, 600},
	} {
		t.Run(name, func(t *testing.T) {
			target, err := adapter.Resolve(test.config)
			require.NoError(t, err)
			target.Settings = test.settings
			got, err := target.MaxInput(within(t))
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

func TestShortConversationsAreNotCounted(t *testing.T) {
	target := resolve(t, reducer.ProviderConfig{ProviderID: "mine", Model: "m", BaseURL: "http://127.0.0.1:1/v1"})
	exact, err := target.Reservation(within(t), hello)
	require.NoError(t, err)
	bound, err := target.InputTokens(within(t), hello, 1000)
	require.NoError(t, err)
	require.Greater(t, bound, exact.InputTokens, "a bound")
	require.LessOrEqual(t, bound, 1000)
	counted, err := target.InputTokens(within(t), hello, bound-1)
	require.NoError(t, err)
	require.Equal(t, exact.InputTokens, counted)

	image := []reducer.Message{user("Look", file("image/png", "a.png"))}
	counted, err = target.InputTokens(within(t), image, 1<<20)
	require.NoError(t, err)
	require.Less(t, counted, 1000, "an attachment has more tokens than bytes")
}

func TestToolsAndSchemasAreInput(t *testing.T) {
	long := strings.Repeat("long ", 1000)
	target := resolve(t, reducer.ProviderConfig{ProviderID: "mine", Model: "m", BaseURL: "http://127.0.0.1:1/v1"})
	target.Tools = []llm.Tool{{Name: "run", Description: long}}
	tokens, err := target.InputTokens(within(t), hello, 2000)
	require.NoError(t, err)
	require.Greater(t, tokens, 1000)

	schema := event.Object(`{"type":"object","description":"` + long + `"}`)
	target.Tools, target.Settings.ResponseFormat = nil, &event.ResponseFormat{Type: event.FormatJSONSchema, Schema: schema}
	tokens, err = target.InputTokens(within(t), hello, 2000)
	require.NoError(t, err)
	require.Greater(t, tokens, 1000)
}

func TestARepairIsInput(t *testing.T) {
	target := resolve(t, reducer.ProviderConfig{ProviderID: "mine", Model: "m", BaseURL: "http://127.0.0.1:1/v1"})
	target.Repair = &reducer.Repair{Answer: strings.Repeat("long ", 1000), Problem: "not JSON"}
	tokens, err := target.InputTokens(within(t), hello, 2000)
	require.NoError(t, err)
	require.Greater(t, tokens, 1000)
}

func TestArgumentsThatAreNoObjectAreInput(t *testing.T) {
	target := resolve(t, reducer.ProviderConfig{ProviderID: "mine", Model: "m", BaseURL: "http://127.0.0.1:1/v1"})
	target.Tools = []llm.Tool{{Name: "run"}}
	run := reducer.ToolCall{ID: "c1", Name: "run", Arguments: `"` + strings.Repeat("<b>&", 1000) + `"`}
	messages := []reducer.Message{user("Run it"), assistant("", run), toolResult("c1", "done")}
	exact, err := target.Reservation(within(t), messages)
	require.NoError(t, err)
	bound, err := target.InputTokens(within(t), messages, 1<<20)
	require.NoError(t, err)
	require.GreaterOrEqual(t, bound, exact.InputTokens)
}

func TestReturnedReasoningIsInput(t *testing.T) {
	long := strings.Repeat("long ", 1000)
	for provider, state := range map[string]string{
		"deepseek": `{"reasoning_content":"` + long + `"}`,
		"mistral":  `{"thinking":[{"type":"thinking","thinking":[{"type":"text","text":"` + long + `"}]}]}`,
	} {
		t.Run(provider, func(t *testing.T) {
			config := reducer.ProviderConfig{ProviderID: provider, Model: "m", BaseURL: "http://127.0.0.1:1/v1"}
			messages := []reducer.Message{user("Hi"), stateful(assistant("Yes"), config, state), user("And?")}
			for _, limit := range []int{0, 900} { // counted, and compared with the limit first
				tokens, err := resolve(t, config).InputTokens(within(t), messages, limit)
				require.NoError(t, err)
				require.Greater(t, tokens, 1000)
				require.Less(t, tokens, 2000)
			}
		})
	}
}
