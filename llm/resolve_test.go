package llm_test

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/baseurl"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// serve serves a handler until the end of the test and returns its base URL.
func serve(t testing.TB, h http.Handler) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

func env(variables map[string]string) func(string) string {
	return func(name string) string { return variables[name] }
}

func TestConfigurationErrorsSayWhatToConfigure(t *testing.T) {
	house := baseurl.MustParse("https://house.example/v1")
	files := func(name string) ([]byte, error) {
		if name == "/run/secrets/blank" {
			return []byte("\n"), nil
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	tests := map[string]struct {
		defaults llm.Defaults
		config   reducer.ProviderConfig
		want     string
	}{
		"no key": {
			config: reducer.Initial().Config.Primary,
			want:   `openai: no API key (set OPENAI_API_KEY for the worker, or choose another provider with "starter set provider")`,
		},
		"no key for a configured provider": {
			config: reducer.ProviderConfig{ProviderID: "house", Model: "m"},
			want:   `house: no API key (set HOUSE_API_KEY for the worker, or choose another provider with "starter set provider")`,
		},
		"a key that is not configured": {
			config: reducer.ProviderConfig{ProviderID: "house", Model: "m", APIKeyRef: "env:AWS_SECRET_ACCESS_KEY"},
			want: "house: the key env:AWS_SECRET_ACCESS_KEY is not configured for https://house.example/v1 " +
				"(omit apiKeyRef, or let the worker's operator configure the key for this URL in the file of --providers)",
		},
		"a URL that is not allowed": {
			config: reducer.ProviderConfig{ProviderID: "mine", Model: "m", BaseURL: "http://mine.example/v1/"},
			want: "mine: the worker may not connect to http://mine.example/v1 (its operator can allow it with " +
				"--allow-base-url http://mine.example/v1, or configure a provider with this URL in the file of --providers)",
		},
		"a local server that is not allowed": {
			config: reducer.ProviderConfig{ProviderID: "ollama", Model: "m"},
			want: "ollama: the worker may not connect to http://localhost:11434/v1 (its operator can allow it with " +
				"--allow-base-url http://localhost:11434/v1, or configure a provider with this URL in the file of --providers)",
		},
		"a URL in non-canonical form": {
			config: reducer.ProviderConfig{ProviderID: "openai", Model: "m", BaseURL: "https://api.openai.com/v1/../v1"},
			want:   "openai: baseUrl is invalid: dot segment in the path (want an http or https URL like https://api.openai.com/v1)",
		},
		"no such file": {
			config: reducer.ProviderConfig{ProviderID: "file-key", Model: "m"},
			want:   "file-key: no API key on the worker: cannot read /run/secrets/key: file does not exist",
		},
		"a blank file": {
			config: reducer.ProviderConfig{ProviderID: "file-blank", Model: "m"},
			want:   "file-blank: no API key on the worker: file:/run/secrets/blank is empty or not set",
		},
		"an invalid key": {
			config: reducer.ProviderConfig{ProviderID: "two-lines", Model: "m"},
			want:   "two-lines: no API key on the worker: the content of env:TWO_LINES_API_KEY is not a key (want one word of ASCII)",
		},
		"a key instead of a reference": {
			config: reducer.ProviderConfig{ProviderID: "openai", Model: "m", APIKeyRef: "sk-secret"},
			want:   "openai: apiKeyRef is neither env:NAME nor file:/path",
		},
		"an unknown provider": {
			config: reducer.ProviderConfig{ProviderID: "opeanai", Model: "m"},
			want: "opeanai: unknown provider (want one of " +
				strings.Join(slices.Sorted(slices.Values(append(llm.Presets(), "file-blank", "file-key", "house", "two-lines"))), ", ") +
				", or let the worker's operator add it to the file of --providers)",
		},
		"an invalid URL": {
			defaults: llm.Defaults{ProviderID: "openai", BaseURL: "localhost:8080/v1"},
			config:   reducer.Initial().Config.Primary,
			want: "openai: the base URL of the provider is invalid: does not begin with http:// or https:// " +
				"(want an http or https URL like https://api.openai.com/v1)",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			adapter := llm.New(llm.Options{
				Getenv: env(map[string]string{"TWO_LINES_API_KEY": "a\nb"}), ReadFile: files, Defaults: test.defaults,
				Providers: []llm.Provider{
					{ID: "house", BaseURL: house, KeyRef: "env:HOUSE_API_KEY"},
					{ID: "file-key", BaseURL: house, KeyRef: "file:/run/secrets/key"},
					{ID: "file-blank", BaseURL: house, KeyRef: "file:/run/secrets/blank"},
					{ID: "two-lines", BaseURL: house, KeyRef: "env:TWO_LINES_API_KEY"},
				},
			})
			_, err := adapter.Resolve(test.config)
			failed := requireKind(t, llm.KindConfiguration, err)
			require.Equal(t, test.want, err.Error())
			require.False(t, failed.Retryable())
		})
	}
}

func TestDefaultsFromEnv(t *testing.T) {
	require.Equal(t, llm.Defaults{ProviderID: "openai"}, llm.DefaultsFromEnv(env(nil)))
	require.Equal(t,
		llm.Defaults{ProviderID: "openai", BaseURL: "http://x/v1", Model: "m", APIKeyRef: "env:OPENAI_API_KEY"},
		llm.DefaultsFromEnv(env(map[string]string{"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://x/v1", "OPENAI_MODEL": "m"})))
}

func TestEveryPresetResolves(t *testing.T) {
	adapter := llm.New(llm.Options{Getenv: func(string) string { return testKey }, AllowLoopback: true})
	for _, id := range llm.Presets() {
		target, err := adapter.Resolve(reducer.ProviderConfig{ProviderID: id, Model: "m"})
		require.NoError(t, err)
		valid := event.New(event.SetProviderConfig{ProviderID: id, Model: "m", BaseURL: target.BaseURL})
		require.NoError(t, valid.Validate())
	}
}
