package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
)

func TestSendShowsTheAnswer(t *testing.T) {
	const request = "demo:r0001"
	delta := func(attempt, index int, text string, reset bool) event.Body {
		return event.TextDelta{RequestID: request, Attempt: attempt, Index: index, Delta: text, Reset: reset}
	}
	whole := func(text string) event.Body {
		return event.AssistantMessage{RequestID: request, Content: text, ThroughEventID: "demo:0001"}
	}
	completed := event.LLMRequestCompleted{RequestID: request}
	for _, test := range []struct {
		name   string
		reply  []event.Body
		code   int
		out    string
		live   string // on a terminal, if not like out
		errOut string
	}{
		{
			name:  "as deltas with a final newline",
			reply: answered(request, 1, "Hel", "lo"),
			out:   "Hello\n",
		}, {
			name:  "from the log without deltas",
			reply: []event.Body{whole("Hello"), completed},
			out:   "Hello\n",
		}, {
			name:  "from the log after a missing delta",
			reply: []event.Body{delta(1, 0, "He", false), delta(1, 2, "o", false), whole("Hello"), completed},
			out:   "Hello\n",
		}, {
			name:  "without joining two attempts",
			reply: []event.Body{delta(1, 0, "Hel", false), delta(2, 0, "Hi", true), whole("Hi"), completed},
			out:   "Hi\n",
			live:  "Hel\n" + restarted + "\nHi\n",
		}, {
			name:   "of the last attempt, of which nothing is left",
			reply:  []event.Body{delta(1, 0, "Hel", false), event.LLMRequestFailed{RequestID: request, Error: "quota"}},
			code:   exit.Failure,
			live:   "Hel\n",
			errOut: "starter: failed: quota\n",
		}, {
			name: "up to its interruption, and exits 130",
			reply: []event.Body{delta(1, 0, "Hel", false),
				event.AssistantMessage{RequestID: request, Content: "Hell", ThroughEventID: "demo:0001", Partial: true},
				event.LLMRequestInterrupted{RequestID: request, PartialResponse: "Hell", Reason: event.ReasonCancelled}},
			code:   exit.Interrupted,
			out:    "Hell\n",
			errOut: "starter: the answer was interrupted: cancelled\n",
		}, {
			name: "and exits 1 on a timeout",
			reply: []event.Body{
				event.LLMRequestInterrupted{RequestID: request, Reason: event.ReasonTimeout}},
			code:   exit.Failure,
			errOut: "starter: the answer was interrupted: timeout\n",
		}, {
			name:   "and exits 1 on a failure",
			reply:  []event.Body{event.LLMRequestFailed{RequestID: request, Error: "quota", RetriesAttempted: 3}},
			code:   exit.Failure,
			errOut: "starter: failed: quota (after 3 retries)\n",
		}, {
			name:   "and exits 1 if the input is rejected",
			reply:  []event.Body{event.InputRejected{Reason: "busy"}},
			code:   exit.Failure,
			errOut: "starter: input rejected: busy\n",
		}, {
			name: "of the fallback with a note on standard error",
			reply: []event.Body{
				event.LLMRequestFellBack{RequestID: request, FromProvider: "a", ToProvider: "b", Error: "401"},
				whole("Hello"), completed},
			out:    "Hello\n",
			errOut: "fell back: from a to b: 401\n",
		}, {
			name:   "that was cut off, with a note on standard error",
			reply:  []event.Body{whole("Hello, my"), event.LLMRequestCompleted{RequestID: request, FinishReason: "length"}},
			out:    "Hello, my\n",
			errOut: "the answer was cut off at the maximum length (raise maxTokens)\n",
		}, {
			name:   "that was filtered, with a note on standard error",
			reply:  []event.Body{delta(1, 0, "Hel", false), whole("Hel"), event.LLMRequestCompleted{RequestID: request, FinishReason: "content_filter"}},
			out:    "Hel\n",
			errOut: "the provider's content filter stopped the answer\n",
		}, {
			name: "without a note on the answer to earlier input",
			reply: []event.Body{
				event.AssistantMessage{RequestID: "demo:r0000", Content: "old", ThroughEventID: "demo:0000"},
				event.LLMRequestCompleted{RequestID: "demo:r0000", FinishReason: "length"},
				whole("new"), completed},
			out: "new\n",
		}, {
			name: "and not the rest of the interrupted answer",
			reply: []event.Body{
				event.TextDelta{RequestID: "demo:r0000", Attempt: 1, Index: 7, Delta: "old"},
				event.AssistantMessage{RequestID: "demo:r0000", Content: "very old", ThroughEventID: "demo:0000", Partial: true},
				event.LLMRequestInterrupted{RequestID: "demo:r0000", Reason: event.ReasonNewUserInput},
				whole("new"), completed},
			out: "new\n",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := starter(t, newFake(t, test.reply), "", "send", "-n", "demo", "-m", "Hi")
			require.Equal(t, outcome{test.code, test.out, test.errOut}, got)
			got = onTerminal(t, &fakeClient{context: newFake(t, test.reply)}, "send", "-n", "demo", "-m", "Hi")
			require.Equal(t, outcome{test.code, cmp.Or(test.live, test.out), test.errOut}, got)
		})
	}
}

func TestSendReadsTheMessageFromFlagOrInput(t *testing.T) {
	for _, test := range []struct {
		name  string
		stdin string
		args  []string
		want  string
	}{
		{"the flag", "not this", []string{"-m", "Hi"}, "Hi"},
		{"standard input without the flag", "two\nlines\n", nil, "two\nlines"},
		{"standard input for a dash", "Hi\r\n", []string{"-m", "-"}, "Hi"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFake(t, answered("demo:r0001", 1, "Hello"))
			got := starter(t, f, test.stdin, append([]string{"send", "-n", "demo"}, test.args...)...)
			require.Zero(t, got.code, got.errOut)
			require.Equal(t, event.UserMessage{Content: test.want}, f.inputs[0][0].Body)
		})
	}
	t.Run("a missing or empty message is a usage error", func(t *testing.T) {
		got := starter(t, newFake(t), " \n", "send", "-n", "demo")
		require.Equal(t, exit.Usage, got.code)
		require.Contains(t, got.errOut, "message: empty (want text or an attachment)")
	})
}

func TestSendPutsAttachmentsBeforeTheMessageInOneInput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "note")
	require.NoError(t, os.WriteFile(file, []byte("some text"), 0o600))
	f := newFake(t, answered("demo:r0001", 3, "Hello"))
	got := starter(t, f, "", "send", "-n", "demo", "-m", "Hi", "--attach", file, "--attach", "https://example.org/cat.png?x=1")
	require.Zero(t, got.code, got.errOut)
	require.Len(t, f.inputs, 1)
	require.Equal(t, event.FileAttachment{
		Source:    event.Source{Type: event.SourceBlob, Data: []byte("some text")},
		MediaType: "text/plain; charset=utf-8", FileName: "note", Size: 9,
	}, f.inputs[0][0].Body)
	require.Equal(t, event.FileAttachment{
		Source:    event.Source{Type: event.SourceURL, URL: "https://example.org/cat.png?x=1"},
		MediaType: "image/png", FileName: "cat.png",
	}, f.inputs[0][1].Body)
	require.Equal(t, event.UserMessage{Content: "Hi"}, f.inputs[0][2].Body)
}

func TestSendRejectsInvalidAttachments(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, size int) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, make([]byte, size), 0o600))
		return path
	}
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, test := range []struct{ name, place, want string }{
		{"that are too large, and names the limit", write("big", event.MaxAttachmentBytes+1), "too large (at most 20971520 bytes)"},
		{"that are empty", write("empty", 0), "the file is empty"},
		{"that are not there", filepath.Join(dir, "none"), "no such file"},
		{"that are folders", dir, "is a directory"},
		{"that are pipes, whose writer might never come", pipe, "is a named pipe"},
		{"that are devices, which might never end", os.DevNull, "is a device"},
		{"with a password in the URL", "https://me:secret@example.org/x", "source.url"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := starter(t, newFake(t), "", "send", "-n", "demo", "-m", "Hi", "--attach", test.place)
			require.Equal(t, exit.Usage, got.code)
			require.Contains(t, got.errOut, test.want)
			require.NotContains(t, got.errOut, "secret")
		})
	}
}

func TestSendAsJSON(t *testing.T) {
	durable := []event.Tag{event.TagUserMessage, event.TagLLMRequestStarted, event.TagAssistantMessage, event.TagLLMRequestCompleted}
	t.Run("prints the recorded events of the turn", func(t *testing.T) {
		got := starter(t, newFake(t, answered("demo:r0001", 1, "<b>")), "", "send", "-n", "demo", "-m", "Hi", "--json")
		require.Zero(t, got.code)
		require.Equal(t, durable, got.tags(t))
		require.Contains(t, got.out, `"content":"<b>"`)
	})
	t.Run("prints deltas in between", func(t *testing.T) {
		got := starter(t, newFake(t, answered("demo:r0001", 1, "a", "b")), "", "send", "-n", "demo", "-m", "Hi", "--json", "--deltas")
		require.Len(t, got.tags(t), len(durable)+2)
	})
	t.Run("prints reasoning with the deltas only", func(t *testing.T) {
		turn := slices.Insert(answered("demo:r0001", 1), 1, event.Body(event.ReasoningDelta{RequestID: "demo:r0001", Attempt: 1, Delta: "Hm"}))
		require.NotContains(t, starter(t, newFake(t, turn), "", "send", "-n", "demo", "-m", "Hi", "--json").tags(t), event.TagReasoningDelta)
		got := starter(t, newFake(t, turn), "", "send", "-n", "demo", "-m", "Hi", "--json", "--deltas")
		require.Contains(t, got.tags(t), event.TagReasoningDelta)
		got = starter(t, newFake(t, turn), "", "send", "-n", "demo", "-m", "Hi")
		require.NotContains(t, got.out+got.errOut, "Hm")
	})
	t.Run("prints the ids without waiting", func(t *testing.T) {
		got := starter(t, newFake(t, []event.Body{}), "", "send", "-n", "demo", "-m", "Hi", "--json", "--no-wait")
		require.Equal(t, outcome{0, `{"contextName":"demo","clientEventIds":["client-0-0"],"eventIds":["demo:0001"]}` + "\n", ""}, got)
	})
	t.Run("has the exit codes of the text output", func(t *testing.T) {
		failed := []event.Body{event.LLMRequestFailed{RequestID: "demo:r0001", Error: "quota"}}
		require.Equal(t, exit.Failure, starter(t, newFake(t, failed), "", "send", "-n", "demo", "-m", "Hi", "--json").code)
	})
}

func TestSendNotesMissingLiveDeltasOnce(t *testing.T) {
	c := &fakeClient{context: newFake(t, answered("demo:r0001", 1, "Hello")), dead: true}
	got := onTerminal(t, c, "send", "-n", "demo", "-m", "Hi")
	require.Equal(t, outcome{0, "Hello\n", "no live deltas (see --nats-url); each answer appears when it is complete\n"}, got)

	c = &fakeClient{context: newFake(t, answered("demo:r0001", 1, "Hello")), dead: true, liveErr: errors.New("refused (do this)")}
	got = onTerminal(t, c, "send", "-n", "demo", "-m", "Hi")
	require.Equal(t, "no live deltas (see --nats-url): refused (do this); each answer appears when it is complete\n", got.errOut)
}

func TestSendSplitsLargeInputs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "long")
	require.NoError(t, os.WriteFile(file, make([]byte, 1<<20), 0o600))
	f := newFake(t, []event.Body{}, answered("demo:r0001", 3, "Hello"))
	got := starter(t, f, "", "send", "-n", "demo", "-m", "Hi", "--attach", file, "--attach", file)
	require.Equal(t, outcome{0, "Hello\n", ""}, got)
	require.Len(t, f.inputs[0], 1)
	require.Len(t, f.inputs[1], 2)
}

func TestWaitingForAWorkerPrintsANotice(t *testing.T) {
	for _, args := range [][]string{
		{"send", "-m", "Hi"}, {"send", "-m", "Hi", "--json"}, {"set", "timeout", "1s"}, {"chat"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t, answered("demo:r0001", 1, "Hello"))
				f.taskQueue = "others"
				told := make(chan struct{})
				f.slow = func() { <-told }
				errOut := &cancelAfter{lines: 1, cancel: func() { close(told) }}
				a := &app{
					streams: streams{in: strings.NewReader("Hi\n"), out: &strings.Builder{}, err: errOut},
					dial:    dialFake(f),
				}
				require.Zero(t, execute(t.Context(), a, append(args, "-n", "demo", "--task-queue", "theirs")))
				require.True(t, strings.HasPrefix(errOut.String(),
					"stored in Temporal; waiting for a worker on task queue others (Ctrl-C stops waiting)\n"), errOut)
			})
		})
	}
}

func TestSendNotesOnASignalHowFarTheTurnCame(t *testing.T) {
	const follow = "follow it with \"starter events -n demo --follow\""
	started := event.LLMRequestStarted{RequestID: "demo:r0001"}
	for want, replies := range map[string][][]event.Body{
		"no worker has recorded the message yet; once Temporal has stored it, the next worker answers it (" + follow + ")":            nil,
		"the message is recorded, and its answer has not begun yet (" + follow + ")":                                                  {{}},
		"the answer continues (" + follow + ", stop it with \"starter interrupt -n demo\")":                                           {{started}},
		"the answer waits for a worker, and continues when one takes it (" + follow + ", stop it with \"starter interrupt -n demo\")": {{started}},
		"the message is recorded, and its answer waits for a worker (" + follow + ")":                                                 {{}},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		f := newFake(t, replies...)
		f.err = context.Canceled
		if strings.Contains(want, "waits for a worker") {
			f.unattended = func() time.Time { return time.Unix(1, 0) }
		}
		got := starterWith(t, ctx, &fakeClient{context: f}, strings.NewReader(""), "send", "-n", "demo", "-m", "Hi")
		require.Equal(t, outcome{exit.Interrupted, "", "stopped waiting; " + want + "\n"}, got)
	}
}

func TestAnAnswerWithoutAWorkerPrintsANotice(t *testing.T) {
	const notice = "waiting for a worker; the turn continues when one takes it (Ctrl-C stops waiting)\n"
	since := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	for name, test := range map[string]struct {
		probes []time.Time // the last one repeats
		want   string
	}{
		"a worker died":                   {[]time.Time{{}, since}, notice},
		"an attempt follows another":      {[]time.Time{since, since.Add(1), {}}, ""},
		"a worker answers, though slowly": {[]time.Time{{}, {}, {}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t, answered("demo:r0001", 1, "Hello"))
				goOn := make(chan struct{})
				errOut := &cancelAfter{lines: 1, cancel: func() { close(goOn) }}
				probes := 0
				f.unattended = func() time.Time {
					select {
					case <-goOn:
						return time.Time{}
					default:
					}
					probes++
					if test.want == "" && probes == len(test.probes) {
						close(goOn)
					}
					return test.probes[min(probes, len(test.probes))-1]
				}
				f.slowAfter = map[int]func(){2: func() { <-goOn }}
				a := &app{streams: streams{out: &strings.Builder{}, err: errOut}, dial: dialFake(f)}
				require.Zero(t, execute(t.Context(), a, []string{"send", "-n", "demo", "-m", "Hi"}))
				require.Equal(t, test.want, errOut.String())
			})
		})
	}
}

// storedInput is the input of a context that no worker has recorded.
func storedInput() client.Waiting {
	return client.Waiting{Since: time.Unix(1, 0), Input: func(context.Context) []event.Event { panic("unexpected read") }}
}

func TestALogSaysThatInputWaitsForAWorker(t *testing.T) {
	const want = "the newest input of context demo is stored in Temporal; waiting for a worker on task queue theirs\n"
	for _, args := range [][]string{{"events"}, {"events", "--json"}, {"events", "--from", "demo:0001"}, {"export"}, {"export", "--format", "openai"}} {
		for _, unrecorded := range []bool{true, false} {
			f := newFake(t)
			f.taskQueue, f.unrecorded = "theirs", unrecorded
			f.recordBodies(event.SessionStarted{})
			f.Wait(storedInput())
			got := starter(t, f, "", append(args, "-n", "demo")...)
			require.Equal(t, exit.OK, got.code)
			require.Equal(t, want, got.errOut, args)
			for _, other := range []client.Waiting{
				{Since: time.Unix(1, 0)},     // a worker does other work
				{Input: storedInput().Input}, // the run was terminated
			} {
				f.Wait(other)
				require.Empty(t, starter(t, f, "", append(args, "-n", "demo")...).errOut, args)
			}
		}
	}
	f := newFake(t)
	f.missing = true
	require.Equal(t, exit.NoContext, starter(t, f, "", "events", "-n", "demo").code)
}

func TestAFollowedLogSaysThatInputWaitsForAWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.recordBodies(event.SessionStarted{})
		f.Wait(storedInput())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		said := make(chan struct{})
		errOut := &cancelAfter{lines: 1, cancel: func() { close(said) }}
		a := &app{streams: streams{out: &strings.Builder{}, err: errOut}, dial: dialFake(f)}
		go func() {
			select {
			case <-said:
			case <-time.After(time.Minute):
			}
			f.Wait(client.Waiting{})
			cancel()
		}()
		require.Equal(t, exit.Interrupted, execute(ctx, a, []string{"events", "-n", "demo", "--follow"}))
		require.Equal(t, "the newest input of context demo is stored in Temporal; waiting for a worker on task queue contexts\n", errOut.String())
	})
}

func TestExitCodes(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		want int
	}{
		{"no such context", client.ErrNoContext, exit.NoContext},
		{"unreachable", client.ErrUnreachable, exit.Unreachable},
		{"no worker", client.ErrNoWorker, exit.Failure},
		{"a bad name", client.ErrName, exit.Usage},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFake(t)
			f.err = test.err
			require.Equal(t, test.want, starter(t, f, "", "interrupt", "-n", "demo").code)
		})
	}
}

func TestSendSetsRequestSettingsForTheMessage(t *testing.T) {
	f := newFake(t, answered("demo:r0001", 1, "7"))
	got := starter(t, f, "", "send", "-n", "demo", "-m", "Hello", "--settings", `{"seed":7,"stop":["END"]}`)
	require.Zero(t, got.code, got.errOut)
	require.Equal(t, event.UserMessage{Content: "Hello", Settings: &event.RequestSettings{
		Seed: new(int64(7)), Stop: []string{"END"},
	}}, f.inputs[0][0].Body)
}

func TestInvalidSettingsAreUsageErrors(t *testing.T) {
	const invalid = `{"type":"json_schema","schema":{"$ref":"#"}}`
	schema := filepath.Join(t.TempDir(), "schema.json")
	require.NoError(t, os.WriteFile(schema, []byte(`{"type":"strin"}`), 0o600))
	send := func(settings string) []string {
		return []string{"send", "-n", "demo", "-m", "Hi", "--settings", settings}
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{send(""), `--settings: not a JSON object (want JSON like {"topP":0.9,"seed":7})`},
		{send("null"), "--settings: not a JSON object"},
		{send("seed=7"), "--settings: not a JSON object"},
		{send(`{"seed":7} {}`), "--settings: not a JSON object"},
		{send(`{"top_p":0.5}`), `--settings: unknown field "top_p" (did you mean "topP"?)`},
		{send(`{"Seed":5}`), `--settings: unknown field "Seed" (did you mean "seed"?)`},
		{send(`{"seed":5,"seed":6}`), `--settings: repeated field "seed"`},
		{send(`{"id":"x"}`), `--settings: unknown field "id"`},
		{send(`{"responseFormat":{"typ":7}}`), `--settings: responseFormat: unknown field "typ" (did you mean "type"?)`},
		{send(`{"_tag":"UserMessage"}`), `--settings: unknown field "_tag"`},
		{send(`{"topP":"0.5"}`), "--settings: topP: want a number, got a string"},
		{send(`{"seed":1.5}`), "--settings: seed: want a whole number, got a number 1.5"},
		{send(`{"stop":"END"}`), "--settings: stop: want a list of strings, got a string"},
		{send(`{"responseFormat":{"type":7}}`), "--settings: responseFormat.type: want a string, got a number"},
		{send(`{"topP":2}`), "--settings: topP: want 0 to 1, got 2"},
		{send(`{"responseFormat":` + invalid + `}`), "responseFormat.schema: invalid JSON Schema: root: the schema refers to itself without an end"},
		{[]string{"set", "request", "-n", "demo", "--response-schema", schema}, "--response-schema: invalid JSON Schema: /type: "},
		{[]string{"tools", "-n", "demo", "--set", `{"toolz":[]}`}, `--set: unknown field "toolz" (did you mean "tools"?)`},
		{[]string{"tools", "-n", "demo", "--set", `{"tools":["a"],"aprove":["*"]}`}, `--set: unknown field "aprove" (did you mean "approve"?)`},
		{[]string{"tools", "-n", "demo", "--set", `{"tools":"a"}`}, `--set: tools: want a list, got a string`},
		{[]string{"tools", "-n", "demo", "--set", `7`}, `--set: want an object, got the number 7`},
		{[]string{"tools", "-n", "demo", "--set", `{"tools":[]}`}, `--set: has no tools (use --none to remove all tools)`},
		{[]string{"tools", "-n", "demo", "--client-tool", `{"name":"ask","schema":{}}`}, `--client-tool: unknown field "schema"`},
		{[]string{"tools", "-n", "demo", "--client-tool", `{"name":"ask","parameters":{"type":5}}`}, "starter tools: tools.0.parameters: invalid JSON Schema: /type: "},
		{[]string{"set", "request", "-n", "demo", "--label", "a=1", "--label", "b=2", "--label", "a=3"}, `--label "a=3": the name is set twice`},
		{[]string{"usage", "-n", ""}, "-n: missing (want the NAME of a context)"},
	} {
		got := starter(t, newFake(t), "", test.args...)
		require.Equal(t, exit.Usage, got.code, test.args)
		require.Contains(t, got.errOut, test.want, test.args)
		require.NotRegexp(t, "json:|Go |unmarshal", got.errOut)
	}
}
