package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm"
)

func dialFake(f *fakeContext) func(context.Context, client.Config) (contextClient, error) {
	return func(context.Context, client.Config) (contextClient, error) { return &fakeClient{context: f}, nil }
}

func TestSetSendsTheSettingAndShowsTheRecordedEvent(t *testing.T) {
	pointer := func(n int64) *int64 { return &n }
	half, tokens := 0.5, 100
	schema := filepath.Join(t.TempDir(), "schema.json")
	require.NoError(t, os.WriteFile(schema, []byte("{\n  \"type\": \"object\"\n}\n"), 0o600))
	for _, test := range []struct {
		args string
		want event.Body
		line string
	}{
		{
			"provider --provider openai --model gpt-4o",
			event.SetProviderConfig{ProviderID: "openai", Model: "gpt-4o"},
			"set provider: openai gpt-4o",
		}, {
			"provider --provider p --model m --base-url http://127.0.0.1:1/v1 --api-key-ref env:KEY --temperature 0.5 --max-tokens 100 --text-only --fallback",
			event.SetProviderConfig{
				ProviderID: "p", Model: "m", BaseURL: "http://127.0.0.1:1/v1", APIKeyRef: "env:KEY",
				Temperature: &half, MaxTokens: &tokens, TextOnly: true, AsFallback: true,
			},
			"set fallback: p m at http://127.0.0.1:1/v1, key env:KEY, temperature 0.5, at most 100 tokens, text only",
		}, {
			"provider --default",
			event.SetProviderConfig{UseDefault: true},
			"set provider: the worker's default",
		}, {
			"provider --default --fallback",
			event.SetProviderConfig{UseDefault: true, AsFallback: true},
			"set fallback: none",
		}, {
			"retry --reset",
			event.SetRetryConfig{MaxRetries: 3, InitialDelayMs: 100},
			"set retry: at most 3, first after 100ms",
		}, {
			"request --reset",
			event.SetRequestSettings{},
			"set request: the defaults of the provider",
		}, {
			"request --temperature 0 --max-tokens 100 --top-p 0.5 --stop END --stop , --seed 0 --frequency-penalty -1 --presence-penalty 1 " +
				`--reasoning-effort low --reasoning full --extra {"top_k":40} --label user=u=1 --label team= --response-schema ` + schema + ` --schema-name n --strict`,
			event.SetRequestSettings{
				Temperature: new(0.0), MaxTokens: &tokens, TopP: &half, Stop: []string{"END", ","}, Seed: pointer(0),
				FrequencyPenalty: new(-1.0), PresencePenalty: new(1.0), ReasoningEffort: "low", Reasoning: event.ReasoningFull, Extra: event.Object(`{"top_k":40}`),
				Labels: map[string]string{"user": "u=1", "team": ""},
				ResponseFormat: &event.ResponseFormat{
					Type: event.FormatJSONSchema, Name: "n", Schema: event.Object(`{"type":"object"}`), Strict: true,
				},
			},
			`set request: temperature 0, at most 100 tokens, top_p 0.5, stop at "END", stop at ",", seed 0, frequency penalty -1, ` +
				`presence penalty 1, reasoning effort low, reasoning kept: full, answers in json_schema n, with the fields top_k, label team "", label user "u=1"`,
		}, {
			"request --tool-choice required --parallel-tool-calls=false",
			event.SetRequestSettings{ToolChoice: &event.ToolChoice{Mode: "required"}, ParallelToolCalls: new(false)},
			"set request: tool choice required, parallel tool calls false",
		}, {
			"request --tool-choice mcp:files/read",
			event.SetRequestSettings{ToolChoice: &event.ToolChoice{Name: "mcp:files/read"}},
			"set request: tool choice mcp:files/read",
		}, {
			"request --json-object",
			event.SetRequestSettings{ResponseFormat: &event.ResponseFormat{Type: event.FormatJSONObject}},
			"set request: answers in json_object",
		}, {
			"retry --max-retries 0 --initial-delay 1s --max-delay 1m --backoff-factor 0.5e1 --jitter",
			event.SetRetryConfig{InitialDelayMs: 1000, MaxDelayMs: pointer(60_000), BackoffFactor: new(5.0), Jitter: true},
			"set retry: at most 0, first after 1s, backoff factor 5, max delay 1m0s, with jitter",
		}, {
			"timeout 1m30s",
			event.SetTimeout{TimeoutMs: 90_000},
			"set timeout: 1m30s",
		}, {
			"timeout 90s --first-token 10s --stall 1500ms",
			event.SetTimeout{TimeoutMs: 90_000, FirstTokenMs: pointer(10_000), StallMs: pointer(1500)},
			"set timeout: 1m30s, first token within 10s, stall timeout 1.5s",
		}, {
			"system Briefly.",
			event.SystemPrompt{Content: "Briefly."},
			"system prompt: Briefly.",
		}, {
			"policy queue",
			event.SetDeliveryPolicy{Policy: event.PolicyQueue},
			"set policy: queue",
		}, {
			"policy --quiet-period 0s --max-wait 2s",
			event.SetDeliveryPolicy{QuietPeriodMs: pointer(0), MaxWaitMs: pointer(2000)},
			"set policy: quiet period 0s, maximum wait 2s",
		}, {
			"compaction --reset",
			event.SetCompaction{},
			"set compaction: drop_tool_results, summarise; from 80% to 50% of the window",
		}, {
			"compaction truncate --trigger 90 --target 10",
			event.SetCompaction{Strategies: []event.Strategy{event.StrategyTruncate}, TriggerPercent: new(90), TargetPercent: new(10)},
			"set compaction: truncate; from 90% to 10% of the window",
		}, {
			"compaction --off",
			event.SetCompaction{Strategies: []event.Strategy{}},
			"set compaction: off",
		},
	} {
		t.Run(test.args, func(t *testing.T) {
			args := append([]string{"set", "-n", "demo"}, strings.Fields(test.args)...)
			f := newFake(t, []event.Body{})
			got := starter(t, f, "", args...)
			require.Zero(t, got.code, got.errOut)
			require.Equal(t, test.want, f.inputs[0][0].Body)
			require.Contains(t, got.out, "demo:0001  "+test.line+"\n")

			asJSON := starter(t, newFake(t, []event.Body{}), "", append(args, "--json")...)
			require.Equal(t, []event.Tag{test.want.Tag()}, asJSON.tags(t))
		})
	}
	t.Run("and notes that a worker may lack the provider", func(t *testing.T) {
		for provider, want := range map[string]string{
			"--provider groq": "", "--provider house --base-url https://llm.example/v1": "",
			"--provider nope": "requests fail unless the worker has a provider \"nope\" in its --providers file; without one it has " + strings.Join(presets, ", ") + "\n",
		} {
			f := newFake(t, []event.Body{})
			f.recordBodies(event.SessionStarted{}, event.UserMessage{Content: "Hi"})
			got := starter(t, f, "", strings.Fields("set provider -n demo --model m "+provider)...)
			require.Equal(t, exit.OK, got.code)
			require.Equal(t, want, got.errOut)
		}
		require.Equal(t, llm.Presets(), presets)
	})
	t.Run("and notes that it created the context", func(t *testing.T) {
		require.Equal(t, "created context demo\n", starter(t, newFake(t, []event.Body{}), "", "set", "timeout", "1s", "-n", "demo").errOut)
		f := newFake(t, []event.Body{})
		f.recordBodies(event.SessionStarted{}, event.UserMessage{Content: "Hi"})
		require.Empty(t, starter(t, f, "", "set", "timeout", "1s", "-n", "demo").errOut)
	})
	t.Run("and fails if it is rejected", func(t *testing.T) {
		f := newFake(t, []event.Body{event.InputRejected{Reason: "busy"}})
		got := starter(t, f, "", "set", "timeout", "1s", "-n", "demo")
		require.Equal(t, outcome{exit.Failure, "", "starter: input rejected: busy\n"}, got)
	})
}

func TestEvents(t *testing.T) {
	fill := func(f *fakeContext) *fakeContext {
		f.recordBodies(event.SessionStarted{}, event.UserMessage{Content: "two\nlines"},
			event.TextDelta{RequestID: "demo:r0001", Attempt: 1, Delta: "x"}, event.SessionEnded{Reason: "closed"})
		return f
	}
	t.Run("prints a line for each", func(t *testing.T) {
		got := starter(t, fill(newFake(t)), "", "events", "-n", "demo")
		require.Zero(t, got.code)
		require.Regexp(t, `^2026-01-0[123] \d\d:04:\d\d  demo:0001  session started\n`, got.out)
		require.Contains(t, got.out, "demo:0002  user: two\n    lines\n")
		require.Contains(t, got.out, "demo:0003  session ended: closed\n")
	})
	t.Run("starts after the given event", func(t *testing.T) {
		got := starter(t, fill(newFake(t)), "", "events", "-n", "demo", "--json", "--from", "demo:0002")
		require.Equal(t, []event.Tag{event.TagSessionEnded}, got.tags(t))
		require.Equal(t, outcome{}, starter(t, fill(newFake(t)), "", "events", "-n", "demo", "--from", "demo:0003"))
	})
	t.Run("rejects an id of another context", func(t *testing.T) {
		require.Equal(t, exit.Usage, starter(t, newFake(t), "", "events", "-n", "demo", "--from", "other:0002").code)
	})
	t.Run("rejects an id that the log lacks", func(t *testing.T) {
		for _, args := range [][]string{nil, {"--follow"}} {
			args = append([]string{"events", "-n", "demo", "--from", "demo:0004"}, args...)
			require.Equal(t, outcome{exit.Failure, "", "starter: --from demo:0004: not in the log (it has demo:0001 to demo:0003)\n"},
				starter(t, fill(newFake(t)), "", args...))
		}
	})
	t.Run("exits 3 without a context", func(t *testing.T) {
		f := newFake(t)
		f.missing = true
		require.Equal(t, exit.NoContext, starter(t, f, "", "events", "-n", "demo").code)
		require.Equal(t, exit.NoContext, starter(t, f, "", "events", "-n", "demo", "--from", "demo:0004").code)
	})
	t.Run("follows until a signal, deltas included, and exits 130", func(t *testing.T) {
		f := fill(newFake(t))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		out := &cancelAfter{lines: 4, cancel: cancel}
		a := &app{streams: streams{out: out, err: out}, dial: dialFake(f)}
		code := execute(ctx, a, []string{"events", "-n", "demo", "--follow", "--json", "--deltas"})
		require.Equal(t, exit.Interrupted, code)
		require.Contains(t, out.String(), "TextDeltaEvent")
	})
}

// cancelAfter collects output and cancels after a number of lines.
type cancelAfter struct {
	strings.Builder
	lines  int
	cancel func()
}

func (c *cancelAfter) Write(p []byte) (int, error) {
	if c.lines--; c.lines == 0 {
		c.cancel()
	}
	return c.Builder.Write(p)
}

func TestState(t *testing.T) {
	f := newFake(t)
	f.recordBodies(event.SystemPrompt{Content: "Be\nbrief."}, event.UserMessage{Content: "Hello"})
	t.Run("prints a table", func(t *testing.T) {
		got := starter(t, f, "", "state", "-n", "demo")
		require.Zero(t, got.code)
		for _, row := range []string{
			"context   demo\n", "status    idle\n", "timeout   30s\n", "user      Hello\n", "system    Be brief.\n",
			"retry     at most 3, first after 100ms, backoff factor 2, max delay 1m0s\n",
		} {
			require.Contains(t, got.out, row)
		}
	})
	t.Run("prints usage, tokens and metadata", func(t *testing.T) {
		f := newFake(t)
		f.recordBodies(
			event.SetRequestSettings{Labels: map[string]string{"team": "support", "user": "u-17"}},
			event.UserMessage{Content: "Hello"},
			event.LLMRequestStarted{RequestID: "demo:r0001", ProviderID: "p", Model: "m", Attempt: 1},
			event.LLMRequestCompleted{RequestID: "demo:r0001", Usage: event.Usage{InputTokens: 12, OutputTokens: 3}},
		)
		got := starter(t, f, "", "state", "-n", "demo")
		require.Regexp(t, `(?m)^usage +1 attempt, 12 tokens in, 3 out$`, got.out)
		require.Regexp(t, `(?m)^tokens +15$`, got.out)
		require.Regexp(t, `(?m)^metadata +team "support"\nmetadata +user "u-17"$`, got.out)

		f.recordBodies(
			event.LLMRequestStarted{RequestID: "demo:r0002", ProviderID: "p", Model: "m", Attempt: 1},
			event.LLMAttemptEnded{RequestID: "demo:r0002", Attempt: 1, Outcome: event.AttemptFailed},
			event.Compacted{Strategy: event.StrategyDropToolResults, Window: 20, WindowSource: event.WindowLearned, ProviderID: "p", Model: "m"},
		)
		got = starter(t, f, "", "state", "-n", "demo")
		require.NotContains(t, got.out, "\ntokens", "the size after a compaction is unknown")

		f.recordBodies(
			event.LLMRequestStarted{RequestID: "demo:r0002", ProviderID: "p", Model: "m", Attempt: 2},
			event.LLMRequestCompleted{RequestID: "demo:r0002", Usage: event.Usage{InputTokens: 7, OutputTokens: 2}},
		)
		got = starter(t, f, "", "state", "-n", "demo")
		require.Regexp(t, `(?m)^tokens +9 of a window of 20$`, got.out)
	})
	t.Run("shows the summary that the model receives", func(t *testing.T) {
		f := newFake(t)
		f.recordBodies(event.UserMessage{Content: "Hello"}, event.AssistantMessage{Content: "Hi"}, event.UserMessage{Content: "And?"},
			event.Compacted{Strategy: event.StrategySummarise, ThroughEventID: "demo:0002", Summary: "They greet."}, event.SetCompaction{TriggerPercent: new(90)})
		got := starter(t, f, "", "state", "-n", "demo")
		require.Regexp(t, `user +\[summary\] They greet\.\nuser +And\?\n$`, got.out)
		require.Regexp(t, `compaction +drop_tool_results, summarise; from 90% to 56% of the window\n`, got.out)
	})
	t.Run("prints one line of JSON", func(t *testing.T) {
		got := starter(t, f, "", "state", "-n", "demo", "--json")
		var state wire.State
		require.NoError(t, json.Unmarshal([]byte(got.out), &state))
		require.Equal(t, 2, state.EventCount)
		require.Equal(t, 1, strings.Count(got.out, "\n"))
	})
}

func TestList(t *testing.T) {
	at := time.Date(2026, 1, 2, 15, 4, 5, 0, time.Local)
	c := &fakeClient{list: []client.Summary{
		{ContextName: "earlier", StartedAt: at.Add(-time.Second)},
		{ContextName: "archived", StartedAt: at},
		{ContextName: "demo", Status: wire.StatusIdle, Turns: 7, Model: "m", Title: "Plan of\x1b[31m the trip", StartedAt: at},
	}}
	got := starterWith(t, t.Context(), c, nil, "list", "--query", `ContextTurns > 1`)
	require.Zero(t, got.code)
	require.Equal(t, `ContextTurns > 1`, c.query)
	require.Regexp(t, `(?m)^demo +idle +7 +2026-01-02 16:04:05 +m +Plan of\S+ the trip$\nearlier `, got.out)
	require.NotContains(t, got.out, "\x1b")
	require.NotContains(t, got.out, "archived")

	got = starterWith(t, t.Context(), c, nil, "list", "--archived", "--json")
	require.Contains(t, got.out, `{"contextName":"archived",`)
	require.Equal(t, 1, strings.Count(got.out, "\n"))

	got = starterWith(t, t.Context(), c, nil, "list", "--json")
	require.Contains(t, got.out, `{"contextName":"demo","status":"idle","turns":7,"model":"m",`)
}

func TestInterruptAndCloseSendTheirRequest(t *testing.T) {
	f := newFake(t)
	require.Zero(t, starter(t, f, "", "interrupt", "-n", "demo").code)
	require.Zero(t, starter(t, f, "", "close", "-n", "demo", "--reason", "enough").code)
	require.Equal(t, []string{"interrupt", "close enough"}, f.asked)
}

func TestConnectionFlags(t *testing.T) {
	var got client.Config
	a := &app{dial: func(_ context.Context, config client.Config) (contextClient, error) {
		got = config
		return nil, client.ErrUnreachable
	}}
	a.out, a.err = &strings.Builder{}, &strings.Builder{}
	code := execute(t.Context(), a, []string{"list", "--address", "h:1", "--namespace", "ns", "--nats-url", "none"})
	require.Equal(t, exit.Unreachable, code)
	require.Equal(t, client.Config{Address: "h:1", Namespace: "ns", NATSURL: "none"}, got)
}

func TestChatInAPipe(t *testing.T) {
	t.Run("waits for the turn of each line and prints the answers", func(t *testing.T) {
		f := newFake(t, answered("demo:r0001", 1, "one"), answered("demo:r0002", 5, "two"))
		got := starter(t, f, "first\n\n  second", "chat", "-n", "demo")
		require.Equal(t, outcome{0, "one\ntwo\n", ""}, got)
		require.Equal(t, event.UserMessage{Content: "second"}, f.inputs[1][0].Body)
	})
	t.Run("continues after a failure and exits 1", func(t *testing.T) {
		f := newFake(t, []event.Body{event.LLMRequestFailed{RequestID: "demo:r0001", Error: "quota"}}, answered("demo:r0002", 3, "two"))
		got := starter(t, f, "first\nsecond\n", "chat", "-n", "demo")
		require.Equal(t, exit.Failure, got.code)
		require.Equal(t, "two\n", got.out)
		require.Contains(t, got.errOut, "failed: quota")
	})
	t.Run("attaches files to the next message", func(t *testing.T) {
		f := newFake(t, answered("demo:r0001", 2, "a cat"))
		got := starter(t, f, "/attach https://example.org/cat.png\nWhat is it?\n/quit\nnever sent\n", "chat", "-n", "demo")
		require.Zero(t, got.code, got.errOut)
		require.Len(t, f.inputs[0], 2)
	})
	t.Run("continues after a failed command and exits 1", func(t *testing.T) {
		f := newFake(t, answered("demo:r0001", 1, "one"))
		got := starter(t, f, "/attach missing\n/nonsense\nfirst\n", "chat", "-n", "demo")
		require.Equal(t, exit.Failure, got.code)
		require.Equal(t, "one\n", got.out)
		require.Contains(t, got.errOut, "/attach: attach: stat missing")
		require.Contains(t, got.errOut, "starter: /nonsense: unknown command (/help lists the commands; start a message with // to send a leading slash)\n")
	})
	t.Run("sets the system prompt", func(t *testing.T) {
		f := newFake(t, []event.Body{})
		got := starter(t, f, "/system Be brief.\n", "chat", "-n", "demo")
		require.Equal(t, outcome{}, got)
		require.Equal(t, event.SystemPrompt{Content: "Be brief."}, f.inputs[0][0].Body)
	})
	t.Run("switches contexts", func(t *testing.T) {
		f, trip := newFake(t), newFakeOf(t, "trip", answered("trip:r0001", 2, "Rome"))
		trip.recordBodies(event.SessionStarted{})
		c := &fakeClient{context: f, others: []*fakeContext{trip}, list: []client.Summary{{ContextName: "trip", Status: wire.StatusIdle}}}
		got := starterWith(t, t.Context(), c, strings.NewReader("/switch trip\nWhere to?\n/contexts\n/new trip\n/switch demo\n/switch ä\n/switch\n"), "chat", "-n", "demo")
		require.Equal(t, exit.Failure, got.code)
		require.Contains(t, got.out, "Rome\nCONTEXT  STATUS")
		require.Contains(t, got.errOut, "starter: /new: context trip exists (use /switch trip, or another name)\n")
		require.Contains(t, got.errOut, "starter: /switch: no context demo (use /new demo; /contexts lists the contexts)\n")
		require.Contains(t, got.errOut, "starter: /switch: context \"ä\": a name has ")
		require.Contains(t, got.errOut, "starter: /switch: NAME: missing (/contexts lists the contexts)\n")
		require.Len(t, trip.inputs, 1)
	})
	t.Run("begins a new context", func(t *testing.T) {
		f, trip := newFake(t), newFakeOf(t, "trip", answered("trip:r0001", 1, "Rome"))
		got := starterWith(t, t.Context(), &fakeClient{context: f, others: []*fakeContext{trip}}, strings.NewReader("/new trip\nWhere to?\n"), "chat", "-n", "demo")
		require.Equal(t, outcome{0, "Rome\n", ""}, got)
	})
	t.Run("uses the name chat by default", func(t *testing.T) {
		f := newFake(t)
		f.Rename("chat")
		require.Zero(t, starter(t, f, "", "chat").code)
	})
}

func TestControlCharactersInProviderNamesAreUsageErrors(t *testing.T) {
	for flag, name := range map[string]string{"--model": "m\x1b[2J", "--provider": "p\u202e"} {
		args := []string{"set", "provider", "-n", "demo", "--provider", "p", "--model", "m", flag, name}
		got := starter(t, newFake(t), "", args...)
		require.Equal(t, 2, got.code)
		require.Contains(t, got.errOut, flag+": has a control character")
		require.NotContains(t, got.errOut, name)
	}
}

func TestHelpDescribesEveryPolicy(t *testing.T) {
	for _, policy := range event.Policy("").Values() {
		require.NotEmpty(t, policy.Effect(), policy)
	}
}
