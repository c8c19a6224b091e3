package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest/golden"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/starter/show"
)

// TestHelp compares the help of all commands with testdata/help.golden, where a flag of several
// commands is described once.
func TestHelp(t *testing.T) {
	var printed strings.Builder
	root := newRootCommand(&app{})
	seen := map[string]bool{}
	for _, command := range append([]*cobra.Command{root}, descendants(root)...) {
		fmt.Fprintf(&printed, "===== %s\n%s\n\n", command.UseLine(), command.Short)
		long := command.Long
		if command != root {
			var ok bool
			long, ok = strings.CutSuffix(long, "\n\n"+exitReference)
			require.True(t, ok, "the help of %s ends with exitReference", command.CommandPath())
		}
		fmt.Fprintf(&printed, "%s\n\n", long)
		if command.Example != "" {
			fmt.Fprintf(&printed, "Examples:\n%s\n\n", command.Example)
		}
		command.LocalFlags().VisitAll(func(f *pflag.Flag) {
			name, usage := pflag.UnquoteUsage(f)
			line := "--" + f.Name
			if f.Shorthand != "" {
				line = "-" + f.Shorthand + ", " + line
			}
			line = "  " + strings.TrimSpace(line+" "+name) + "\n"
			if text := line + "        " + usage + defaultOf(f) + "\n"; !seen[text] {
				seen[text] = true
				line = text
			}
			printed.WriteString(line)
		})
		printed.WriteString("\n")
	}
	golden.File(t, "testdata/help.golden", strings.TrimRight(printed.String(), "\n")+"\n")
}

// descendants returns all commands below a command, in the order of its help.
func descendants(command *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, c := range command.Commands() {
		all = append(append(all, c), descendants(c)...)
	}
	return all
}

// defaultOf formats the default of a flag as pflag does, which prints no zero values.
func defaultOf(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "0", "0s", "false", "[]":
		return ""
	}
	if f.Value.Type() == "string" {
		return fmt.Sprintf(" (default %q)", f.DefValue)
	}
	return fmt.Sprintf(" (default %s)", f.DefValue)
}

// TestMessages compares errors and notes with testdata/messages.golden: each command line, its
// exit code and its output on standard error. Usage errors end with a reference to --help, which
// the file omits.
func TestMessages(t *testing.T) {
	t.Setenv("TEMPORAL_ADDRESS", "")
	dir := t.TempDir()
	t.Chdir(dir)
	write := func(name, content string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	write("empty.txt", "")
	write("address.toml", "address = \"nowhere\"\n")
	write("unknown.toml", "[gateway]\nlisten_on = \"127.0.0.1:8080\"\n")
	write("listen.toml", "[gateway]\nlisten = \"8080\"\n")
	write("log.jsonl", `{"_tag":"UserMessage","content":"Hello"}`+"\n")
	write("broken.jsonl", "{\n")
	write("huge.bin", "")
	require.NoError(t, os.Truncate(filepath.Join(dir, "huge.bin"), event.MaxAttachmentBytes+1))

	var printed strings.Builder
	section := func(title string) { fmt.Fprintf(&printed, "===== %s\n\n", title) }
	run := func(f *fakeContext, stdin string, args ...string) {
		t.Helper()
		got := starter(t, f, stdin, args...)
		line := ""
		for _, arg := range args {
			if arg == "" || strings.ContainsAny(arg, " '") {
				arg = fmt.Sprintf("%q", arg)
			}
			line += " " + arg
		}
		if stdin != "" {
			line += fmt.Sprintf(" <<< %q", stdin)
		}
		errOut := strings.ReplaceAll(got.errOut, dir+string(filepath.Separator), "")
		if got.code == exit.Usage {
			_, command, _ := strings.Cut(errOut, "Run '")
			require.Contains(t, command, " --help' for usage.\n")
			errOut = strings.TrimSuffix(errOut, "Run '"+command)
		}
		fmt.Fprintf(&printed, "$ starter%s [exit %d]\n%s\n", line, got.code, errOut)
	}
	plain := func(args ...string) { t.Helper(); run(newFake(t), "", args...) }

	section("Usage errors")
	plain("frobnicate")
	plain("list", "--frob")
	plain("list", "--address", "nowhere")
	plain("list", "--nats-url", "http://127.0.0.1")
	plain("list", "--config", "address.toml")
	plain("list", "--config", "unknown.toml")
	plain("serve", "--config", "listen.toml")
	plain("list", "extra")
	plain("state")
	plain("state", "-n", "de mo")
	plain("send", "-n", "demo", "-m", "Hello", "--deltas")
	plain("send", "-n", "demo", "-m", "Hello", "--json", "--deltas", "--no-wait")
	plain("send", "-n", "demo", "-m", " ")
	plain("send", "-n", "demo", "-m", "Hello", "--attach", "missing.png")
	plain("send", "-n", "demo", "-m", "Hello", "--attach", "empty.txt")
	plain("send", "-n", "demo", "-m", "Hello", "--attach", "huge.bin")
	plain("send", "-n", "demo", "-m", "Hello", "--attach", ".")
	plain("events", "-n", "demo", "--deltas")
	plain("events", "-n", "demo", "--run", "r", "--follow")
	plain("events", "-n", "demo", "--from", "7")
	plain("set")
	plain("set", "timeout", "-n", "demo")
	plain("set", "timeout", "30", "-n", "demo")
	plain("set", "timeout", "1500us", "-n", "demo")
	plain("set", "timeout", "25h", "-n", "demo")
	plain("set", "timeout", "1s", "-n", "demo", "--first-token", "2s")
	plain("set", "request", "-n", "demo", "--top-p", "2")
	plain("set", "request", "-n", "demo", "--max-tokens", "0")
	plain("set", "request", "-n", "demo", "--reasoning-effort", "huge")
	plain("set", "request", "-n", "demo", "--tool-choice", "")
	plain("set", "request", "-n", "demo", "--parallel-tool-calls=maybe")
	plain("set", "request", "-n", "demo", "--label", "u-17")
	plain("set", "request", "-n", "demo", "--extra", "{")
	plain("set", "request", "-n", "demo", "--extra", `{"model":"m"}`)
	plain("set", "request", "-n", "demo", "--strict")
	plain("set", "request", "-n", "demo", "--response-schema", "missing.json")
	plain("set", "request", "-n", "demo", "--response-schema", "empty.txt", "--json-object")
	plain("set", "request", "-n", "demo", "--response-schema", "empty.txt")
	plain("send", "-n", "demo", "-m", "Hello", "--settings", "seed=7")
	plain("send", "-n", "demo", "-m", "Hello", "--settings", `{"top_p":0.5}`)
	plain("send", "-n", "demo", "-m", "Hello", "--settings", `{"topP":2}`)
	plain("set", "retry", "-n", "demo", "--max-retries", "500")
	plain("set", "retry", "-n", "demo", "--backoff-factor", "0.5")
	plain("set", "retry", "-n", "demo")
	plain("set", "retry", "-n", "demo", "--reset", "--jitter")
	plain("set", "request", "-n", "demo", "--json")
	plain("set", "compaction", "-n", "demo")
	plain("set", "compaction", "truncate", "-n", "demo", "--reset")
	plain("set", "policy", "sometimes", "-n", "demo")
	plain("set", "policy", "-n", "demo")
	plain("set", "policy", "-n", "demo", "--quiet-period", "2m")
	plain("set", "compaction", "forget", "-n", "demo")
	plain("set", "compaction", "truncate", "-n", "demo", "--off")
	plain("set", "compaction", "-n", "demo", "--off", "--trigger", "50")
	plain("set", "compaction", "-n", "demo", "--off", "--target", "50")
	plain("set", "compaction", "truncate", "truncate", "-n", "demo")
	plain("set", "compaction", "-n", "demo", "--trigger", "5")
	plain("set", "compaction", "-n", "demo", "--target", "80")
	plain("set", "provider", "-n", "demo", "--model", "m")
	plain("set", "provider", "-n", "demo", "--provider", "openai", "--model", "m", "--temperature", "3.5")
	plain("set", "provider", "-n", "demo", "--provider", "openai", "--model", "m", "--api-key-ref", "sk-0123456789")
	plain("set", "provider", "-n", "demo", "--provider", "openai", "--model", "m", "--base-url", "ftp://host")
	plain("set", "provider", "-n", "demo", "--default", "--model", "m")
	plain("help", "nosuch")
	plain("help", "set", "nosuch")
	plain("export", "-n", "demo", "--format", "pdf")
	plain("export", "-n", "demo", "-o", ".")
	plain("export", "-n", "demo", "-o", "missing/demo.jsonl")
	plain("export", "-n", "demo", "-o", "missing/")
	plain("export", "-n", "demo", "-o", "log.jsonl/demo.jsonl")
	plain("import", "-n", "demo")
	plain("import", "-n", "demo", "missing.jsonl")
	plain("ingest", "-n", "demo", "--format", "gpt", "log.jsonl")
	plain("ingest", "-n", "demo", "--format", "droid", "missing.jsonl")
	plain("fork", "-n", "demo", "--as", "copy")
	plain("fork", "-n", "demo", "--at", "0012", "--as", "copy")
	plain("fork", "-n", "demo", "--at", "demo:0012", "--as", "demo")
	plain("fork", "-n", "demo", "--at", "demo:0012", "--as", "de mo")
	plain("delete", "-n", "demo")
	plain("delete", "-n", "demo", "--yes", "--forks", "some")
	plain("details", "-n", "demo", "--archive", "--unarchive")
	plain("details", "-n", "demo", "--title", strings.Repeat("x", 201))
	plain("details", "-n", "demo", "--label", "team")
	plain("details", "-n", "demo", "--label", "team=a", "--no-labels")
	plain("details", "-n", "demo", "--owner", "")
	plain("usage", "-n", "demo", "--by", "week")
	plain("eval", "-n", "demo")
	plain("eval", "--provider", "openai", "--model", "m")
	plain("budget", "-n", "demo", "--cost", "abc")
	plain("budget", "-n", "demo", "--cost", "0.0000004")
	plain("budget", "-n", "demo", "--tokens", "0.5")
	plain("budget", "-n", "demo", "--tokens", "99999999999999999999")
	plain("tools", "-n", "demo", "--max-steps", "101", "fetch")
	plain("tools", "-n", "demo", "--max-steps", "2")
	plain("tools", "-n", "demo", "--max-steps", "0")
	plain("tools", "-n", "demo", "--none", "fetch")
	plain("tools", "-n", "demo", "--set", "fetch")
	plain("tools", "-n", "demo", "--set", "@missing.json")
	plain("tools", "-n", "demo", "--client-tool", `"fetch"`)
	plain("tools", "-n", "demo", "--client-tool", `{"name":5}`)
	plain("tools", "-n", "demo", "--client-tool", "garbage")
	plain("tools", "-n", "demo", "--expiry", "3d")
	plain("tools", "-n", "demo", "--max-steps", "many")
	plain("result", "-n", "demo")
	plain("result", "-n", "demo", "call_1")
	plain("result", "-n", "demo", "call_1", "done")
	plain("schedule", "-n", "demo", "-m", "Hi")
	plain("schedule", "-n", "demo", "-m", " ", "--every", "1h")
	plain("schedule", "-n", "demo", "-m", "Hi", "--every", "0s")
	plain("schedule", "-n", "demo", "-m", "Hi", "--every", "10000d")
	plain("schedule", "stop", "-n", "demo")
	plain("schedule", "pause")
	plain("schedule", "list", "-n", "de mo")
	plain("doctor", "now")
	plain("serve", "--listen", "8080")
	plain("serve", "--rate", "NaN")
	plain("serve", "--metrics", "9464")
	plain("--print-config", "--config", "listen.toml")
	plain("ingest", "-n", "demo", "--format", "droid", "a.jsonl", "b.jsonl")
	plain("serve", "--trust-proxy", "proxy.example")
	plain("serve", "--listen", "0.0.0.0:8080")
	plain("serve", "--auth", "password")
	plain("serve", "--auth", "none", "--auth", "tokens")
	plain("serve", "--auth", "oidc", "--oidc-issuer", "https://provider.example")
	plain("serve", "--auth", "oidc", "--oidc-issuer", "http://provider.example", "--oidc-client-id", "chronicle")
	plain("serve", "--auth", "oidc", "--oidc-issuer", "https://provider.example", "--oidc-client-id", "chronicle", "--oidc-claim", "group=x")
	plain("serve", "--auth", "proxy")
	plain("serve", "--auth", "proxy", "--proxy-secret-file", "missing.txt")
	plain("serve", "--auth", "proxy", "--proxy-secret-file", "empty.txt", "--listen", "127.0.0.1:0")
	plain("serve", "--auth", "tokens", "--session-key-file", "log.jsonl", "--listen", "127.0.0.1:0", "--default-role", "owner")
	plain("serve", "--auth", "tokens", "--tokens", "missing.jsonl", "--listen", "127.0.0.1:0")
	plain("serve", "--auth", "tokens", "--tokens", "log.jsonl", "--listen", "127.0.0.1:0")
	plain("serve", "--oidc-issuer", "https://provider.example")
	plain("serve", "--tls-cert", "cert.pem")
	plain("serve", "--tls-cert", "log.jsonl", "--tls-key", "missing.pem", "--listen", "127.0.0.1:0")
	plain("serve", "--tls-cert", "log.jsonl", "--tls-key", "log.jsonl", "--listen", "127.0.0.1:0")
	plain("token", "create", "--role", "write")
	plain("token", "create", "--subject", "ann")
	plain("token", "create", "--subject", "ann", "--role", "owner")
	plain("token", "create", "--subject", "a\nb", "--role", "read")
	plain("token", "create", "--subject", "ann", "--role", "read", "--tenant", "a/b")
	plain("token", "create", "--subject", "ann", "--role", "read", "--expires", "1ms")
	plain("token", "list")
	plain("token", "list", "--tokens", "broken.jsonl")
	plain("token", "revoke")
	plain("token", "revoke", "k2x7abqd")

	section("Failures")
	failing := func(err error, args ...string) {
		t.Helper()
		f := newFake(t)
		f.err = err
		run(f, "", args...)
	}
	failing(client.ErrUnreachable, "state", "-n", "demo")
	failing(fmt.Errorf("get the state of context demo: %w", client.ErrBusy), "state", "-n", "demo")
	failing(client.ErrNoContext, "state", "-n", "demo")
	failing(client.ErrNoWorker, "state", "-n", "demo")
	failing(client.ErrNoSchedule, "schedule", "pause", "-n", "demo")
	failing(&client.ScheduleError{Field: "cron", Problem: `"daily" is invalid: malformed expression`}, "schedule", "-n", "demo", "--cron", "daily", "-m", "Hi")
	failing(client.ErrExists, "import", "-n", "demo", "log.jsonl")
	failing(fmt.Errorf("fork at demo:0012: %w: the log ends at demo:0003, before demo:0012", client.ErrNoEvent), "fork", "-n", "demo", "--at", "demo:0012", "--as", "copy")
	plain("import", "-n", "demo", "broken.jsonl")
	ended := func(body event.Body) {
		t.Helper()
		run(newFake(t, []event.Body{body}), "", "send", "-n", "demo", "-m", "Hello")
	}
	ended(event.LLMRequestInterrupted{Reason: event.ReasonCancelled})
	ended(event.LLMRequestInterrupted{Reason: event.ReasonTimeout})
	ended(event.LLMRequestFailed{Error: "openai: 401", RetriesAttempted: 3})
	ended(event.InputRejected{Reason: "an answer is running"})
	ended(event.SessionEnded{Reason: "closed"})
	ended(event.SystemPrompt{})
	run(newFake(t, nil), "bad\n"+`{"_tag":"UserMessage","content":"Hello"}`+"\n", "script", "-n", "demo")
	run(newFake(t), "/frob\n", "chat", "-n", "demo")
	logged := newFake(t)
	logged.recordBodies(event.SessionStarted{})
	rerun := []string{"rerun", "-n", "demo", "--as", "copy", "--provider", "openai", "--model", "m"}
	run(logged, "", rerun...)
	run(logged, "", append(rerun, "--at", "demo:0007")...)
	waits := newFake(t)
	waits.recordBodies(calling()...)
	run(waits, "", "approve", "-n", "demo", "--arguments", "{}")
	run(waits, "", "approve", "-n", "demo", "call_1", "--arguments", "[]")
	run(waits, "", "deny", "-n", "demo", "call_9")
	run(waits, "", "result", "-n", "demo", "call_1", "7")
	run(logged, "", "approve", "-n", "demo")
	run(logged, "", "result", "-n", "demo", "call_1", "7")
	damaged := newFake(t)
	damaged.verification = client.Verification{Problems: []client.Problem{{Place: "demo:0003", Text: "missing"}}}
	run(damaged, "", "verify", "-n", "demo")

	section("Notes")
	plain("list")
	run(logged, "", "usage", "-n", "demo")
	plain("schedule", "list")
	plain("schedule", "resume", "-n", "demo", "--id", "news")
	plain("interrupt", "-n", "demo")
	answering := newFake(t)
	answering.answering = true
	run(answering, "", "interrupt", "-n", "demo")
	plain("close", "-n", "demo")
	plain("fork", "-n", "demo", "--at", "demo:0012", "--as", "copy")
	plain("delete", "-n", "demo", "--yes")
	plain("import", "-n", "demo", "log.jsonl")
	run(newFake(t, nil), "", "send", "-n", "demo", "-m", "Hello", "--no-wait")
	unrecorded := newFake(t, nil)
	unrecorded.signals = true
	run(unrecorded, "", "send", "-n", "demo", "-m", "Hello", "--no-wait")
	run(newFake(t, nil), "", "set", "timeout", "2m", "-n", "demo")
	fmt.Fprintf(&printed, "%s\n\n", show.NoWorkerYet("contexts"))
	fmt.Fprintf(&printed, "%s\n\n", restarted)

	section("Events")
	factor, temperature, tokens, ms := 2.0, 0.3, 500, int64(20000)
	for _, body := range []event.Body{
		event.SessionStarted{}, event.SessionStarted{LoadedEventCount: 7}, event.SessionStarted{LoadedEventCount: 7, ForkedFrom: "demo:0007"},
		event.SystemPrompt{Content: "Be brief."}, event.SystemPrompt{},
		event.UserMessage{Content: "Hello"}, event.AssistantMessage{Content: "Hi"}, event.AssistantMessage{Content: "H", Partial: true},
		event.FileAttachment{Source: event.Source{Type: event.SourceBlob, Data: []byte("x")}, MediaType: "text/plain", Size: 1},
		event.ToolCall{ToolName: "add", Parameters: []byte(`{"a":1}`)}, event.ToolCall{ToolCallID: "call_1", ToolName: "add", Parameters: []byte(`{"a":1}`), RequestID: "demo:r0001"},
		event.ToolResult{Value: []byte(`2`), DurationMs: 1200}, event.ToolResult{Value: []byte(`2`)}, event.ToolResult{Error: []byte(`"no"`), IsError: true},
		event.Note{Kind: event.NoteWarning, Content: "unknown line"},
		event.SetRetryConfig{MaxRetries: 3, InitialDelayMs: 100, BackoffFactor: &factor, MaxDelayMs: &ms, Jitter: true},
		event.SetProviderConfig{ProviderID: "openai", Model: "gpt-4o", BaseURL: "https://api.openai.com/v1", APIKeyRef: "env:OPENAI_API_KEY", Temperature: &temperature, MaxTokens: &tokens, TextOnly: true},
		event.SetProviderConfig{ProviderID: "ollama", Model: "llama3.2", AsFallback: true},
		event.SetProviderConfig{UseDefault: true}, event.SetProviderConfig{UseDefault: true, AsFallback: true},
		event.SetTimeout{TimeoutMs: 30000, FirstTokenMs: &ms, StallMs: &ms},
		event.SetDeliveryPolicy{Policy: event.PolicyQueue, QuietPeriodMs: &ms, MaxWaitMs: &ms},
		event.SetRequestSettings{Temperature: &temperature, Stop: []string{"END"}}, event.SetRequestSettings{},
		event.SetTools{Tools: event.ToolList{{Pattern: "fetch"}, {Name: "ask"}}, Approve: event.ApprovalRules{{Tool: "fetch"}}}, event.SetTools{},
		event.BudgetSet{Tokens: new(int64(100_000)), CostMicros: new(int64(2_500_000))}, event.BudgetSet{},
		event.SetCompaction{}, event.SetCompaction{Strategies: []event.Strategy{event.StrategyTruncate}, TriggerPercent: new(90), TargetPercent: new(60)},
		event.SetCompaction{Strategies: []event.Strategy{}},
		event.ApprovalDecided{ToolCallID: "call_1", Decision: event.Approve, DecidedBy: "ann", Parameters: []byte(`{"a":1}`)},
		event.ApprovalDecided{Decision: event.Deny, Reason: "not today"},
		event.ToolProgress{ToolCallID: "call_1", Text: "page 3 of 12"},
		event.LLMRequestStarted{RequestID: "demo:r0001", Attempt: 1, ProviderID: "openai", Model: "gpt-4o"},
		event.LLMRequestCompleted{DurationMs: 700, Usage: event.Usage{InputTokens: 6, OutputTokens: 27}, FinishReason: "stop"},
		event.LLMRequestCompleted{DurationMs: 700, FinishReason: "stop", Usage: event.Usage{
			InputTokens: 6, CachedTokens: 4, OutputTokens: 27, ReasoningTokens: 20, CostMicros: new(int64(4200)), PriceVersion: "1",
		}},
		event.LLMRequestInterrupted{Reason: event.ReasonNewUserInput},
		event.LLMRequestInterrupted{Reason: event.ReasonCancelled, Usage: event.Usage{InputTokens: 6, OutputTokens: 2, Estimated: true}},
		event.LLMRequestFailed{Error: "openai: 401", RetriesAttempted: 1},
		event.LLMRequestFailed{Error: "openai: unauthorized (401): no", Kind: event.FailureUnauthorized},
		event.LLMRequestFailed{Error: "openai: quota exceeded (402): no", Kind: event.FailureQuota},
		event.LLMRequestFailed{Error: "openai: context too long (400): 9 of 8 tokens.", Kind: event.FailureContextTooLong},
		event.LLMRequestFailed{Error: "openai: content filter (400): no", Kind: event.FailureContentFilter},
		event.LLMRequestFailed{Error: "hook guard: off topic", Kind: event.FailureRefusedByHook},
		event.LLMRequestFailed{Error: "hook guard: broken: status 404 (want 200 or 204)", Kind: event.FailureHookFailed},
		event.LLMRequestFailed{Error: "hook guard: connection failed", Kind: event.FailureHookFailed, Retryable: true, RetriesAttempted: 3},
		event.LLMRequestFailed{Error: "openai: not found (404): no", Kind: event.FailureModelNotFound},
		event.LLMRequestFailed{Error: "openai: timeout: no token", RetriesAttempted: 1, Kind: event.FailureTimeout, Retryable: true,
			Usage: event.Usage{InputTokens: 9, OutputTokens: 2, Estimated: true}},
		event.LLMRequestFailed{Error: "openai: server error (503): busy", RetriesAttempted: 3, Kind: event.FailureUnavailable, Retryable: true},
		event.BudgetExceeded{Budget: event.BudgetOfContext, Limit: event.Budget{Tokens: new(int64(5000))}, Used: event.Amount{Tokens: 4100},
			Wanted: event.Amount{Tokens: 1200}},
		event.BudgetExceeded{Budget: "team=support", Day: "2026-01-02", Limit: event.Budget{CostMicros: new(int64(2_500_000))},
			Used: event.Amount{CostMicros: 2_499_000}, Wanted: event.Amount{Tokens: 1200, CostMicros: 4000}},
		event.LLMAttemptEnded{Attempt: 1, Outcome: event.AttemptFailed, Error: "openai: server error (503): busy", DurationMs: 700},
		event.LLMAttemptEnded{Attempt: 2, Outcome: event.AttemptHandedBack, Usage: event.Usage{InputTokens: 6, OutputTokens: 2, Estimated: true}},
		event.LLMAttemptEnded{Attempt: 3, Outcome: event.AttemptLost},
		event.LLMAttemptEnded{Attempt: 4, Outcome: event.AttemptToolCalls, DurationMs: 700},
		event.LLMAttemptEnded{Attempt: 5, Outcome: event.AttemptCompacted, DurationMs: 700, Usage: event.Usage{InputTokens: 900, OutputTokens: 60}},
		event.LLMRequestStarted{RequestID: "demo:r0001", Attempt: 5, ProviderID: "openai", Model: "gpt-4o", Purpose: event.PurposeCompaction},
		event.Compacted{RequestID: "demo:r0001", Strategy: event.StrategyDropToolResults, ThroughEventID: "demo:0031", Messages: 12, TokensBefore: 7012,
			Window: 8192, WindowSource: event.WindowConfigured, ProviderID: "openai", Model: "gpt-4o"},
		event.Compacted{RequestID: "demo:r0001", Strategy: event.StrategySummarise, ThroughEventID: "demo:0031", Messages: 12, TokensBefore: 7012,
			Window: 8192, Summary: "The user greets.\nThe city is Paris.", ProviderID: "openai", Model: "gpt-4o"},
		event.LLMRequestFellBack{FromProvider: "openai", ToProvider: "ollama", Error: "openai: 503", RetriesAttempted: 3},
		event.ToolsOffered{Patterns: []string{"fetch", "mcp:files/*"}, Tools: []event.OfferedTool{
			{Name: "fetch"}, {Name: "mcp__files__read", Canonical: "mcp:files/read"}, {Name: "read_result"},
		}},
		event.ToolsOffered{Patterns: []string{"mcp:files/*"}},
		event.ToolsOffered{Patterns: []string{"mcp:files/*"}, Withheld: []event.WithheldTool{{Name: "mcp:files/sum", Reason: "the input schema is of type \"array\""}}},
		event.HookApplied{Hook: "pii", Stage: event.HookBefore, Outcome: event.HookChanged, Reason: "names removed", Change: &event.HookChange{
			Messages: []event.ReplacedMessage{{EventID: "demo:0002", Content: "I am [name]"}}, Settings: &event.RequestSettings{Temperature: &temperature},
		}},
		event.HookApplied{Hook: "guard", Stage: event.HookBeside, Outcome: event.HookRefused, Reason: "off topic"},
		event.HookApplied{Hook: "guard", Stage: event.HookAfter, Outcome: event.HookFailed, Reason: "timeout after 5s"},
		event.InputRejected{Reason: "an answer is running"},
		event.SessionEnded{Reason: "closed"},
	} {
		fmt.Fprintln(&printed, show.Note(body))
	}
	golden.File(t, filepath.Join(testdata, "messages.golden"), printed.String())
}

// testdata is absolute, since TestMessages runs in another directory.
var testdata, _ = filepath.Abs("testdata")
