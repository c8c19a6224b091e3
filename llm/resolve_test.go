package llm_test

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
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

// notes is a transport that notes where requests would have gone, and with
// which credentials.
type notes struct{ url, authorization string }

func (n *notes) RoundTrip(r *http.Request) (*http.Response, error) {
	n.url, n.authorization = r.URL.String(), r.Header.Get("Authorization")
	return nil, fs.ErrClosed
}

func TestRequestsGoWithTheRightKeyToTheRightPlace(t *testing.T) {
	variables := map[string]string{
		"OPENAI_API_KEY": "key-of-openai", "MISTRAL_API_KEY": "key-of-mistral", "MY_API_KEY": "key-of-mine",
		"OFFLINE_KEY": "key-of-offline",
	}
	atWork := llm.Defaults{ProviderID: "openai", BaseURL: "https://proxy.example/v1/", Model: "gpt-4o", APIKeyRef: "env:OPENAI_API_KEY"}
	initial := reducer.Initial().Config.Primary
	tests := map[string]struct {
		defaults llm.Defaults
		config   reducer.ProviderConfig
		url, key string
	}{
		"a fresh context asks openai": {
			config: initial, url: "https://api.openai.com/v1", key: "key-of-openai",
		},
		"a fresh context asks the provider of its worker": {
			defaults: atWork, config: initial, url: "https://proxy.example/v1", key: "key-of-openai",
		},
		"a fresh context asks the model that the worker brings along": {
			defaults: llm.Defaults{ProviderID: "offline", BaseURL: "http://127.0.0.1:9/v1", Model: "offline-echo"},
			config:   initial, url: "http://127.0.0.1:9/v1",
		},
		"a context that names openai asks at the worker's URL": {
			defaults: atWork, config: reducer.ProviderConfig{ProviderID: "openai", Model: "m"},
			url: "https://proxy.example/v1", key: "key-of-openai",
		},
		"a context that repeats the worker's URL is not foreign": {
			defaults: atWork, config: reducer.ProviderConfig{ProviderID: "openai", Model: "m", BaseURL: "https://proxy.example/v1"},
			url: "https://proxy.example/v1", key: "key-of-openai",
		},
		"a preset has its URL and key": {
			defaults: atWork, config: reducer.ProviderConfig{ProviderID: "mistral", Model: "m"},
			url: "https://api.mistral.ai/v1", key: "key-of-mistral",
		},
		"a server on one's own machine needs no key": {
			config: reducer.ProviderConfig{ProviderID: "ollama", Model: "m"}, url: "http://localhost:11434/v1",
		},
		"any other id has a URL of its own": {
			config: reducer.ProviderConfig{ProviderID: "mine", Model: "m", BaseURL: "http://mine.example/v1/"},
			url:    "http://mine.example/v1",
		},
		"the context's own key goes to the context's own URL": {
			config: reducer.ProviderConfig{ProviderID: "mine", Model: "m", BaseURL: "http://mine.example/v1", APIKeyRef: "env:MY_API_KEY"},
			url:    "http://mine.example/v1", key: "key-of-mine",
		},
		"the context's own key goes before the preset's": {
			config: reducer.ProviderConfig{ProviderID: "mistral", Model: "m", APIKeyRef: "env:MY_API_KEY"},
			url:    "https://api.mistral.ai/v1", key: "key-of-mine",
		},
		"the key of a preset does not go to a foreign URL": {
			config: reducer.ProviderConfig{ProviderID: "openai", Model: "m", BaseURL: "https://evil.example/v1"},
			url:    "https://evil.example/v1",
		},
		"the key of a worker does not go to a foreign URL": {
			defaults: atWork, config: reducer.ProviderConfig{ProviderID: "openai", Model: "m", BaseURL: "https://proxy.example.evil/v1"},
			url: "https://proxy.example.evil/v1",
		},
		"nor to one that only begins like the right one": {
			config: reducer.ProviderConfig{ProviderID: "openai", Model: "m", BaseURL: "https://api.openai.com/v1@evil.example"},
			url:    "https://api.openai.com/v1@evil.example",
		},
		"the key of a worker does not go to another provider's URL": {
			defaults: llm.Defaults{ProviderID: "offline", BaseURL: "http://127.0.0.1:9/v1", APIKeyRef: "env:OFFLINE_KEY"},
			config:   reducer.ProviderConfig{ProviderID: "other", Model: "m", BaseURL: "http://127.0.0.1:9/v1"},
			url:      "http://127.0.0.1:9/v1",
		},
		"a default URL without a key of its own gets none of the preset's": {
			defaults: llm.Defaults{ProviderID: "openai", BaseURL: "http://lmstudio.example/v1"},
			config:   initial, url: "http://lmstudio.example/v1",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			sent := &notes{}
			adapter := llm.New(llm.Options{HTTPClient: &http.Client{Transport: sent}, Getenv: env(variables), Defaults: test.defaults})
			target, err := adapter.Resolve(test.config)
			require.NoError(t, err)
			require.Equal(t, test.url, target.BaseURL)
			_, err = target.Stream(within(t), hello, nil)
			requireKind(t, llm.KindConnection, err)
			require.Equal(t, test.url+"/chat/completions", sent.url)
			require.Equal(t, test.key, strings.TrimPrefix(sent.authorization, "Bearer "))
		})
	}
}

func TestWhatIsNotSetUpSaysWhatToSet(t *testing.T) {
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
			want:   `openai: no API key; set OPENAI_API_KEY for the worker, or point the context elsewhere with "starter set provider"`,
		},
		"no key at the place that the context names": {
			config: reducer.ProviderConfig{ProviderID: "mine", Model: "m", BaseURL: "http://mine.example", APIKeyRef: "env:MY_API_KEY"},
			want:   `mine: no API key; set MY_API_KEY for the worker, or point the context elsewhere with "starter set provider"`,
		},
		"a secret that contexts may not name": {
			config: reducer.ProviderConfig{ProviderID: "mine", Model: "m", BaseURL: "http://mine.example", APIKeyRef: "env:AWS_SECRET_ACCESS_KEY"},
			want: "mine: the worker does not hand out the key env:AWS_SECRET_ACCESS_KEY (its operator may allow it with --key-refs; " +
				"now env:*_API_KEY,file:/run/secrets/*)",
		},
		"a file that contexts may not name": {
			config: reducer.ProviderConfig{ProviderID: "mine", Model: "m", BaseURL: "http://mine.example", APIKeyRef: "file:/run/secrets/../../etc/key"},
			want: "mine: the worker does not hand out the key file:/run/secrets/../../etc/key (its operator may allow it with --key-refs; " +
				"now env:*_API_KEY,file:/run/secrets/*)",
		},
		"the key of a provider for the server of somebody else": {
			config: reducer.ProviderConfig{ProviderID: "mine", Model: "m", BaseURL: "http://mine.example/v1", APIKeyRef: "env:ANTHROPIC_API_KEY"},
			want: "mine: the key env:ANTHROPIC_API_KEY is that of anthropic and is not sent to http://mine.example/v1 " +
				"(the worker's operator may allow it with --key-refs)",
		},
		"no such file": {
			config: reducer.ProviderConfig{ProviderID: "openai", Model: "m", APIKeyRef: "file:/run/secrets/key"},
			want:   "openai: no API key; the worker cannot read /run/secrets/key: file does not exist",
		},
		"a blank file": {
			config: reducer.ProviderConfig{ProviderID: "openai", Model: "m", APIKeyRef: "file:/run/secrets/blank"},
			want:   "openai: no API key; the file /run/secrets/blank is empty",
		},
		"a key that cannot be one": {
			config: reducer.ProviderConfig{ProviderID: "openai", Model: "m", APIKeyRef: "env:TWO_LINES_API_KEY"},
			want:   "openai: no API key; what is in the environment variable TWO_LINES_API_KEY is not one: want one word of ASCII",
		},
		"a key in the place of a reference": {
			config: reducer.ProviderConfig{ProviderID: "openai", Model: "m", APIKeyRef: "sk-secret"},
			want:   "openai: no API key; the reference is neither env:NAME nor file:/path",
		},
		"an unknown provider": {
			config: reducer.ProviderConfig{ProviderID: "opeanai", Model: "m"},
			want: "opeanai: unknown provider: give it a baseUrl, or choose one of anthropic, cerebras, deepseek, gemini, groq, " +
				"llamacpp, mistral, ollama, openai, openrouter, together, vllm",
		},
		"a URL that is none": {
			defaults: llm.Defaults{ProviderID: "openai", BaseURL: "localhost:8080/v1"},
			config:   reducer.Initial().Config.Primary,
			want:     `openai: base URL "localhost:8080/v1": want an http or https URL like https://api.openai.com/v1`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			adapter := llm.New(llm.Options{
				Getenv: env(map[string]string{"TWO_LINES_API_KEY": "a\nb"}), ReadFile: files, Defaults: test.defaults,
			})
			_, err := adapter.Resolve(test.config)
			failed := requireKind(t, llm.KindConfiguration, err)
			require.Equal(t, test.want, err.Error())
			require.False(t, failed.Retryable())
		})
	}
}

func TestKeyMayStandInAFile(t *testing.T) {
	model := llmtest.Start(t, llmtest.Answer("Hi"))
	adapter := llm.New(llm.Options{ReadFile: func(string) ([]byte, error) { return []byte("from-a-file\n"), nil }})
	target, err := adapter.Resolve(reducer.ProviderConfig{ProviderID: "mine", Model: "m", BaseURL: model.URL, APIKeyRef: "file:/run/secrets/key"})
	require.NoError(t, err)
	_, err = target.Stream(within(t), hello, nil)
	require.NoError(t, err)
	require.Equal(t, "Bearer from-a-file", model.Requests()[0].Header.Get("Authorization"))
}

func TestDefaultsComeFromTheVariablesOfOpenAI(t *testing.T) {
	require.Equal(t, llm.Defaults{ProviderID: "openai"}, llm.DefaultsFromEnv(env(nil)))
	require.Equal(t,
		llm.Defaults{ProviderID: "openai", BaseURL: "http://x/v1", Model: "m", APIKeyRef: "env:OPENAI_API_KEY"},
		llm.DefaultsFromEnv(env(map[string]string{"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://x/v1", "OPENAI_MODEL": "m"})))
}

func TestEveryPresetCanBeChosen(t *testing.T) {
	adapter := llm.New(llm.Options{Getenv: func(string) string { return testKey }})
	for _, id := range llm.Providers() {
		target, err := adapter.Resolve(reducer.ProviderConfig{ProviderID: id, Model: "m"})
		require.NoError(t, err)
		valid := event.New(event.SetProviderConfig{ProviderID: id, Model: "m", BaseURL: target.BaseURL})
		require.NoError(t, valid.Validate())
	}
}
