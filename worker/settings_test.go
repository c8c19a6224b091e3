package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

func TestInvalidBaseURLIsAUsageError(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--dev", "--data-dir", t.TempDir(), "--temporal-port", "0", "--ui-port", "0", "--nats-port", "0"}, {}} {
		worker := prepare(t, args...)
		worker.cmd.Env = append(worker.cmd.Env, "OPENAI_BASE_URL=https://me:secret@")
		worker.start()
		require.Equal(t, 2, worker.exit())
		require.Contains(t, worker.stderr.String(), "OPENAI_BASE_URL: contains an @")
		require.NotContains(t, worker.stderr.String(), "secret")
	}
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	invalidProviders, err := filepath.Abs("testdata/invalid.toml")
	require.NoError(t, err)
	invalidRule, err := filepath.Abs("testdata/retention.toml")
	require.NoError(t, err)
	tests := []struct {
		name string
		args []string
		code int
		want string
	}{
		{name: "an unknown flag", args: []string{"--prod"}, code: 2, want: "unknown flag: --prod"},
		{name: "an unexpected argument", args: []string{"now"}, code: 2, want: `unexpected argument "now"`},
		{name: "a check with dev", args: []string{"--dev", "--check"}, code: 2, want: "--check: cannot be used with --dev"},
		{name: "a check of an unreachable server", args: []string{"--check", "--address", "127.0.0.1:1"}, code: 4, want: "cannot reach Temporal at 127.0.0.1:1"},
		{name: "a command without dev", args: []string{"--", "ls"}, code: 2, want: "COMMAND: requires --dev"},
		{name: "a flag of dev without it", args: []string{"--ui-port", "1"}, code: 2, want: "--ui-port: requires --dev"},
		{name: "an address with dev", args: []string{"--dev", "--address", "a:1"}, code: 2, want: "--address: cannot be used with --dev"},
		{name: "an invalid port", args: []string{"--dev", "--ui-port", "65536"}, code: 2, want: "--ui-port 65536: want 0 to 65535"},
		{name: "an invalid part", args: []string{"--only", "queries"}, code: 2, want: `--only "queries": want workflows or activities`},
		{name: "no store", args: []string{"--blob-url", "none"}, code: 2, want: `--blob-url "none": a worker requires a blob store`},
		{name: "no store with dev", args: []string{"--dev", "--blob-url", "none"}, code: 2, want: `--blob-url "none": a worker requires a blob store`},
		{name: "a negative delay", args: []string{"--dev", "--offline-token-delay", "-1s"}, code: 2, want: "--offline-token-delay -1s: want 0s or more"},
		{name: "a removed flag", args: []string{"--key-refs", ""}, code: 2, want: "unknown flag: --key-refs"},
		{name: "an invalid base URL", args: []string{"--allow-base-url", "http://me:s3cr3t@host"}, code: 2, want: "--allow-base-url: contains an @"},
		{name: "a missing providers file", args: []string{"--providers", "no/such.toml"}, code: 2, want: "--providers: open no/such.toml"},
		{name: "an invalid providers file", args: []string{"--providers", invalidProviders}, code: 2, want: `invalid.toml: provider "house": base_url: missing`},
		{name: "an invalid rule of retention", args: []string{"--config", invalidRule}, code: 2, want: `retention.toml: retention 1: after: missing or invalid`},
		{name: "a missing directory", args: []string{"--attachments-dir", "no/such"}, code: 1, want: "--attachments-dir: open "},
		{name: "a missing root of files", args: []string{"--tool-files-root", "no/such"}, code: 1, want: "--tool-files-root: open "},
		{name: "a missing file of MCP servers", args: []string{"--mcp", "no/such.json"}, code: 2, want: "--mcp: open no/such.json"},
		{name: "a missing profile", args: []string{"--profile", "nowhere"}, code: 1, want: "nowhere"},
		{name: "an unreachable server", args: []string{"--address", "127.0.0.1:1"}, code: 4, want: "cannot reach Temporal at 127.0.0.1:1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			worker := run(t, tt.args...)
			require.Equal(t, tt.code, worker.exit())
			require.Contains(t, worker.stderr.String(), tt.want)
			require.NotContains(t, worker.stderr.String(), "s3cr3t")
		})
	}
}

func TestEnvironmentMustAgreeWithTheProvidersFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "providers.toml")
	require.NoError(t, os.WriteFile(file, []byte("[providers.openai]\nbase_url = \"https://llm.example.com/v1\"\n"), 0o600))
	worker := prepare(t, "--providers", file)
	worker.cmd.Env = append(worker.cmd.Env, "OPENAI_BASE_URL=https://other.example.com/v1")
	worker.start()
	require.Equal(t, 2, worker.exit())
	require.Contains(t, worker.stderr.String(), `provider "openai": base_url: OPENAI_BASE_URL names another URL (unset one of them)`)
}

// TestProvidersFile starts a worker with a file that configures the default provider and one
// whose key is missing, and sends messages to both.
func TestProvidersFile(t *testing.T) {
	t.Parallel()
	model := llmtest.Start(t, llmtest.Answer("From the file."))
	file := filepath.Join(t.TempDir(), "providers.toml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil,
		"[providers.openai]\nbase_url = %q\nkey = \"env:HOUSE_KEY\"\n[providers.spare]\nbase_url = %q\nkey = \"env:SPARE_KEY\"\n", model.URL, model.URL), 0o600))
	worker := prepare(t, devArgs(t.TempDir(), "--providers", file)...)
	worker.cmd.Env = append(worker.cmd.Env, "HOUSE_KEY=key-of-house", "XAI_API_KEY=key-of-xai")
	worker.start()
	facts := worker.ready()
	require.Equal(t, "gpt-4o-mini", facts["model"])
	c, err := client.Dial(t.Context(), client.Config{Address: facts["temporal"], NATSURL: facts["nats"], NATSAuth: natsAuth(facts)})
	require.NoError(t, err)
	defer c.Shutdown()
	last := func(name string, events ...event.Event) event.Body {
		demo, err := c.Open(name)
		require.NoError(t, err)
		var body event.Body
		for e, err := range demo.Ask(t.Context(), append(events, event.New(event.UserMessage{Content: "Hello"}))...) {
			require.NoError(t, err)
			body = e.Body
		}
		return body
	}
	require.IsType(t, event.LLMRequestCompleted{}, last("file"))
	require.Equal(t, "Bearer key-of-house", model.Requests()[0].Header.Get("Authorization"))

	failed := last("missing", event.New(event.SetProviderConfig{ProviderID: "spare", Model: "m"}))
	require.Contains(t, failed.(event.LLMRequestFailed).Error, "set SPARE_KEY for the worker")
	failed = last("elsewhere", event.New(event.SetProviderConfig{ProviderID: "mine", Model: "m", BaseURL: "http://169.254.169.254/v1"}))
	require.Contains(t, failed.(event.LLMRequestFailed).Error, "--allow-base-url http://169.254.169.254/v1")
	failed = last("key", event.New(event.SetProviderConfig{ProviderID: "mine", Model: "m", BaseURL: model.URL, APIKeyRef: "env:XAI_API_KEY"}))
	require.Contains(t, failed.(event.LLMRequestFailed).Error, "the key env:XAI_API_KEY is not configured for "+model.URL)

	worker.signal(syscall.SIGTERM)
	require.Zero(t, worker.exit(), worker.stderr.String())
	require.Contains(t, worker.stderr.String(), "a configured provider has no key")
	require.NotContains(t, worker.stderr.String(), "key-of-")
	require.Len(t, model.Requests(), 1)
}
