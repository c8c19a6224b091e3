package llm_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/baseurl"
)

func TestExampleOfAProvidersFile(t *testing.T) {
	file, err := llm.ReadProviders("../examples/config/providers.toml")
	require.NoError(t, err)
	require.Equal(t, "2026-01", file.PriceVersion)
	require.Equal(t, []llm.Provider{
		{
			ID: "house", BaseURL: baseurl.MustParse("https://llm.example.com/v1"), KeyRef: "env:HOUSE_API_KEY",
			TextOnly: true, ThinkTags: true, ContextWindow: 131072, Price: &llm.Price{Input: 0.6, CachedInput: 0.15, Output: 0.9},
			Models: map[string]llm.Model{
				"llama-3.3-8b": {ContextWindow: 32768, Price: &llm.Price{Input: 0.05, CachedInput: 0.05, Output: 0.08}},
			},
		},
		{ID: "lab", BaseURL: baseurl.MustParse("http://10.0.0.5:8000/v1"), Accepts: []event.Media{event.MediaImage, event.MediaAudio}, NoTools: true},
		{ID: "mistral", BaseURL: baseurl.MustParse("https://api.mistral.ai/v1"), KeyRef: "file:/run/secrets/mistral"},
		{ID: "ollama", BaseURL: baseurl.MustParse("http://localhost:11434/v1")},
	}, file.Providers)
	require.Equal(t, []llm.Budget{
		{Label: "team", Value: "support", Limit: event.Budget{Tokens: new(int64(5_000_000)), CostMicros: new(int64(20_000_000))}},
		{Label: "user", Limit: event.Budget{Tokens: new(int64(200_000))}},
	}, file.Budgets)
}

func TestAModelHasTheSettingsOfItsProviderUnlessItHasItsOwn(t *testing.T) {
	price, cheap := &llm.Price{Input: 2, Output: 8}, &llm.Price{Input: 1, Output: 1}
	p := llm.Provider{ContextWindow: 1000, Price: price, Models: map[string]llm.Model{
		"small": {ContextWindow: 500}, "cheap": {Price: cheap},
	}}
	require.Equal(t, llm.Model{ContextWindow: 500, Price: price}, p.Model("small"))
	require.Equal(t, llm.Model{ContextWindow: 1000, Price: cheap}, p.Model("cheap"))
	require.Equal(t, llm.Model{ContextWindow: 1000, Price: price}, p.Model("other"))
	require.Equal(t, llm.Model{}, llm.Provider{}.Model("other"))
}

func TestProvidersFile(t *testing.T) {
	const house = "[providers.house]\nbase_url = \"https://llm.example.com/v1\"\n"
	tests := map[string]struct{ text, want string }{
		"empty":                    {"", "no provider and no budget (each is a table [providers.ID] or [[budgets]])"},
		"invalid TOML":             {"[providers.house\n", "line 2: "},
		"twice":                    {house + house, "Key 'providers.house' has already been defined"},
		"an unknown table":         {"[provider.house]\n", `unknown key "provider" (did you mean "providers"?)`},
		"an unknown key":           {house + "url = \"x\"", `unknown key "providers.house.url" (want one of base_url, key, `},
		"a misspelled key":         {house + "contextwindow = 1", `unknown key "providers.house.contextwindow" (did you mean "context_window"?)`},
		"another unknown key":      {house + "temperature = 1", `unknown key "providers.house.temperature" (want one of base_url, key, text_only, tools, accepts, think_tags, context_window, price, models)`},
		"an unknown price":         {house + "price.outptu = 1", `unknown key "providers.house.price.outptu" (did you mean "output"?)`},
		"no URL":                   {"[providers.house]\n", `provider "house": base_url: missing (want an http or https URL like https://api.openai.com/v1)`},
		"a URL with a user":        {"[providers.house]\nbase_url = \"https://s3cr3t@llm.example.com\"", `provider "house": base_url: contains an @ (user names and passwords are not allowed) (want `},
		"a raw key":                {house + "key = \"sk-s3cr3t\"", `provider "house": key: want env:NAME or file:/absolute/path`},
		"an unquoted key":          {house + "key = s3cr3t-s3cr3t", "line 3"},
		"a half-quoted key":        {house + "key = \"s3cr3t-s3cr3t\n", "line 3"},
		"a bare key":               {house + "s3cr3t-s3cr3t\n", "line 4"},
		"a key with trailing text": {house + "key = \"x\" s3cr3t\n", "line 3"},
		"a key as a number":        {house + "key = 123_s3cr3t\n", "line 3"},
		"a relative file":          {house + "key = \"file:key\"", `provider "house": key: want env:NAME or file:/absolute/path`},
		"another type":             {house + "context_window = \"big\"", `line 3 (last key "providers.house.context_window"): incompatible types: TOML value has type string; destination has type integer`},
		"models of another type":   {house + "models = 5", `providers.house.models: want a table`},
		"unknown media":            {house + "accepts = [\"image\", \"video\"]", `provider "house": accepts: unknown media "video" (want image, pdf or audio)`},
		"media and text only":      {house + "text_only = true\naccepts = [\"pdf\"]", `provider "house": accepts: set together with text_only = true (want only one of them)`},
		"no window":                {house + "context_window = 0", `provider "house": context_window: 0 is out of range (1 to 100000000 tokens)`},
		"half a price":             {house + "price.input = 1", `provider "house": price.output: missing (US dollars per million tokens)`},
		"a negative price":         {house + "price = {input = 1, output = -1}", `provider "house": price.output: -1 is out of range (0, or 0.000001 to 1000000 US dollars per million tokens)`},
		"a tiny price":             {house + "price = {input = 1, output = 0.0000004}", `provider "house": price.output: 4e-07 is out of range`},
		"no price":                 {house + "price = {input = nan, output = 1}", `provider "house": price.input: NaN is out of range`},
		"an unknown price version": {"price_versoin = \"1\"\n" + house, `unknown key "price_versoin" (did you mean "price_version"?)`},
		"a long price version":     {"price_version = \"" + strings.Repeat("x", 65) + "\"\n" + house, `price_version: 65 bytes (at most 64)`},
		"a blank price version":    {"price_version = \"\"\n" + house, `price_version: empty`},
		"an unknown model key":     {house + "models.x.prise.input = 1", `unknown key "providers.house.models.x.prise" (did you mean "price"?)`},
		"an unknown model price":   {house + "models.x.price.inptu = 1", `unknown key "providers.house.models.x.price.inptu" (did you mean "input"?)`},
		"half a model price":       {house + "models.x.price.input = 1", `provider "house": model "x": price.output: missing`},
		"no window of a model":     {house + "models.x.context_window = 0", `provider "house": model "x": context_window: 0 is out of range`},
		"a blank model":            {house + "models.\" \".context_window = 1", `provider "house": model " ": name: empty`},
		"a blank id":               {"[providers.\" \"]\n", `provider " ": id: empty`},
		"a budget without a label": {"[[budgets]]\ntokens_per_day = 1", `budget 1: label: want names of 1 to 64 bytes without control characters, got ""`},
		"a budget without a limit": {"[[budgets]]\nlabel = \"x\"", `budget 1: tokens_per_day: missing (want tokens_per_day, usd_per_day or both)`},
		"a negative budget":        {"[[budgets]]\nlabel = \"x\"\ntokens_per_day = -1", `budget 1: tokens_per_day: -1 is out of range (0 to 1000000000000)`},
		"a negative cost":          {"[[budgets]]\nlabel = \"x\"\nusd_per_day = -0.5", `budget 1: usd_per_day: -0.5 is out of range (0, or 0.000001 to 1000000000 US dollars)`},
		"a tiny cost":              {"[[budgets]]\nlabel = \"x\"\nusd_per_day = 0.0000004", `budget 1: usd_per_day: 4e-07 is out of range`},
		"an invalid cost":          {"[[budgets]]\nlabel = \"x\"\nusd_per_day = nan", `budget 1: usd_per_day: NaN is out of range`},
		"two budgets of a value":   {strings.Repeat("[[budgets]]\nlabel = \"x\"\ntokens_per_day = 1\n", 2), `budget 2: label "x" has two budgets for the value "" (want one)`},
		"an unknown budget key":    {"[[budgets]]\nlabel = \"x\"\ntokens_per_dya = 1", `unknown key "budgets.tokens_per_dya" (did you mean "tokens_per_day"?)`},
		"a long value":             {"[[budgets]]\nlabel = \"x\"\nvalue = \"" + strings.Repeat("x", 513) + "\"\ntokens_per_day = 1", `budget 1: label: want values of at most 512 bytes`},
		"a control character":      {"[providers.\"a\\u0085b\"]\n", `provider "a\u0085b": id: `},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "providers.toml")
			require.NoError(t, os.WriteFile(file, []byte(test.text), 0o600))
			_, err := llm.ReadProviders(file)
			require.ErrorContains(t, err, file+":")
			require.ErrorContains(t, err, test.want)
			require.NotContains(t, err.Error(), "s3cr3t")
		})
	}
	_, err := llm.ReadProviders(filepath.Join(t.TempDir(), "missing.toml"))
	require.ErrorContains(t, err, "missing.toml")
}

func TestCachedInputDefaultsToThePriceOfInput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "providers.toml")
	require.NoError(t, os.WriteFile(file, []byte("[providers.openai]\nprice = {input = 2, output = 8}"), 0o600))
	read, err := llm.ReadProviders(file)
	require.NoError(t, err)
	require.Empty(t, read.PriceVersion)
	require.Equal(t, []llm.Provider{{
		ID: "openai", BaseURL: baseurl.MustParse("https://api.openai.com/v1"), KeyRef: "env:OPENAI_API_KEY",
		Price: &llm.Price{Input: 2, CachedInput: 2, Output: 8},
	}}, read.Providers)
}

func TestAnEmptyListOfMediaAcceptsNone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "providers.toml")
	require.NoError(t, os.WriteFile(file, []byte("[providers.openai]\naccepts = []"), 0o600))
	read, err := llm.ReadProviders(file)
	require.NoError(t, err)
	require.NotNil(t, read.Providers[0].Accepts, "nil is the default of the preset")
	require.Empty(t, read.Providers[0].Accepts)
}
