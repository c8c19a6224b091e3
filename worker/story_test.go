package main_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	temporal "go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest/golden"
	"github.com/seed-9ed7edd4/chronicle/internal/tracing"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

// TestTheLogTellsAStory has a conversation with an interruption, a retry, a fallback and a tool call
// that requires an approval, then input without a trace.
func TestTheLogTellsAStory(t *testing.T) {
	t.Parallel()
	const key, password, content = "sk-house-abcdef1234567890", "hunter2hunter2", "xylophone"
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(collector.Close)
	gate := llmtest.NewGate()
	down := llmtest.Error(http.StatusServiceUnavailable, "overloaded", "no capacity; key "+key+", password="+password)
	primary := llmtest.Start(t,
		llmtest.Answer(content, " one").HoldAfter(1, gate),
		llmtest.Answer(content, " two"),
		down, down,
		llmtest.Calls(llmtest.Call{ID: "call_1", Name: "search_log", Arguments: fmt.Sprintf(`{"query":%q}`, content)}),
		llmtest.Answer(content, " four"))
	fallback := llmtest.Start(t, llmtest.Answer(content, " three"))
	file := filepath.Join(t.TempDir(), "chronicle.toml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil,
		"[providers.house]\nbase_url = %q\nkey = \"env:HOUSE_KEY\"\n[providers.spare]\nbase_url = %q\nkey = \"env:HOUSE_KEY\"\n",
		primary.URL, fallback.URL), 0o600))

	args := devArgs(t.TempDir(), "--config", file, "--log-level", "debug")
	worker := prepare(t, append(args, "--json=false")...)
	worker.cmd.Env = append(worker.cmd.Env, "HOUSE_KEY="+key, "OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL)
	log := &watched{changed: make(chan struct{}, 1)}
	worker.cmd.Stderr = log
	worker.start()
	facts := map[string]string{}
	for _, fact := range strings.Fields(worker.line())[1:] {
		name, value, _ := strings.Cut(fact, "=")
		facts[name] = value
	}
	tracers := sdktrace.NewTracerProvider()
	c, err := client.Dial(t.Context(), client.Config{Address: facts["temporal"], NATSURL: facts["nats"], NATSAuth: natsAuth(facts), Tracers: tracers})
	require.NoError(t, err)
	t.Cleanup(c.Shutdown)
	plain, err := temporal.Dial(temporal.Options{HostPort: facts["temporal"], Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	require.NoError(t, err)
	t.Cleanup(plain.Close)
	demo, err := c.Open("demo")
	require.NoError(t, err)
	ask := func(until event.Tag, events ...event.Event) {
		ctx, span := tracing.StartRoot(t.Context(), tracers, trace.SpanKindClient, "ask", "")
		defer span.End()
		for e, err := range demo.Ask(ctx, events...) {
			require.NoError(t, err)
			if e.Tag() == until {
				return
			}
		}
	}
	say := func(text string) event.Event { return event.New(event.UserMessage{Content: content + " " + text}) }

	interrupted := make(chan struct{})
	go func() {
		defer close(interrupted)
		ask("", event.New(event.SetProviderConfig{ProviderID: "house", Model: "large"}),
			event.New(event.SetProviderConfig{ProviderID: "spare", Model: "small", AsFallback: true}),
			event.New(event.SetRetryConfig{MaxRetries: 1, InitialDelayMs: 1}),
			event.New(event.SetTools{Tools: event.ToolList{{Pattern: "search_log"}}, Approve: event.ApprovalRules{{Tool: "*"}}}), say("one"))
	}()
	require.NoError(t, gate.Reached(t.Context()))
	for e, err := range demo.Follow(t.Context(), client.FollowOptions{}) { // the start is recorded a moment later
		require.NoError(t, err)
		if e.Tag() == event.TagLLMRequestStarted {
			break
		}
	}
	ask("", say("two"))
	<-interrupted
	ask("", say("three"))
	ask(event.TagApprovalRequested, say("four"))
	ask("", event.New(event.ApprovalDecided{ToolCallID: "call_1", Decision: event.Approve}))
	for e, err := range demo.Follow(t.Context(), client.FollowOptions{}) {
		require.NoError(t, err)
		if body, ok := e.Body.(event.LLMRequestCompleted); ok && body.RequestID == "demo:r0004" {
			require.NoError(t, plain.SignalWorkflow(t.Context(), wire.WorkflowID("demo"), "", wire.SignalEvent, map[string]string{"_tag": "Nope"}))
			require.NoError(t, plain.SignalWorkflow(t.Context(), wire.WorkflowID("demo"), "", wire.SignalEvent, event.New(event.SetTimeout{TimeoutMs: 60_000})))
			ctx, span := tracing.StartRoot(t.Context(), tracers, trace.SpanKindClient, "close", "")
			require.NoError(t, demo.Close(ctx, "done with "+content))
			span.End()
		}
		if e.Tag() == event.TagSessionEnded {
			break
		}
	}
	log.await(t, "events archived", 1)
	worker.signal(syscall.SIGTERM)
	require.Zero(t, worker.exit(), log.String())

	require.NotContains(t, log.String(), key)
	require.NotContains(t, log.String(), password)
	require.NotContains(t, log.String(), content, "lines contain no messages")
	golden.File(t, "testdata/story.golden", readable(log.String()))
}

var (
	lineOfLog = regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d  (?:INFO|WARN|ERROR)  .*\n`)
	// Checks depend on the machine. The SDK logs its start only if the level of the worker is debug.
	omitted  = regexp.MustCompile(`  doctor: |  INFO  temporal-sdk  `)
	variable = []struct {
		pattern     *regexp.Regexp
		replacement string
	}{
		{regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d`), "TIME"},
		{regexp.MustCompile(`"run": "[0-9a-f-]{36}"`), `"run": "RUN"`},
		{regexp.MustCompile(`"span": "[0-9a-f]{16}"`), `"span": "SPAN"`},
		{regexp.MustCompile(`, "duration_ms": \d+`), ""}, // 0 is omitted
		{regexp.MustCompile(`127\.0\.0\.1:\d+`), "HOST"},
		{regexp.MustCompile(`file://[^"]*`), "URL"},
		{regexp.MustCompile(`"version": "[^"]*"`), `"version": "VERSION"`},
	}
	traceField = regexp.MustCompile(`"trace": "([0-9a-f]{32})"`)
)

// readable returns the lines of a log at level info and above, without what differs between two runs.
func readable(log string) string {
	var b strings.Builder
	for _, line := range lineOfLog.FindAllString(log, -1) {
		if !omitted.MatchString(line) {
			b.WriteString(line)
		}
	}
	text := b.String()
	for _, v := range variable {
		text = v.pattern.ReplaceAllString(text, v.replacement)
	}
	traces := map[string]string{}
	return traceField.ReplaceAllStringFunc(text, func(field string) string {
		if traces[field] == "" {
			traces[field] = fmt.Sprintf(`"trace": "TRACE%d"`, len(traces)+1)
		}
		return traces[field]
	})
}
