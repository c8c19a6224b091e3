package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest/golden"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
)

// TestHelp compares the help with testdata/help.golden.
func TestHelp(t *testing.T) {
	command := newCommand(&app{})
	var printed strings.Builder
	fmt.Fprintf(&printed, "%s\n\n%s\n\n%s\n\n", command.UseLine(), command.Short, command.Long)
	command.Flags().VisitAll(func(f *pflag.Flag) {
		name, usage := pflag.UnquoteUsage(f)
		value := f.DefValue
		switch value {
		case "0", "false", "[]":
			value = ""
		}
		if value != "" {
			usage += " (default " + value + ")"
		}
		fmt.Fprintf(&printed, "  %s\n        %s\n", strings.TrimSpace("--"+f.Name+" "+name), usage)
	})
	golden.File(t, "testdata/help.golden", printed.String())
}

// dialError matches the error of the Temporal SDK in that of the worker.
var dialError = regexp.MustCompile(`(cannot reach Temporal at [^ ]+: ).*( \()`)

// TestMessages compares the errors of invalid flags and environments with testdata/messages.golden.
func TestMessages(t *testing.T) {
	want, err := filepath.Abs("testdata/messages.golden")
	require.NoError(t, err)
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("TEMPORAL_CONFIG_FILE", os.DevNull)
	for _, variable := range []string{"TEMPORAL_ADDRESS", "TEMPORAL_PROFILE"} {
		t.Setenv(variable, "")
	}
	write := func(name, content string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	write("house.toml", "[providers.house]\nmodel = 1\n")
	write("url.toml", "[providers.house]\nbase_url = \"ftp://llm.example.com\"\n")
	write("openai.toml", "[providers.openai]\nbase_url = \"https://llm.example.com/v1\"\n")
	write("types.toml", "[[hooks]]\nname = \"guard\"\nretries = \"two\"\n")
	write("before.toml", "[[hooks]]\nname = \"guard\"\nurl = \"https://guard.example.com\"\nsecret = \"env:GUARD\"\nstages = [\"before\"]\n")
	write("occupied", "")
	write("range.toml", "# Settings\n[worker]\ncached_contexts = 0\n")
	write("metrics.toml", "[worker]\nmetrics = \"192.0.2.1:1\"\n")
	write("folder.toml", "worker.attachments_dir = \"missing\"\n")
	write("unknown.toml", "[worker]\ndrain_timout = \"1m\"\n")
	write("type.toml", "[worker]\ndrain_timeout = 30\n")
	write("house-part.toml", "task_queue = \"contexts\"\n[providers.house]\nmodel = 1\n")
	write("hooks-part.toml", "[[hooks]]\nname = \"guard\"\nuri = \"x\"\n")
	write("twice.toml", "[worker]\nproviders = \"openai.toml\"\n[providers.ollama]\n")
	write("chronicle.toml", "address = \"temporal:7233\"\nblob_url = \"s3://chronicle\"\n[worker]\ndrain_timeout = \"45s\"\n[providers.openai]\nbase_url = \"https://llm.example.com/v1\"\nkey = \"env:HOUSE_KEY\"\n")

	var printed strings.Builder
	env := map[string]string{}
	run := func(args ...string) {
		t.Helper()
		var out strings.Builder
		a := &app{out: &out, err: &out, getenv: func(name string) string { return env[name] }}
		code := execute(t.Context(), a, append([]string{}, args...))
		require.NotContains(t, out.String(), "s3cr3t")
		text := strings.ReplaceAll(out.String(), dir+string(filepath.Separator), "")
		text = dialError.ReplaceAllString(text, "$1…$2")
		if code == exit.Usage {
			var ok bool
			text, ok = strings.CutSuffix(text, "Run 'worker --help' for usage.\n")
			require.True(t, ok, out.String())
		}
		line := ""
		for name, value := range env {
			line += name + "=" + value + " "
		}
		fmt.Fprintf(&printed, "$ %s [exit %d]\n%s\n", strings.Join(append([]string{line + "worker"}, args...), " "), code, text)
	}

	run("--prod")
	run("now")
	run("--", "ls")
	run("--ui-port", "1")
	run("--dev", "--address", "127.0.0.1:7233")
	run("--dev", "--check")
	run("--dev", "--ui-port", "65536")
	run("--dev", "--data-dir=")
	run("--dev", "--offline-token-delay", "-1s")
	run("--only", "queries")
	run("--task-queue=")
	run("--cached-contexts", "0")
	run("--failover", "1ms")
	run("--idle-close", "-1h")
	run("--drain-timeout", "-1s")
	run("--continue-as-new-after", "10")
	run("--metrics", "9464")
	run("--blob-url", "none")
	run("--attachments-dir", "missing")
	run("--tool-files-root", "missing")
	run("--mcp", "missing.json")
	run("--hooks", "missing.toml")
	run("--hooks", "types.toml")
	run("--titles", "gpt-4o")
	run("--titles", "house/gpt-4o")
	env["GUARD"] = "whsec_" + strings.Repeat("A", 32)
	run("--hooks", "before.toml", "--titles", "openai/gpt-4o")
	delete(env, "GUARD")
	run("--drain-timeout", "soon")
	run("--log-level", "loud")
	run("--allow-base-url", "ftp://host/v1")
	run("--providers", "missing.toml")
	run("--providers", "house.toml")
	run("--providers", "url.toml")
	run("--config", "missing.toml")
	run("--config", "range.toml")
	run("--config", "metrics.toml")
	run("--config", "folder.toml")
	run("--config", "unknown.toml")
	run("--config", "type.toml")
	run("--config", "house-part.toml")
	run("--config", "hooks-part.toml")
	run("--config", "twice.toml")
	env["NATS_URL"] = "nats://me:s3cr3t@nats:4222"
	run("--config", "chronicle.toml", "--print-config", "--json", "--providers", "openai.toml")
	delete(env, "NATS_URL")
	run("--dev", "--config", "chronicle.toml", "--print-config", "--blob-url", "file:///blobs")
	run("--profile", "missing")
	run("--dev", "--data-dir", "occupied")
	env["BLOB_URL"] = "file://./blobs"
	run("--address", "127.0.0.1:1")
	delete(env, "BLOB_URL")
	env["OPENAI_BASE_URL"] = "llm.example.com"
	run()
	env["OPENAI_BASE_URL"] = "https://other.example.com/v1"
	run("--providers", "openai.toml")

	printed.WriteString("===== Banner and ready line of --dev\n\n")
	at := endpoints{natsURL: "nats://127.0.0.1:4222", blobURL: "file:///data/blobs", modelURL: "http://127.0.0.1:1/v1"}
	at.temporal.HostPort = "127.0.0.1:7233"
	at.models.Defaults.Model = "offline-echo"
	printed.WriteString(banner(at, "http://127.0.0.1:8233", "/data", []string{"search_log"}))
	at.modelURL, at.models.Defaults.Model = "", "gpt-4o-mini"
	at.hooks = []hook.Hook{{Name: "pii"}, {Name: "topic"}}
	at.budgets = []activities.LabelBudget{{Label: "team", Value: "support"}, {Label: "user"}}
	printed.WriteString("\n" + banner(at, "http://127.0.0.1:8233", "/data", []string{"fetch", "list_files", "read_file", "search_log"}))
	fmt.Fprintf(&printed, "\n%s\n", readyLine([]zap.Field{zap.String("temporal", "127.0.0.1:7233"), zap.String("model", noModel)}))
	fmt.Fprintf(&printed, "warning: %s\n", unanswerableHelp)
	golden.File(t, want, printed.String())
}
