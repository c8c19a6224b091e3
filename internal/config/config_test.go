package config_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event/eventtest/golden"
	"github.com/seed-9ed7edd4/chronicle/hook/webhook"
	"github.com/seed-9ed7edd4/chronicle/internal/config"
	"github.com/seed-9ed7edd4/chronicle/llm"
)

const exampleFile = "../../examples/config/chronicle.toml"

// program is a worker with its settings.
type program struct {
	config.Connection
	config.Worker
	*config.Config
	flags *pflag.FlagSet
	env   map[string]string
}

func newProgram(env map[string]string) *program {
	p := &program{env: env, flags: pflag.NewFlagSet("worker", pflag.ContinueOnError)}
	tables := p.tables()
	p.Config = config.New(tables, new(config.Gateway).Table())
	for _, t := range tables {
		p.flags.AddFlagSet(t.FlagSet)
	}
	p.AddFlags(p.flags)
	return p
}

func (p *program) tables() []*config.Table {
	return []*config.Table{p.Connection.Table(config.WorkerWords), p.Worker.Table(llm.Presets()...)}
}

func (p *program) load(t *testing.T, args ...string) error {
	t.Helper()
	require.NoError(t, p.flags.Parse(args))
	return p.Load(p.getenv)
}

func (p *program) getenv(name string) string { return p.env[name] }

// write changes to a new directory with the file chronicle.toml.
func write(t *testing.T, text string) {
	t.Helper()
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("chronicle.toml", []byte(text), 0o600))
}

func TestFlagsOverrideTheEnvironmentWhichOverridesTheFile(t *testing.T) {
	write(t, "address = \"file:1\"\nnamespace = \"of-file\"\nblob_url = \"file:///file\"\n[worker]\ndrain_timeout = \"1m\"\ncached_contexts = 500\njson = true\nallow_base_url = [\"http://a/v1\", \"http://b/v1\"]\n")
	p := newProgram(map[string]string{"CHRONICLE_CONFIG": "chronicle.toml", "TEMPORAL_ADDRESS": "env:1", "TEMPORAL_NAMESPACE": "of-env"})
	require.NoError(t, p.load(t, "--address", "flag:1", "--drain-timeout", "2s"))
	require.Equal(t, []any{"flag:1", "of-env", "file:///file", 2 * time.Second, 500, true, []string{"http://a/v1", "http://b/v1"}, 7233},
		[]any{p.Address, p.Namespace, p.BlobURL, p.DrainTimeout, p.CachedContexts, p.JSON, p.AllowBaseURLs, p.TemporalPort})
	require.Equal(t, "--address", p.Label("address"))
	require.Equal(t, "TEMPORAL_NAMESPACE", p.Label("namespace"))
	require.Equal(t, "chronicle.toml: blob_url", p.Label("blob-url"))
	require.Equal(t, "chronicle.toml: worker.cached_contexts", p.Label("cached-contexts"))
	require.Equal(t, "--temporal-port", p.Label("temporal-port"))
}

func TestAnAuthenticationMethodOverridesThoseOfLowerPrecedence(t *testing.T) {
	write(t, "nats_user = \"of-file\"\nnats_password_file = \"/secret\"\nnats_ca = \"/ca.pem\"\n")
	for _, test := range []struct {
		env                      map[string]string
		args                     []string
		user, creds, token, file string
	}{
		{user: "of-file", file: "/secret"},
		{env: map[string]string{"NATS_CREDS": "/env.creds"}, creds: "/env.creds"},
		{env: map[string]string{"NATS_TOKEN": "of-env"}, token: "of-env"},
		{env: map[string]string{"NATS_PASSWORD": "of-env"}, user: "of-file", file: "/secret"},
		{env: map[string]string{"NATS_TOKEN": "of-env", "NATS_USER": "of-env"}, args: []string{"--nats-creds", "/flag.creds"}, creds: "/flag.creds"},
	} {
		p := newProgram(test.env)
		require.NoError(t, p.load(t, append(test.args, "--config", "chronicle.toml")...))
		auth := p.NATSAuth
		require.Equal(t, []string{test.user, test.creds, test.token, test.file, "/ca.pem"},
			[]string{auth.User, auth.CredsFile, auth.Token, auth.PasswordFile, auth.CAFile})
	}
}

func TestIgnoredSettingsComeFromTheCommandLineOnly(t *testing.T) {
	write(t, "address = \"file:1\"\nnats_url = \"nats://file\"\n")
	p := newProgram(map[string]string{"TEMPORAL_NAMESPACE": "of-env"})
	require.NoError(t, p.flags.Parse([]string{"--config", "chronicle.toml", "--nats-url", "nats://flag"}))
	require.NoError(t, p.Load(p.getenv, "address", "namespace", "nats-url"))
	require.Equal(t, []string{"", "", "nats://flag"}, []string{p.Address, p.Namespace, p.NATSURL})
}

func TestErrorsOfAFileNameItsLine(t *testing.T) {
	var printed strings.Builder
	for _, text := range []string{
		"adress = \"a:1\"",
		"[worker]\ndrain-timeout = \"1m\"",
		"drain_timeout = \"1m\"",
		"[worker]\naddress = \"a:1\"",
		"[wroker]\njson = true",
		"[gateway]\nrate = 1\nlisen = \"a:1\"",
		"# A comment.\n\n[worker]\njson = true\ntemperature = 1",
		"[provider.house]\n",
		"address = 5",
		"namespace = true",
		"worker = true",
		"[[worker]]\njson = true",
		"[worker.json]\nx = 1",
		"[worker]\ndrain_timeout = \"soon\"",
		"[worker]\ndrain_timeout = 30",
		"[worker]\njson = \"yes\"",
		"[worker]\ncached_contexts = 1.5",
		"[worker]\nlog_level = \"loud\"",
		"[worker]\nallow_base_url = \"http://a/v1\"",
		"[worker]\nallow_base_url = [1]",
		"[worker]\nmcp = { command = \"sk-s3cr3ts3cr3ts3cr3t\" }",
		"[gateway]\nrate = \"fast\"",
		"[worker]\njson = true\njson = false",
		"[worker\n",
		"address = sk-s3cr3t",
		"nats_url = [\"nats://me:s3cr3t@host\"]",
	} {
		write(t, text)
		err := newProgram(nil).load(t, "--config", "chronicle.toml")
		require.Error(t, err, text)
		require.NotContains(t, err.Error(), "s3cr3t")
		for line := range strings.Lines(text) {
			fmt.Fprintf(&printed, "    %s\n", strings.TrimSuffix(line, "\n"))
		}
		fmt.Fprintf(&printed, "%v\n\n", err)
	}
	golden.File(t, testdata(t, "errors.golden"), printed.String())
}

var home, _ = os.Getwd()

// testdata returns the path of a file after a change of the directory.
func testdata(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(home, "testdata", name)
}

func TestAMissingFileIsAnError(t *testing.T) {
	t.Chdir(t.TempDir())
	require.EqualError(t, newProgram(nil).load(t, "--config", "no.toml"), "--config: open no.toml: no such file or directory")
	require.EqualError(t, newProgram(map[string]string{"CHRONICLE_CONFIG": "no.toml"}).load(t), "CHRONICLE_CONFIG: open no.toml: no such file or directory")
}

// TestPrintedSettings compares the output of --print-config with testdata/printed.golden.
func TestPrintedSettings(t *testing.T) {
	example, err := os.ReadFile(exampleFile)
	require.NoError(t, err)
	write(t, string(example))
	p := newProgram(map[string]string{
		"NATS_URL": "nats://me:s3cr3t@nats:4222", "OPENAI_API_KEY": "s3cr3t", "OPENAI_BASE_URL": "https://me:s3cr3t@llm.example.com/v1", "NATS_TOKEN": "s3cr3t",
	})
	require.NoError(t, p.load(t, "--config", "chronicle.toml", "--log-level", "warn", "--tool-fetch"))
	var printed bytes.Buffer
	require.NoError(t, p.Print(&printed, p.getenv, map[string]config.Value{"profile": {Value: "prod", Origin: "profile of the temporal command"}}))
	require.NotContains(t, printed.String(), "s3cr3t")
	golden.File(t, testdata(t, "printed.golden"), printed.String())

	write(t, printed.String())
	again := newProgram(nil)
	require.NoError(t, again.load(t, "--config", "chronicle.toml"), "the output is a valid file")
	require.Equal(t, p.Worker, again.Worker)
}

func TestPrintedValuesContainNoSecrets(t *testing.T) {
	write(t, `blob_url = "s3://bucket?access_key=s3cr3ts3cr3ts3cr3t"
[worker]
metrics = "Bearer s3cr3ts3cr3ts3cr3t"
allow_base_url = ["http://me:s3cr3t@10.0.0.5/v1"]
[[hooks]]
url = "https://guard.example.com/?token=s3cr3ts3cr3ts3cr3t"
stages = ["password=s3cr3ts3cr3ts3cr3t"]
[providers.house]
key = "sk-s3cr3ts3cr3ts3cr3t"
`)
	p := newProgram(map[string]string{
		"NATS_URL": "s3cr3t@nats:4222,nats://me:s3cr3t@nats:4223", "NATS_PASSWORD": "s3cr3t", "TEMPORAL_API_KEY": "s3cr3t", "OPENAI_API_KEY": "s3cr3t",
	})
	require.NoError(t, p.load(t, "--config", "chronicle.toml"))
	var printed bytes.Buffer
	require.NoError(t, p.Print(&printed, p.getenv, nil))
	require.NotContains(t, printed.String(), "s3cr3t")
	require.Equal(t, 10, strings.Count(printed.String(), "[removed]"), printed.String())
}

func TestExampleOfAConfigurationFile(t *testing.T) {
	p := newProgram(nil)
	require.NoError(t, p.load(t, "--config", exampleFile))
	path, text := p.Text()
	require.Equal(t, exampleFile, path)
	providers, err := llm.ParseProviders(path, text)
	require.NoError(t, err)
	require.Equal(t, "house", providers.Providers[0].ID)
	require.Equal(t, "2026-01", providers.PriceVersion)
	require.Len(t, providers.Budgets, 1)
	hooks, err := webhook.Parse(path, text, webhook.Options{WithoutCalls: true})
	require.NoError(t, err)
	require.Equal(t, "topic", hooks[0].Name)

	var connection config.Connection
	var gateway config.Gateway
	tables := []*config.Table{connection.Table(config.ClientWords), gateway.Table()}
	c := config.New(tables, new(config.Worker).Table())
	require.NoError(t, c.Load(func(name string) string { return map[string]string{"CHRONICLE_CONFIG": exampleFile}[name] }))
	require.Equal(t, []string{"chat.example.com"}, gateway.Hosts)
	require.Equal(t, "temporal.internal:7233", connection.Address)
}

func TestReloadKeepsFlagsAndReadsTheFileAgain(t *testing.T) {
	write(t, "address = \"a:1\"\n[worker]\nlog_level = \"warn\"\njson = true\n[providers.ollama]\n")
	p := newProgram(nil)
	require.NoError(t, p.load(t, "--config", "chronicle.toml", "--drain-timeout", "7s", "--allow-base-url", "http://a/v1"))
	require.NoError(t, os.WriteFile("chronicle.toml", []byte("address = \"b:1\"\n[worker]\nlog_level = \"debug\"\ndrain_timeout = \"9s\"\n"), 0o600))
	next := newProgram(nil)
	reloaded, err := p.Reload(p.getenv, next.tables()...)
	require.NoError(t, err)
	require.Equal(t, []string{"address", "providers", "worker.json", "worker.log_level"}, p.Differences(reloaded))
	require.Equal(t, "warn", p.LogLevel.String(), "the old settings do not change")
	require.Equal(t, "--drain-timeout", reloaded.Label("drain-timeout"))
	require.Equal(t, "chronicle.toml: worker.log_level", reloaded.Label("log-level"))

	require.NoError(t, os.WriteFile("chronicle.toml", []byte("[worker"), 0o600))
	_, err = p.Reload(p.getenv, newProgram(nil).tables()...)
	require.ErrorContains(t, err, "chronicle.toml")
}

func TestProvidersInTheFileConflictWithAProvidersFile(t *testing.T) {
	write(t, "[worker]\nproviders = \"providers.toml\"\n[providers.ollama]\n")
	p := newProgram(nil)
	require.NoError(t, p.load(t, "--config", "chronicle.toml"))
	require.EqualError(t, p.CheckOnce("providers", llm.ProviderKeys...), "chronicle.toml: worker.providers: the file also has providers (want one of them)")
	require.NoError(t, p.CheckOnce("hooks", webhook.Key))
	p = newProgram(nil)
	require.NoError(t, p.load(t, "--config", "chronicle.toml", "--providers", "other.toml"))
	require.NoError(t, p.CheckOnce("providers", llm.ProviderKeys...), "a flag overrides the file")
}
