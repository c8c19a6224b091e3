package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
)

// asked returns a client with a context that has two questions, and the empty context in which
// a rerun repeats them.
func asked(t *testing.T, replies ...[]event.Body) (*fakeClient, *fakeContext) {
	old := newFake(t)
	old.recordBodies(event.SystemPrompt{Content: "Be brief."}, event.SetProviderConfig{ProviderID: "p", Model: "m"}, event.SetTimeout{TimeoutMs: 7},
		event.FileAttachment{Source: event.Source{Type: event.SourceURL, URL: "https://example.com/a.png"}, MediaType: "image/png"},
		event.UserMessage{Content: "What is it?"})
	old.recordBodies(answered("demo:r0001", 5, "A cat.")...)
	old.recordBodies(event.UserMessage{Content: "Which | one?"}, event.LLMRequestFailed{RequestID: "demo:r0002", Error: "quota", ThroughEventID: "demo:0009"})
	again := newFake(t, replies...)
	again.Rename("copy")
	again.missing = true
	return &fakeClient{context: old, others: []*fakeContext{again}}, again
}

var rerunArgs = []string{"rerun", "-n", "demo", "--as", "copy", "--provider", "q", "--model", "n"}

func TestRerunRepeatsMessagesWithOtherSettings(t *testing.T) {
	c, again := asked(t, answered("copy:r0001", 5, "A cat."), answered("copy:r0002", 9, "That one."))
	got := starterWith(t, t.Context(), c, strings.NewReader(""), rerunArgs...)
	require.Equal(t, outcome{0, `| turn | question | demo | copy |
|---|---|---|---|
| 1 | [attachment: https://example.com/a.png (image/png)]<br>What is it? | A cat.<br>[5ms] | A cat.<br>[5ms] |
| 2 | Which \| one? | [failed: quota] | That one.<br>[5ms] |

turns: 2, identical answers: 1, not answered: 0
demo: 5ms
copy: 10ms
`, ""}, got)
	var sent []event.Body
	for _, e := range again.inputs[0] {
		sent = append(sent, e.Body)
	}
	require.Equal(t, []event.Body{
		event.SetProviderConfig{ProviderID: "q", Model: "n"}, event.SystemPrompt{Content: "Be brief."}, event.SetTimeout{TimeoutMs: 7},
		event.FileAttachment{Source: event.Source{Type: event.SourceURL, URL: "https://example.com/a.png"}, MediaType: "image/png"},
		event.UserMessage{Content: "What is it?"},
	}, sent)
	require.Len(t, again.inputs[1], 1)
}

func TestOnlyTheRejectionOfItsOwnInputEndsATurnOfARerun(t *testing.T) {
	rejection := event.InputRejected{Reason: "too long"}
	answer := answered("copy:r0001", 5, "A cat.")
	c, _ := asked(t, slices.Insert(answer, 1, event.Body(rejection)), []event.Body{rejection})
	got := starterWith(t, t.Context(), c, strings.NewReader(""), rerunArgs...)
	require.Equal(t, exit.Failure, got.code, got)
	require.Contains(t, got.out, "What is it? | A cat.<br>[5ms] | A cat.<br>[5ms] |\n")
	require.Contains(t, got.out, "Which \\| one? | [failed: quota] | [input rejected: too long] |\n")
}

func TestARerunHasNoTools(t *testing.T) {
	old := newFake(t)
	old.recordBodies(event.SetTools{Tools: event.ToolList{{Pattern: "fetch"}}}, event.UserMessage{Content: "Hello"})
	old.recordBodies(answered("demo:r0001", 3, "Hi.")...)
	again := newFake(t, answered("copy:r0001", 3, "Hi."))
	again.Rename("copy")
	again.missing = true
	got := starterWith(t, t.Context(), &fakeClient{context: old, others: []*fakeContext{again}}, strings.NewReader(""), rerunArgs...)
	require.Zero(t, got.code, got)
	for _, e := range again.inputs[0] {
		require.NotEqual(t, event.TagSetTools, e.Tag())
	}
}

func TestRerunStopsAtTheEventAndReplacesTheSystemPrompt(t *testing.T) {
	c, again := asked(t, []event.Body{event.LLMRequestFailed{RequestID: "copy:r0001", Error: "quota", ThroughEventID: "copy:0005"}})
	got := starterWith(t, t.Context(), c, strings.NewReader(""), append(rerunArgs, "--at", "demo:0005", "--system", "Be kind.", "--json")...)
	require.Equal(t, outcome{exit.Failure,
		`{"turn":1,"question":"[attachment: https://example.com/a.png (image/png)]\nWhat is it?","old":{"answer":"A cat.","durationMs":5},"new":{"answer":"","problem":"failed: quota"}}` + "\n" +
			`{"turns":1,"same":0,"failed":1,"old":{"answer":"","durationMs":5},"new":{"answer":""}}` + "\n",
		"starter: rerun: 1 of 1 message was not answered\n"}, got)
	require.Equal(t, event.SystemPrompt{Content: "Be kind."}, again.inputs[0][1].Body)
	require.Equal(t, event.TagSetTimeout, again.inputs[0][2].Tag())
}

func TestRerunPrintsTwoColumnsOnATerminal(t *testing.T) {
	c, _ := asked(t, answered("copy:r0001", 5, "It is a cat."))
	var out bytes.Buffer
	a := &app{streams: streams{out: &out, err: &out, outTerminal: true, width: 23}, dial: c.dial}
	require.Zero(t, execute(t.Context(), a, append(rerunArgs, "--at", "demo:0005")), out.String())
	require.Contains(t, out.String(), "A cat.     │ It is a\n[5ms]      │ cat.\n           │ [5ms]\n")
}

func TestRerunRejectsInvalidArguments(t *testing.T) {
	c, again := asked(t)
	for _, test := range []struct {
		args []string
		code int
		text string
	}{
		{[]string{"rerun", "-n", "demo", "--as", "copy", "--model", "m"}, exit.Usage, "--provider: missing"},
		{append(rerunArgs, "--as", "demo"), exit.Usage, "want the name of a new context"},
		{append(rerunArgs, "--at", "other:0001"), exit.Usage, "--at"},
		{append(rerunArgs, "--at", "demo:0099"), exit.Failure, "beyond the end of the log, demo:0010 (list the events with"},
		{append(rerunArgs, "--at", "demo:0003"), exit.Failure, "rerun context demo: it has no user message to answer"},
	} {
		got := starterWith(t, t.Context(), c, strings.NewReader(""), test.args...)
		require.Equal(t, test.code, got.code, test.args)
		require.Contains(t, got.errOut, test.text)
	}
	again.missing = false
	again.recordBodies(event.SessionStarted{})
	got := starterWith(t, t.Context(), c, strings.NewReader(""), rerunArgs...)
	require.Contains(t, got.errOut, "rerun as context copy: "+client.ErrExists.Error())
	require.Empty(t, again.inputs)
}

func TestMessagesAnsweredTogetherShareAReply(t *testing.T) {
	f := newFake(t)
	f.recordBodies(event.UserMessage{Content: "One"}, event.UserMessage{Content: "Two"})
	f.recordBodies(answered("demo:r0001", 2, "Both.")...)
	f.recordBodies(event.UserMessage{Content: "Three"}, event.AssistantMessage{RequestID: "demo:r0002", Content: "Th", Partial: true, ThroughEventID: "demo:0006"},
		event.LLMRequestInterrupted{RequestID: "demo:r0002", Reason: event.ReasonCancelled},
		event.UserMessage{Content: "Four"}, event.AssistantMessage{Content: "Imported."}, event.UserMessage{Content: "Five"})
	both := reply{Answer: "Both.", DurationMs: 5}
	var got []reply
	for _, q := range questionsOf(f.all(), func(event.Body) bool { return false }, 0) {
		got = append(got, q.reply)
	}
	require.Equal(t, []reply{both, both, {Answer: "Th", Problem: "interrupted: cancelled"}, {Answer: "Imported."}, {Problem: "no answer"}}, got)
}

func TestAFailedRequestIsTheReplyToItsMessages(t *testing.T) {
	started := func(request, through int) event.Body {
		return event.LLMRequestStarted{RequestID: event.FormatRequestID("demo", request), ThroughEventID: event.FormatID("demo", through), Attempt: 1}
	}
	f := newFake(t)
	f.recordBodies(event.UserMessage{Content: "One"}, started(1, 1), event.LLMRequestFailed{RequestID: "demo:r0001", Error: "quota"},
		event.UserMessage{Content: "Two"}, started(2, 4), event.LLMRequestInterrupted{RequestID: "demo:r0002", Reason: event.ReasonNewUserInput},
		event.UserMessage{Content: "Three"})
	f.recordBodies(answered("demo:r0003", 7, "Both.")...)
	both := reply{Answer: "Both.", DurationMs: 5}
	var got []reply
	for _, q := range questionsOf(f.all(), func(event.Body) bool { return false }, 0) {
		got = append(got, q.reply)
	}
	require.Equal(t, []reply{{Problem: "failed: quota"}, both, both}, got)
}
