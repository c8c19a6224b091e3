package llm_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/baseurl"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// received is a request received by a server.
type received struct{ origin, path, key string }

// internet is a set of servers that a client reaches under the names of other hosts. A
// connection to any other host fails the test.
type internet struct {
	t        *testing.T
	client   *http.Client
	servers  map[string]string // address of the server by host:port
	mu       sync.Mutex
	requests []received
}

func newInternet(t *testing.T, origins ...string) *internet {
	t.Helper()
	n := &internet{t: t, client: llm.NewHTTPClient(), servers: map[string]string{}}
	for _, origin := range origins {
		scheme, host, _ := strings.Cut(origin, "://")
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.requests = append(n.requests, received{origin, r.URL.Path, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")})
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, llmtest.Chunk(`{"content":"Hi"}`, "stop"), llmtest.Done)
		}))
		port := ":80"
		if scheme == "https" {
			server.StartTLS()
			port = ":443"
		} else {
			server.Start()
		}
		t.Cleanup(server.Close)
		if _, _, err := net.SplitHostPort(host); err == nil {
			port = ""
		}
		n.servers[host+port] = server.Listener.Addr().String()
	}
	transport := n.client.Transport.(*http.Transport)
	transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		server, ok := n.servers[address]
		if !ok {
			n.t.Errorf("the client connects to %s", address)
			return nil, errors.New("no such host")
		}
		return new(net.Dialer).DialContext(ctx, network, server)
	}
	t.Cleanup(n.client.CloseIdleConnections)
	return n
}

// take returns the requests since the last call.
func (n *internet) take() []received {
	n.mu.Lock()
	defer n.mu.Unlock()
	taken := n.requests
	n.requests = nil
	return taken
}

// The keys of the worker by reference. None is missing, so that the test sees every key sent.
var keys = map[string]string{
	"env:OPENAI_API_KEY":        "key-of-openai",
	"env:MISTRAL_API_KEY":       "key-of-mistral",
	"env:XAI_API_KEY":           "key-of-xai",
	"env:HOUSE_KEY":             "key-of-house",
	"env:AWS_SECRET_ACCESS_KEY": "key-of-aws",
	"file:/run/secrets/vault":   "key-of-vault",
	"file:/run/secrets/db":      "key-of-db",
}

// operator is a configuration and its manually derived consequences: the reachable servers and
// the key that each may receive.
type operator struct {
	options llm.Options
	// reachable maps an origin to the only key that may be sent there; "" means none. Only
	// paths that begin with /v1/ are reachable.
	reachable map[string]string
}

func operators() map[string]operator {
	house := []llm.Provider{
		{ID: "house", BaseURL: baseurl.MustParse("https://house.example/v1"), KeyRef: "env:HOUSE_KEY"},
		{ID: "vault", BaseURL: baseurl.MustParse("https://vault.example/v1"), KeyRef: "file:/run/secrets/vault"},
		{ID: "open", BaseURL: baseurl.MustParse("http://10.1.2.3:8000/v1")},
		{ID: "mistral", BaseURL: baseurl.MustParse("https://mistral.house.example/v1"), KeyRef: "env:HOUSE_KEY"},
	}
	openai := llm.Defaults{ProviderID: "openai", APIKeyRef: "env:OPENAI_API_KEY"}
	proxied := llm.Defaults{ProviderID: "openai", BaseURL: "https://proxy.example/v1", APIKeyRef: "env:OPENAI_API_KEY"}
	lab := []baseurl.URL{baseurl.MustParse("http://lab.example:8000/v1")}
	return map[string]operator{
		"nothing": {llm.Options{}, map[string]string{
			"https://api.openai.com": "key-of-openai", "https://api.mistral.ai": "key-of-mistral",
		}},
		"a key": {llm.Options{Defaults: openai}, map[string]string{
			"https://api.openai.com": "key-of-openai", "https://api.mistral.ai": "key-of-mistral",
		}},
		"a base URL": {llm.Options{Defaults: proxied}, map[string]string{
			"https://proxy.example": "key-of-openai", "https://api.mistral.ai": "key-of-mistral",
		}},
		"a base URL without a key": {llm.Options{Defaults: llm.Defaults{ProviderID: "openai", BaseURL: "https://proxy.example/v1"}}, map[string]string{
			"https://proxy.example": "", "https://api.mistral.ai": "key-of-mistral",
		}},
		"--providers": {llm.Options{Defaults: openai, Providers: house}, map[string]string{
			"https://api.openai.com": "key-of-openai", "https://mistral.house.example": "key-of-house",
			"https://house.example": "key-of-house", "https://vault.example": "key-of-vault", "http://10.1.2.3:8000": "",
		}},
		"--allow-base-url": {llm.Options{Defaults: openai, AllowBaseURLs: lab}, map[string]string{
			"https://api.openai.com": "key-of-openai", "https://api.mistral.ai": "key-of-mistral", "http://lab.example:8000": "",
		}},
		"--dev": {llm.Options{Defaults: openai, AllowLoopback: true}, map[string]string{
			"https://api.openai.com": "key-of-openai", "https://api.mistral.ai": "key-of-mistral",
			"http://localhost:11434": "", "http://127.0.0.1:9999": "", "http://[::1]:9999": "",
		}},
		"everything": {llm.Options{Defaults: proxied, Providers: house, AllowBaseURLs: lab, AllowLoopback: true}, map[string]string{
			"https://proxy.example": "key-of-openai", "https://mistral.house.example": "key-of-house",
			"https://house.example": "key-of-house", "https://vault.example": "key-of-vault", "http://10.1.2.3:8000": "",
			"http://lab.example:8000": "", "http://localhost:11434": "", "http://127.0.0.1:9999": "", "http://[::1]:9999": "",
		}},
	}
}

// TestEveryKeyIsSentToItsDestinationOnly_Alone tests all combinations of configurations and events on
// listening servers.
func TestEveryKeyIsSentToItsDestinationOnly_Alone(t *testing.T) {
	origins := []string{
		"https://api.openai.com", "https://api.mistral.ai", "http://localhost:11434", "https://proxy.example",
		"https://house.example", "https://vault.example", "http://10.1.2.3:8000", "https://mistral.house.example",
		"http://lab.example:8000", "http://127.0.0.1:9999", "http://[::1]:9999",
		"https://evil.example", "http://169.254.169.254", "http://api.openai.com", "https://api.openai.com:8443",
	}
	n := newInternet(t, origins...)
	providers := []string{"", "openai", "mistral", "ollama", "house", "vault", "open", "unknown"}
	urls := []string{
		"", "http://lab.example:8000/admin", "http://lab.example:8000/v10", "http://lab.example:8000/v1/beta",
		"https://api.openai.com/v1/", "https://api.openai.com:443/v1", "https://api.openai.com/v2", "https://API.openai.com/v1",
		"https://api.openai.com/v1@evil.example", "https://api.openai.com@evil.example/v1", "https://api.openai.com/v1/../../v1",
		"https://api.openai.com/v1#@evil.example", "https://api.openai.com\\@evil.example/v1", "https://api.openai.com.evil.example/v1",
		"http://lab.example:8000/v1/../admin", "http://lab.example:8000/v1/%2e%2e/admin", "http://lab.example:8000@evil.example/v1",
		"http://127.1:9999/v1", "http://0x7f.0.0.1:9999/v1", "http://[::ffff:127.0.0.1]:9999/v1", "http://localhost.:11434/v1",
	}
	for _, origin := range origins {
		urls = append(urls, origin+"/v1")
	}
	refs := []string{"", "file:/run/secrets/../secrets/vault", "env:NOT_SET", "sk-live-0123456789"}
	for ref := range keys {
		refs = append(refs, ref)
	}
	slices.Sort(refs)

	for name, operator := range operators() {
		t.Run(name, func(t *testing.T) {
			n.t = t
			adapter := n.adapter(operator.options)
			for _, provider := range providers {
				for _, url := range urls {
					for _, ref := range refs {
						cfg := reducer.ProviderConfig{ProviderID: provider, Model: "m", BaseURL: url, APIKeyRef: ref}
						if provider == "" {
							cfg.ProviderID, cfg.IsDefault = "openai", true
						}
						operator.check(t, n, adapter, cfg)
					}
				}
			}
		})
	}
}

// configureAdvice is compiled once, since the table has thousands of rejected requests.
var configureAdvice = regexp.MustCompile(`--providers|baseUrl is invalid|neither env:NAME nor file:/path`)

func (n *internet) adapter(options llm.Options) *llm.Adapter {
	options.HTTPClient = n.client
	options.Getenv = func(name string) string { return keys["env:"+name] }
	options.ReadFile = func(name string) ([]byte, error) { return []byte(keys["file:"+name] + "\n"), nil }
	return llm.New(options)
}

// check sends a request and checks what the servers received, by the documented rules: only
// reachable servers receive requests, below their path, with their own key or none; a key named
// by the event is sent or the request is rejected; a rejected request reaches no server, and
// its error says what to configure.
func (o operator) check(t *testing.T, n *internet, adapter *llm.Adapter, cfg reducer.ProviderConfig) {
	t.Helper()
	described := fmt.Sprintf("provider %q (default %t), baseUrl %q, apiKeyRef %q", cfg.ProviderID, cfg.IsDefault, cfg.BaseURL, cfg.APIKeyRef)
	target, err := adapter.Resolve(cfg)
	if err != nil {
		requireKind(t, llm.KindConfiguration, err)
		require.Empty(t, n.take(), described)
		require.Regexp(t, configureAdvice, err.Error(), described)
		for _, key := range keys {
			require.NotContains(t, err.Error(), key, described)
		}
		require.NotContains(t, err.Error(), "sk-live", described)
		return
	}
	_, err = target.Stream(within(t), hello, nil)
	require.NoError(t, err, described)
	got := n.take()
	require.Len(t, got, 1, described)
	key, ok := o.reachable[got[0].origin]
	require.True(t, ok, "%s: %s received a request", described, got[0].origin)
	require.Regexp(t, `^/v1/(beta/)?chat/completions$`, got[0].path, described)
	if got[0].key != "" {
		require.Equal(t, key, got[0].key, described)
	}
	if cfg.APIKeyRef != "" {
		require.Equal(t, keys[cfg.APIKeyRef], got[0].key, described)
	}
	if cfg.BaseURL != "" {
		require.True(t, strings.HasPrefix(strings.Replace(cfg.BaseURL, ":443", "", 1), got[0].origin+"/"), described)
	}
}

// TestConfiguredDestinationsAreReached is the counterpart: these requests are sent, with these
// keys.
func TestConfiguredDestinationsAreReached(t *testing.T) {
	type request struct{ provider, url, ref string }
	tests := map[string]map[request]received{
		"nothing": {
			{"", "", ""}:       {"https://api.openai.com", "/v1/chat/completions", "key-of-openai"},
			{"openai", "", ""}: {"https://api.openai.com", "/v1/chat/completions", "key-of-openai"},
			{"openai", "https://api.openai.com/v1/", ""}:                   {"https://api.openai.com", "/v1/chat/completions", "key-of-openai"},
			{"openai", "", "env:OPENAI_API_KEY"}:                           {"https://api.openai.com", "/v1/chat/completions", "key-of-openai"},
			{"mine", "https://api.openai.com/v1", "env:OPENAI_API_KEY"}:    {"https://api.openai.com", "/v1/chat/completions", "key-of-openai"},
			{"mine", "https://api.openai.com/v1", ""}:                      {"https://api.openai.com", "/v1/chat/completions", ""},
			{"mistral", "", ""}:                                            {"https://api.mistral.ai", "/v1/chat/completions", "key-of-mistral"},
			{"openai", "https://api.mistral.ai/v1", "env:MISTRAL_API_KEY"}: {"https://api.mistral.ai", "/v1/chat/completions", "key-of-mistral"},
		},
		"a base URL": {
			{"", "", ""}:       {"https://proxy.example", "/v1/chat/completions", "key-of-openai"},
			{"openai", "", ""}: {"https://proxy.example", "/v1/chat/completions", "key-of-openai"},
			{"openai", "https://proxy.example/v1", ""}: {"https://proxy.example", "/v1/chat/completions", "key-of-openai"},
			{"mistral", "", ""}:                        {"https://api.mistral.ai", "/v1/chat/completions", "key-of-mistral"},
			{"mine", "https://proxy.example/v1", ""}:   {"https://proxy.example", "/v1/chat/completions", ""},
		},
		"a base URL without a key": {
			{"", "", ""}: {"https://proxy.example", "/v1/chat/completions", ""},
		},
		"--providers": {
			{"house", "", ""}:                                               {"https://house.example", "/v1/chat/completions", "key-of-house"},
			{"vault", "", "file:/run/secrets/vault"}:                        {"https://vault.example", "/v1/chat/completions", "key-of-vault"},
			{"open", "", ""}:                                                {"http://10.1.2.3:8000", "/v1/chat/completions", ""},
			{"mistral", "", ""}:                                             {"https://mistral.house.example", "/v1/chat/completions", "key-of-house"},
			{"mine", "https://vault.example/v1", ""}:                        {"https://vault.example", "/v1/chat/completions", ""},
			{"house", "https://vault.example/v1", ""}:                       {"https://vault.example", "/v1/chat/completions", ""},
			{"mistral", "https://house.example/v1", "env:HOUSE_KEY"}:        {"https://house.example", "/v1/chat/completions", "key-of-house"},
			{"mine", "https://vault.example/v1", "file:/run/secrets/vault"}: {"https://vault.example", "/v1/chat/completions", "key-of-vault"},
		},
		"--allow-base-url": {
			{"mine", "http://lab.example:8000/v1", ""}:        {"http://lab.example:8000", "/v1/chat/completions", ""},
			{"openai", "http://lab.example:8000/v1/beta", ""}: {"http://lab.example:8000", "/v1/beta/chat/completions", ""},
		},
		"--dev": {
			{"ollama", "", ""}:                       {"http://localhost:11434", "/v1/chat/completions", ""},
			{"mine", "http://127.0.0.1:9999/v1", ""}: {"http://127.0.0.1:9999", "/v1/chat/completions", ""},
			{"mine", "http://[::1]:9999/v1", ""}:     {"http://[::1]:9999", "/v1/chat/completions", ""},
		},
	}
	for name, requests := range tests {
		operator := operators()[name]
		n := newInternet(t, slices.Collect(maps.Keys(operator.reachable))...)
		adapter := n.adapter(operator.options)
		for request, want := range requests {
			t.Run(fmt.Sprintf("%s %v", name, request), func(t *testing.T) {
				config := reducer.ProviderConfig{ProviderID: request.provider, Model: "m", BaseURL: request.url, APIKeyRef: request.ref}
				if request.provider == "" {
					config = reducer.Initial().Config.Primary
				}
				target, err := adapter.Resolve(config)
				require.NoError(t, err)
				_, err = target.Stream(within(t), hello, nil)
				require.NoError(t, err)
				require.Equal(t, []received{want}, n.take())
			})
		}
	}
}
