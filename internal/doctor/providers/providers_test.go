package providers

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/doctor"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/baseurl"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

const key = "sk-0123456789abcdef0123456789abcdef"

func environment(variables map[string]string) func(string) string {
	return func(name string) string { return variables[name] }
}

func examine(t *testing.T, o llm.Options, call bool) map[string]doctor.Finding {
	t.Helper()
	found := map[string]doctor.Finding{}
	for f := range doctor.Run(t.Context(), Checks(o, call)) {
		found[f.Check] = f
		require.Equal(t, f.IsProblem(), f.Fix != "", "%s: a problem has a fix, and nothing else has", f.Check)
		require.NotContains(t, f.Measured+f.Fix, key)
	}
	return found
}

// configured are the default provider at a URL with a key, and a model.
func configured(url string) llm.Options {
	getenv := environment(map[string]string{"OPENAI_API_KEY": key, "OPENAI_BASE_URL": url, "OPENAI_MODEL": "small"})
	return llm.Options{Getenv: getenv, Defaults: llm.DefaultsFromEnv(getenv)}
}

func TestAProviderIsConfigured(t *testing.T) {
	model := llmtest.Start(t)
	found := examine(t, configured(model.URL), false)["provider.default"]
	require.Equal(t, doctor.OK, found.Severity)
	require.Equal(t, "openai at "+model.URL+": configured; no request was sent (--call sends one)", found.Measured)
}

func TestAProviderIsCalledWithFewTokens(t *testing.T) {
	model := llmtest.Start(t, llmtest.Answer("pong"))
	found := examine(t, configured(model.URL), true)["provider.default"]
	require.Equal(t, doctor.OK, found.Severity, found.Measured)
	require.Contains(t, found.Measured, "small answered in")
	requests := model.Requests()
	require.Len(t, requests, 1)
	require.Equal(t, callTokens, requests[0].OutputLimit())
	require.Equal(t, "Bearer "+key, requests[0].Header.Get("Authorization"))
}

func TestAnAnswerMayReachTheLimit(t *testing.T) {
	model := llmtest.Start(t, llmtest.Answer().Finish("length"))
	require.Equal(t, doctor.OK, examine(t, configured(model.URL), true)["provider.default"].Severity)
}

func TestProblemsOfProviders(t *testing.T) {
	tests := []struct {
		name     string
		step     llmtest.Step
		severity doctor.Severity
		measured string
		fix      string
	}{
		{"an invalid key", llmtest.Error(401, "invalid_api_key", "Incorrect API key provided: "+key), doctor.Error, "unauthorized (401)", "replace the key"},
		{"an unknown model", llmtest.Error(404, "model_not_found", "The model small does not exist"), doctor.Error, "not found (404)", "correct the model"},
		{"no balance", llmtest.Error(429, "insufficient_quota", "You exceeded your current quota"), doctor.Error, "quota exceeded", "balance"},
		{"a rate limit", llmtest.Error(429, "rate_limit_exceeded", "slow down"), doctor.Warning, "rate limited (429)", "wait"},
		{"an overloaded provider", llmtest.Error(503, "overloaded", "busy"), doctor.Warning, "server error (503)", "status page"},
		{"a dropped connection", llmtest.Drop(), doctor.Warning, "connection failed", "check the base URL"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			found := examine(t, configured(llmtest.Start(t, tt.step).URL), true)["provider.default"]
			require.Equal(t, tt.severity, found.Severity, found.Measured)
			require.Contains(t, found.Measured, tt.measured)
			require.Contains(t, found.Fix, tt.fix)
		})
	}
}

func TestProvidersWithoutAKey(t *testing.T) {
	o := llm.Options{Getenv: environment(nil), Defaults: llm.DefaultsFromEnv(environment(nil)), Providers: []llm.Provider{
		{ID: "local", BaseURL: baseurl.MustParse("http://10.0.0.5:8000/v1")},
		{ID: "paid", BaseURL: baseurl.MustParse("https://models.example.com/v1"), KeyRef: "env:PAID_KEY"},
	}}
	found := examine(t, o, true)
	require.Equal(t, doctor.Warning, found["provider.default"].Severity, "contexts may have providers of their own")
	require.Contains(t, found["provider.default"].Measured, "no API key (set OPENAI_API_KEY for the worker")
	require.Equal(t, doctor.Error, found["provider.paid"].Severity)
	require.Contains(t, found["provider.paid"].Measured, "no API key (set PAID_KEY for the worker")
	require.Equal(t, doctor.Skipped, found["provider.local"].Severity)
	require.Contains(t, found["provider.local"].Measured, "names no model")
}

func TestAProviderIsCalledWithAModelOfTheFile(t *testing.T) {
	model := llmtest.Start(t, llmtest.Answer("pong"))
	o := llm.Options{Getenv: environment(nil), Providers: []llm.Provider{{
		ID: "local", BaseURL: baseurl.MustParse(model.URL), Models: map[string]llm.Model{"b": {}, "a": {}},
	}}}
	found := examine(t, o, true)["provider.local"]
	require.Equal(t, doctor.OK, found.Severity, found.Measured)
	require.Equal(t, "a", model.Requests()[0].Model)
}
