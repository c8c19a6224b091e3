package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/doctor"
)

// hostile is text that controls a terminal: OSC 0 and 52, CSI in 7 and 8 bits and as C1,
// carriage return, NUL, DEL, NEL, bidirectional controls and separators.
const hostile = "X\x1b]0;title\x07\x1b]52;c;cm0=\x1b\\\x1b[2J\u009b31m\u009d0;t\u009c\r\x00\x08\x7f\u0085\u202e\u2066\u200f\u2028\u2029\U000e0041\x9b5mY"

// hostileJSON is JSON that contains hostile text, escaped only where JSON requires it.
const hostileJSON = `{"X` + "\u009b31m\u202e\x7f\x9b" + `":"` + "\u009d0;t\u009c\u2066\u2028\x9b" + `\u001b]0;t\u0007"}`

func requireHarmless(t *testing.T, text string) {
	t.Helper()
	require.True(t, utf8.ValidString(text), "%q", text)
	for i, r := range text {
		bad := r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 ||
			slices.Contains([]rune("\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"), r) ||
			r >= 0xe0000 && r < 0xe0080
		require.False(t, bad, "%q at byte %d of %q", r, i, text)
	}
}

// poison makes every string in a value hostile.
func poison(v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		v.SetBytes([]byte(hostileJSON))
	case v.Type() == reflect.TypeFor[event.Object]():
		v.SetBytes([]byte(hostileJSON))
	case v.Kind() == reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{hostile: hostile}))
	case v.Type() == reflect.TypeFor[time.Time]():
	case v.Kind() == reflect.String:
		v.SetString(hostile)
	case v.Kind() == reflect.Int || v.Kind() == reflect.Int64:
		v.SetInt(1)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				poison(v.Field(i))
			}
		}
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		poison(v.Elem())
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		poison(v.Index(0))
	}
}

func poisoned[B event.Body]() event.Body {
	var body B
	poison(reflect.ValueOf(&body).Elem())
	return body
}

// poisonedBodies returns a body for each tag and each variant of its text.
func poisonedBodies() (bodies []event.Body) {
	for _, body := range event.Examples() {
		value := reflect.New(reflect.TypeOf(body)).Elem()
		poison(value)
		bodies = append(bodies, value.Interface().(event.Body))
	}
	unnamed := poisoned[event.FileAttachment]().(event.FileAttachment)
	unnamed.FileName = ""
	failed := poisoned[event.ToolResult]().(event.ToolResult)
	failed.IsError = true
	fallback := poisoned[event.SetProviderConfig]().(event.SetProviderConfig)
	fallback.AsFallback = true
	resumed := poisoned[event.SessionStarted]().(event.SessionStarted)
	resumed.ForkedFrom = ""
	return append(bodies, resumed, fallback, event.AssistantMessage{Content: hostile}, failed, unnamed, event.UserMessage{Content: hostile},
		poisoned[event.SessionEnded]())
}

// hostileTurn is a turn with a fallback and hostile text.
func hostileTurn(end event.Body) []event.Body {
	const request = "demo:r0001"
	return []event.Body{
		event.LLMRequestStarted{RequestID: request, ProviderID: hostile, Model: hostile, ThroughEventID: "demo:0001", Attempt: 1},
		event.ReasoningDelta{RequestID: request, Attempt: 1, Delta: hostile},
		event.TextDelta{RequestID: request, Attempt: 1, Index: 1, Delta: hostile},
		event.LLMRequestFellBack{RequestID: request, FromProvider: hostile, ToProvider: hostile, Error: hostile},
		event.TextDelta{RequestID: request, Attempt: 2, Delta: hostile, Reset: true},
		event.AssistantMessage{RequestID: request, Content: hostile + hostile, ThroughEventID: "demo:0001"},
		end,
	}
}

func TestNoOutputControlsTheTerminal(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	hostileName := "a\x1b]0;t\x07\u202e\u009b.txt"
	picture := file(hostileName, hostile)
	logOfAgent := file("agent.jsonl", hostile+"\n{\"type\":\""+hostile+"\"}\n"+hostileJSON+"\n"+
		`{"type":"system","subtype":"init","session_id":"x","model":"\u001b]0;t\u0007"}`+"\n")
	exported := file("log.jsonl", `{"_tag":"UserMessage","content":"\u001b]0;t\u0007"}`+"\n")
	export := file("conversations.json", `[{"title":"\u001b]0;t\u0007","id":"\u001b]0;t\u0007","mapping":{"a":{"message":{"author":{"role":"user"},"content":{"parts":["Hi"]}}}}}]`)
	bad := file(hostileName+".jsonl", `{"_tag":"`+hostile+`"}`)
	completed := poisoned[event.LLMRequestCompleted]().(event.LLMRequestCompleted)
	failed := event.LLMRequestFailed{RequestID: "demo:r0001", Error: hostile, ThroughEventID: "demo:0001"}
	rejected := event.InputRejected{Reason: hostile}
	provider := []string{"--provider", hostile, "--model", hostile, "--base-url", "http://" + hostile, "--api-key-ref", hostile}
	for _, test := range []struct {
		args    []string
		stdin   string
		replies [][]event.Body
		// noLog creates the context without a log.
		noLog bool
	}{
		{args: []string{"events", "-n", "demo"}},
		{args: []string{"events", "-n", "demo", "--from", hostile}},
		{args: []string{"state", "-n", "demo"}},
		{args: []string{"usage", "-n", "demo", "--by", "model"}},
		{args: []string{"list"}},
		{args: []string{"list", "--query", hostile}},
		{args: []string{"search", "-n", "demo", "title"}},
		{args: []string{"search", "-n", "demo", hostile}},
		{args: []string{"search", "--label", hostile, "x"}},
		{args: []string{"export", "-n", "demo"}},
		{args: []string{"export", "-n", "demo", "--format", "openai"}},
		{args: []string{"export", "-n", "demo", "--format", "markdown"}},
		{args: []string{"export", "-n", "demo", "--format", hostile}},
		{args: []string{"export", "-n", "demo", "-o", filepath.Join(dir, hostile, hostile)}},
		{args: []string{"import", "-n", "demo", exported}},
		{args: []string{"import", "-n", "demo", bad}},
		{args: []string{"import", "-n", "demo", export, "--conversation", "\x1b]0;t\x07"}},
		{args: []string{"import", export, "--conversation", hostile}},
		{args: []string{"import", "-n", "demo", filepath.Join(dir, hostile)}},
		{args: []string{"ingest", "-n", "demo", "--format", "claude", logOfAgent}},
		{args: []string{"ingest", "-n", "demo", "--format", "droid", logOfAgent}},
		{args: []string{"ingest", "-n", "demo", "--format", hostile}},
		{args: []string{"verify", "-n", "demo"}},
		{args: []string{"fork", "-n", "demo", "--at", "demo:0002", "--as", "copy"}},
		{args: []string{"fork", "-n", "demo", "--at", hostile, "--as", hostile}},
		{args: []string{"branches", "-n", "demo"}},
		{args: []string{"branches", "-n", "demo", "--compare", "demo"}},
		{args: []string{"details", "-n", "demo"}},
		{args: []string{"details", "-n", "demo", "--title", hostile}},
		{args: []string{"details", "-n", "demo", "--label", "x=" + hostile}, replies: [][]event.Body{{}}},
		{args: []string{"delete", "-n", "demo", "--yes", "--forks", hostile}},
		{args: []string{"interrupt", "-n", "demo"}},
		{args: []string{"close", "-n", "demo", "--reason", hostile}},
		{args: []string{"send", "-n", "demo", "-m", hostile, "--attach", picture}, replies: [][]event.Body{hostileTurn(completed)}, noLog: true},
		{args: []string{"send", "-n", "demo", "-m", "Hi"}, replies: [][]event.Body{hostileTurn(failed)}, noLog: true},
		{args: []string{"send", "-n", "demo", "-m", "Hi"}, replies: [][]event.Body{{rejected}}},
		{args: []string{"send", "-n", "demo", "-m", "Hi", "--no-wait"}, replies: [][]event.Body{{}}},
		{args: []string{"send", "-n", "demo", "--attach", hostile, "-m", "Hi"}},
		{args: []string{"chat"}, stdin: "Hi\n/events\n/state\n/attach " + picture + "\n/attach " + hostile + "\n/" + hostile + "\n/system " + hostile + "\n",
			replies: [][]event.Body{hostileTurn(failed), {rejected}}},
		{args: []string{"script", "-n", "demo", "--deltas"}, stdin: hello + hostile + "\n" + `{"_tag":"` + hostile + `"}` + "\n",
			replies: [][]event.Body{hostileTurn(completed)}, noLog: true},
		{args: append([]string{"set", "provider", "-n", "demo"}, provider...), replies: [][]event.Body{}},
		{args: []string{"set", "provider", "-n", "demo", "--provider", "p", "--model", "m"}, replies: [][]event.Body{{rejected}}},
		{args: []string{"set", "request", "-n", "demo", "--stop", hostile, "--label", "x=" + hostile, "--extra", hostileJSON}, replies: [][]event.Body{{}}},
		{args: []string{"set", "request", "-n", "demo", "--label", hostile}},
		{args: []string{"set", "request", "-n", "demo", "--extra", hostile}},
		{args: []string{"set", "request", "-n", "demo", "--response-schema", hostile}},
		{args: []string{"send", "-n", "demo", "-m", "x", "--settings", hostileJSON}},
		{args: []string{"set", "system", "-n", "demo", hostile}, replies: [][]event.Body{{}}},
		{args: []string{"set", "system", "-n", "demo", "x"}, replies: [][]event.Body{{rejected}}},
		{args: []string{"set", "policy", "-n", "demo", hostile}},
		{args: []string{"set", "compaction", "-n", "demo", hostile}},
		{args: []string{"set", "timeout", "-n", "demo", hostile}},
		{args: []string{"set", "retry", "-n", "demo", "--max-retries", hostile}},
		{args: []string{"rerun", "-n", "demo", "--as", "copy", "--provider", "p", "--model", "m"}},
		{args: append([]string{"rerun", "-n", "demo", "--as", "copy", "--system", hostile}, provider...)},
		{args: []string{"eval", "-n", "demo", "--system", hostile, "--output", filepath.Join(dir, "eval")}},
		{args: append([]string{"eval", "-n", "demo", "--output", hostile}, provider...)},
		{args: []string{"budget", "-n", "demo"}},
		{args: []string{"budget", "-n", "demo", "--tokens", hostile}},
		{args: []string{"budget", "-n", "demo", "--tokens", "1"}, replies: [][]event.Body{{rejected}}},
		{args: []string{"budget", "--label", "x=" + hostile}},
		{args: []string{"budget", "--label", hostile}},
		{args: []string{"tools", "-n", "demo"}},
		{args: []string{"tools", "-n", "demo", hostile}},
		{args: []string{"tools", "-n", "demo", "fetch", "--approve", "x"}, replies: [][]event.Body{{rejected}}},
		{args: []string{"tools", "-n", "demo", "--set", "@" + filepath.Join(dir, hostile)}},
		{args: []string{"approve", "-n", "demo", hostile}},
		{args: []string{"deny", "-n", "demo", "--reason", hostile}},
		{args: []string{"result", "-n", "demo", hostile, hostileJSON}},
		{args: []string{"result", "-n", "demo", "call_1", hostile}},
		{args: []string{"schedule", "-n", "demo", "--cron", hostile, "--timezone", hostile, "-m", hostile, "--id", hostile}},
		{args: []string{"schedule", "-n", "demo", "--every", hostile}},
		{args: []string{"schedule", "list"}},
		{args: []string{"schedule", "pause", "-n", "demo", "--id", hostile}},
		{args: []string{"schedule", "resume", "-n", "demo", "--id", hostile}},
		{args: []string{"schedule", "delete", "-n", "demo", "--id", hostile}},
		{args: []string{"doctor"}},
		{args: []string{"serve", "--listen", hostile}},
		{args: []string{"serve", "--listen", "127.0.0.1:0", "--trust-proxy", hostile}},
		{args: []string{"serve", "--listen", hostile + ":1"}},
		{args: []string{"serve", "--listen", "127.0.0.1:0", "--auth", hostile, "--default-role", hostile}},
		{args: []string{"token", "create", "--subject", hostile, "--role", "read"}},
		{args: []string{"token", "create", "--subject", "ann", "--role", hostile}},
		{args: []string{"token", "create", "--subject", "ann", "--role", "read", "--tenant", hostile}},
		{args: []string{"token", "list", "--tokens", bad}},
		{args: []string{"token", "revoke", hostile, "--tokens", filepath.Join(dir, hostile)}},
		{args: []string{hostile}},
		{args: []string{"list", "--" + hostile}},
		{args: []string{"list", "--address", hostile}},
		{args: []string{"events", "-n", hostile}},
	} {
		for _, mode := range []string{"", "on a terminal", "with errors", "--json"} {
			for _, color := range []bool{false, true} {
				args := test.args
				if mode == "--json" {
					if color || !hasFlag(args, "json") {
						continue
					}
					args = append(slices.Clone(args), mode)
				}
				t.Run(fmt.Sprintf("%s, %s, color %t", strings.ToValidUTF8(strings.Join(args, " "), "?"), mode, color), func(t *testing.T) {
					c := hostileClient(t, test.replies, test.noLog)
					if test.args[0] == "ingest" {
						// The number of inputs depends on how fast the log is read.
						c.context.take = func([]event.Event) error { return nil }
					}
					if mode == "with errors" {
						err := fmt.Errorf("%s: %w", hostile, errors.New(hostile))
						c.context.err, c.context.replies, c.context.take = err, nil, nil
						for _, other := range c.others {
							other.take, other.err = nil, err
						}
					}
					got := runHostile(t, c, mode == "on a terminal", color, test.stdin, args)
					if color && mode == "on a terminal" {
						// Remove the colors of the program itself.
						for _, code := range []string{"1", "2", "31", "33", "0"} {
							got.out = strings.ReplaceAll(got.out, "\x1b["+code+"m", "")
							got.errOut = strings.ReplaceAll(got.errOut, "\x1b["+code+"m", "")
						}
						require.NotContains(t, got.out+got.errOut, "[2J\x1b", "hostile text sets no colors")
					}
					requireHarmless(t, got.out)
					requireHarmless(t, got.errOut)
					require.NotEmpty(t, got.out+got.errOut, "there is output")
					if mode == "--json" || slices.Contains([]string{"script", "export"}, args[0]) && !slices.Contains(args, "markdown") {
						for line := range strings.Lines(got.out) {
							require.True(t, json.Valid([]byte(line)), "%s", line)
						}
					}
				})
			}
		}
	}
	t.Run("covers every command", func(t *testing.T) {
		source, err := os.ReadFile("hostile_test.go")
		require.NoError(t, err)
		for _, command := range leaves(newRootCommand(&app{})) {
			words := strings.Fields(command.CommandPath())[1:]
			require.Contains(t, string(source), `[]string{"`+strings.Join(words, `", "`)+`"`)
		}
	})
}

func leaves(command *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, c := range command.Commands() {
		all = append(all, leaves(c)...)
	}
	if len(all) == 0 {
		all = append(all, command)
	}
	return all
}

func hasFlag(args []string, flag string) bool {
	command, _, err := newRootCommand(&app{}).Find(args)
	return err == nil && (command.Flags().Lookup(flag) != nil || command.InheritedFlags().Lookup(flag) != nil)
}

// hostileClient has a context with hostile text, and an empty one to copy it to.
func hostileClient(t *testing.T, replies [][]event.Body, noLog bool) *fakeClient {
	f := newFake(t, slices.Clone(replies)...)
	if !noLog {
		f.recordBodies(poisonedBodies()...)
	}
	f.evaluate = func(string, client.Evaluation) (client.Evaluated, error) {
		return client.Evaluated{Text: hostile}, f.err
	}
	f.verification = client.Verification{Problems: []client.Problem{{Place: hostile, Text: hostile}}}
	poison(reflect.ValueOf(&f.branches).Elem())
	again := newFakeOf(t, "copy")
	again.missing = true
	again.take = func([]event.Event) error { return nil }
	summary := client.Summary{Turns: 1}
	poison(reflect.ValueOf(&summary).Elem())
	schedule := client.Schedule{ContextName: hostile, ID: hostile, Cron: hostile, Timezone: hostile, Message: event.UserMessage{Content: hostile}}
	return &fakeClient{
		context: f, others: []*fakeContext{again}, list: []client.Summary{summary}, schedules: []client.Schedule{schedule},
	}
}

// hostileFindings has one finding of each severity, from here and from a worker.
func hostileFindings() (findings []doctor.Finding) {
	for _, severity := range []doctor.Severity{doctor.OK, doctor.Warning, doctor.Error, doctor.Skipped, hostile} {
		for _, worker := range []string{"", hostile} {
			findings = append(findings, doctor.Finding{Check: hostile, Worker: worker, Severity: severity, Measured: hostile, Why: hostile, Fix: hostile})
		}
	}
	return findings
}

func runHostile(t *testing.T, c *fakeClient, isTerminal, color bool, stdin string, args []string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if args[0] == "chat" {
		c.context.Rename("chat")
	}
	var out, errOut strings.Builder
	code := execute(ctx, &app{
		streams: streams{in: strings.NewReader(stdin), out: &out, err: &errOut, outTerminal: isTerminal, errTerminal: isTerminal, color: color, width: 60},
		dial:    func(context.Context, client.Config) (contextClient, error) { return c, nil },
		examine: func(context.Context, client.Config, bool) (iter.Seq[doctor.Finding], error) {
			return slices.Values(hostileFindings()), c.context.err
		},
	}, args)
	require.NoError(t, ctx.Err(), "the command exits without a timeout")
	return outcome{code, out.String(), errOut.String()}
}
