package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

const toolRequest = "demo:r0001"

// calling is a turn with two calls that wait for an approval and one of a client's tool.
func calling() []event.Body {
	expires := time.Date(2026, 1, 3, 15, 4, 0, 0, time.Local)
	call := func(id, tool, parameters string) event.Body {
		return event.ToolCall{ToolCallID: id, MessageID: "demo:0004", ToolName: tool, Parameters: json.RawMessage(parameters), RequestID: toolRequest}
	}
	return []event.Body{
		event.SetTools{Tools: event.ToolList{{Pattern: "pay"}, {Name: "ask_user"}}, Approve: event.ApprovalRules{{Tool: "pay"}}},
		event.UserMessage{Content: "Pay"},
		event.LLMRequestStarted{RequestID: toolRequest, ProviderID: "p", Model: "m", Attempt: 1, ThroughEventID: "demo:0002"},
		event.AssistantMessage{RequestID: toolRequest, Content: "Paying.", ThroughEventID: "demo:0002"},
		call("call_1", "pay", `{"amount":1}`), call("call_2", "pay", `{"amount":2}`), call("call_3", "ask_user", `{"question":"Sure?"}`),
		event.LLMAttemptEnded{RequestID: toolRequest, Attempt: 1, Outcome: event.AttemptToolCalls},
		event.ApprovalRequested{ToolCallID: "call_1", RequestID: toolRequest, ExpiresAt: expires},
		event.ApprovalRequested{ToolCallID: "call_2", RequestID: toolRequest, ExpiresAt: expires},
	}
}

func callingFake(t *testing.T, replies ...[]event.Body) *fakeContext {
	t.Setenv("USER", "ann")
	f := newFake(t, replies...)
	f.recordBodies(calling()...)
	return f
}

func TestApproveAndDeny(t *testing.T) {
	t.Run("decide about all calls that wait, and show them", func(t *testing.T) {
		f := callingFake(t, nil)
		got := starter(t, f, "", "approve", "-n", "demo")
		require.Equal(t, outcome{0, "approved: pay {\"amount\":1} (call_1)\napproved: pay {\"amount\":2} (call_2)\n", ""}, got)
		require.Equal(t, event.ApprovalDecided{ToolCallID: "call_1", Decision: event.Approve, DecidedBy: "ann"}, f.inputs[0][0].Body)
		require.Equal(t, event.ApprovalDecided{ToolCallID: "call_2", Decision: event.Approve, DecidedBy: "ann"}, f.inputs[0][1].Body)
	})
	t.Run("decide about the named call with a reason", func(t *testing.T) {
		f := callingFake(t, nil)
		got := starter(t, f, "", "deny", "-n", "demo", "call_2", "--reason", "Too much.", "--by", "bob")
		require.Equal(t, outcome{0, "denied: pay {\"amount\":2} (call_2)\n", ""}, got)
		require.Equal(t, event.ApprovalDecided{ToolCallID: "call_2", Decision: event.Deny, Reason: "Too much.", DecidedBy: "bob"}, f.inputs[0][0].Body)
	})
	t.Run("show hidden characters", func(t *testing.T) {
		f := newFake(t)
		calls := calling()
		calls[4] = event.ToolCall{ToolCallID: "call_1", ToolName: "pay\u200b", Parameters: json.RawMessage("{\"to\":\"bank\u202eknab\u202c  x\ufe0f\"}"), RequestID: toolRequest}
		f.recordBodies(calls...)
		const shown = `pay\u200b {"to":"bank\u202eknab\u202c  x\ufe0f"} (call_1)`
		require.Contains(t, starter(t, f, "", "tools", "-n", "demo").out, shown)
		require.Contains(t, starter(t, f, "", "events", "-n", "demo").out, shown)
		require.Contains(t, starter(t, f, "", "state", "-n", "demo").out, shown)
		f.replies = [][]event.Body{nil}
		require.Contains(t, starter(t, f, "", "approve", "-n", "demo").out, "approved: "+shown)
	})
	t.Run("replace the arguments", func(t *testing.T) {
		f := callingFake(t, nil)
		got := starter(t, f, `{"amount":3}`, "approve", "-n", "demo", "call_1", "--arguments", "-")
		require.Equal(t, outcome{0, "approved: pay {\"amount\":3} (call_1)\n", ""}, got)
		require.Equal(t, json.RawMessage(`{"amount":3}`), f.inputs[0][0].Body.(event.ApprovalDecided).Parameters)
	})
	t.Run("print the recorded events", func(t *testing.T) {
		got := starter(t, callingFake(t, nil), "", "approve", "-n", "demo", "--json")
		require.Equal(t, []event.Tag{event.TagApprovalDecided, event.TagApprovalDecided}, got.tags(t))
	})
}

func TestResultAnswersAClientsTool(t *testing.T) {
	file := filepath.Join(t.TempDir(), "result.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"answer":"yes"}`), 0o600))
	for _, test := range []struct {
		name, stdin string
		args        []string
		want        event.ToolResult
		line        string
	}{
		{"given as an argument", "", []string{`"yes"`}, event.ToolResult{ToolCallID: "call_3", Value: json.RawMessage(`"yes"`)}, `tool result: "yes"`},
		{"read from a file", "", []string{"@" + file}, event.ToolResult{ToolCallID: "call_3", Value: json.RawMessage(`{"answer":"yes"}`)}, `tool result: {"answer":"yes"}`},
		{"read from standard input", "7\n", []string{"-"}, event.ToolResult{ToolCallID: "call_3", Value: json.RawMessage("7\n")}, "tool result: 7"},
		{"that is an error", "", []string{`"away"`, "--error"}, event.ToolResult{ToolCallID: "call_3", Error: json.RawMessage(`"away"`), IsError: true}, `tool error: "away"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := callingFake(t, nil)
			got := starter(t, f, test.stdin, append([]string{"result", "-n", "demo", "call_3"}, test.args...)...)
			require.Zero(t, got.code, got.errOut)
			require.Contains(t, got.out, "demo:0011  "+test.line+"\n")
			require.Equal(t, test.want, f.inputs[0][0].Body)
		})
	}
}

func TestToolsShowsTheToolsAndTheCallsThatWait(t *testing.T) {
	got := starter(t, callingFake(t), "", "tools", "-n", "demo")
	require.Equal(t, outcome{0, `tool         pay
client tool  ask_user:
approve      pay
limits       16 steps, 4 calls at the same time, at most 2 identical calls per turn, approvals and client results expire after 24h0m0s
approval     pay {"amount":1} (call_1), until 2026-01-03 15:04
approval     pay {"amount":2} (call_2), until 2026-01-03 15:04
client       ask_user {"question":"Sure?"} (call_3)
`, ""}, got)
	f := newFake(t)
	f.recordBodies(event.SessionStarted{}, event.SetTools{Tools: event.ToolList{{Pattern: "mcp:files/*"}}},
		event.ToolsOffered{RequestID: "demo:r0001", Attempt: 1, Patterns: []string{"mcp:files/*"}, Withheld: []event.WithheldTool{{Name: "mcp:files/sum", Reason: "of type array"}}})
	require.Contains(t, starter(t, f, "", "tools", "-n", "demo").out, "not offered  mcp:files/sum: of type array\n")
	require.Contains(t, starter(t, f, "", "tools", "-n", "demo", "--json").out, `"withheld":[{"name":"mcp:files/sum","reason":"of type array"}]`)
	f = newFake(t)
	f.recordBodies(event.SessionStarted{})
	require.Equal(t, outcome{0, "tools  none\n", ""}, starter(t, f, "", "tools", "-n", "demo"))
	f.missing = true
	require.Equal(t, exit.NoContext, starter(t, f, "", "tools", "-n", "demo").code)
}

func TestToolsSetsTheTools(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ask.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"name":"ask_user","description":"Ask","parameters":{"type":"object"}}`), 0o600))
	ask := event.Tool{Name: "ask_user", Description: "Ask", Parameters: event.Object(`{"type":"object"}`)}
	for _, test := range []struct {
		name string
		args []string
		want event.SetTools
		line string
	}{
		{"by name", []string{"fetch", "mcp:files/*", "--approve", "mcp:files/write_*"},
			event.SetTools{Tools: event.ToolList{{Pattern: "fetch"}, {Pattern: "mcp:files/*"}}, Approve: event.ApprovalRules{{Tool: "mcp:files/write_*"}}},
			"set tools: fetch, mcp:files/*; approve mcp:files/write_*"},
		{"of a client, with limits", []string{"--client-tool", "@" + file, "--max-steps", "8", "--parallel", "2", "--max-repeats", "4", "--expiry", "1h"},
			event.SetTools{Tools: event.ToolList{ask}, MaxSteps: new(8), Parallel: new(2), MaxRepeats: new(4), ExpiryMs: new(int64(3_600_000))},
			"set tools: client tool ask_user"},
		{"as an event, with more flags", []string{"--set", `{"tools":["fetch"],"maxSteps":5}`, "--approve", "fetch", "--max-steps", "6"},
			event.SetTools{Tools: event.ToolList{{Pattern: "fetch"}}, Approve: event.ApprovalRules{{Tool: "fetch"}}, MaxSteps: new(6)},
			"set tools: fetch; approve fetch; at most 6 steps"},
		{"none", []string{"--none"}, event.SetTools{}, "set tools: none"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFake(t, nil)
			got := starter(t, f, "", append([]string{"tools", "-n", "demo"}, test.args...)...)
			require.Zero(t, got.code, got.errOut)
			require.Equal(t, test.want, f.inputs[0][0].Body)
			require.Contains(t, got.out, "demo:0001  "+test.line)
		})
	}
}

func TestSendNotesWhatATurnWaitsForOnce(t *testing.T) {
	turn := append(calling()[2:],
		event.ToolResult{ToolCallID: "call_1", Error: json.RawMessage(`"no funds"`), IsError: true},
		event.ToolResult{ToolCallID: "call_2", Value: json.RawMessage(`"ok"`)},
		event.ToolResult{ToolCallID: "call_3", Value: json.RawMessage(`"ok"`)},
		event.LLMRequestStarted{RequestID: toolRequest, ProviderID: "p", Model: "m", Attempt: 2, ThroughEventID: "demo:0013"},
		event.TextDelta{RequestID: toolRequest, Attempt: 2, Delta: "Pai"},
		event.AssistantMessage{RequestID: toolRequest, Content: "Paid.", ThroughEventID: "demo:0013"},
		event.LLMRequestCompleted{RequestID: toolRequest})
	f := newFake(t, turn)
	f.recordBodies(calling()[0])
	f.openCalls = []reducer.Call{{ID: "call_1", Name: "pay"}, {ID: "call_2", Name: "pay"}, {ID: "call_3", Name: "ask_user", Client: true}}
	got := starter(t, f, "", "send", "-n", "demo", "-m", "Pay")
	require.Equal(t, outcome{0, "Paying.\nPaid.\n", `tool call: pay {"amount":1} (call_1)
tool call: pay {"amount":2} (call_2)
waiting for a client: ask_user {"question":"Sure?"} (call_3)
send its result with "starter result -n demo call_3 JSON"
waiting for approval until 2026-01-03 15:04: pay {"amount":1} (call_1)
approve with "starter approve -n demo", deny with "starter deny -n demo"
waiting for approval until 2026-01-03 15:04: pay {"amount":2} (call_2)
tool error: pay: "no funds"
`}, got)
}

func TestSendNotesThatAnApprovedCallWaitsForAClient(t *testing.T) {
	expires := time.Date(2026, 1, 3, 15, 4, 0, 0, time.Local)
	ask := func(id string) event.Body {
		return event.ToolCall{ToolCallID: id, MessageID: "demo:0004", ToolName: "ask_user", Parameters: json.RawMessage(`{"question":"Sure?"}`), RequestID: toolRequest}
	}
	turn := append(calling()[2:4], ask("call_1"), ask("call_2"),
		event.LLMAttemptEnded{RequestID: toolRequest, Attempt: 1, Outcome: event.AttemptToolCalls},
		event.ApprovalRequested{ToolCallID: "call_1", RequestID: toolRequest, ExpiresAt: expires},
		event.ApprovalRequested{ToolCallID: "call_2", RequestID: toolRequest, ExpiresAt: expires},
		event.ApprovalDecided{ToolCallID: "call_2", Decision: event.Deny},
		event.ApprovalDecided{ToolCallID: "call_1", Decision: event.Approve, Parameters: json.RawMessage(`{"question":"Really?"}`)},
		event.ToolResult{ToolCallID: "call_1", Value: json.RawMessage(`"yes"`)},
		event.LLMRequestCompleted{RequestID: toolRequest})
	f := newFake(t, turn)
	f.recordBodies(calling()[0])
	f.openCalls = []reducer.Call{
		{ID: "call_1", Name: "ask_user", Client: true, State: reducer.CallApproval}, {ID: "call_2", Name: "ask_user", Client: true, State: reducer.CallApproval},
	}
	require.Equal(t, `tool call: ask_user {"question":"Sure?"} (call_1)
tool call: ask_user {"question":"Sure?"} (call_2)
waiting for approval until 2026-01-03 15:04: ask_user {"question":"Sure?"} (call_1)
approve with "starter approve -n demo", deny with "starter deny -n demo"
waiting for approval until 2026-01-03 15:04: ask_user {"question":"Sure?"} (call_2)
denied: call_2
approved: call_1, with {"question":"Really?"}
waiting for a client: ask_user {"question":"Really?"} (call_1)
send its result with "starter result -n demo call_1 JSON"
`, starter(t, f, "", "send", "-n", "demo", "-m", "Pay").errOut)
}

func TestSendDoesNotNoteThatAnInvalidCallWaits(t *testing.T) {
	turn := append(calling()[2:4],
		event.ToolCall{ToolCallID: "call_1", MessageID: "demo:0004", ToolName: "ask_user", RequestID: toolRequest},
		event.LLMAttemptEnded{RequestID: toolRequest, Attempt: 1, Outcome: event.AttemptToolCalls},
		event.ToolResult{ToolCallID: "call_1", Error: json.RawMessage(`"invalid arguments: root: missing property 'question'"`), IsError: true},
		event.LLMRequestCompleted{RequestID: toolRequest})
	f := newFake(t, turn)
	f.recordBodies(calling()[0])
	got := starter(t, f, "", "send", "-n", "demo", "-m", "Pay")
	require.Equal(t, `tool call: ask_user (call_1)
tool error: ask_user: "invalid arguments: root: missing property 'question'"
`, got.errOut)
}

func TestAForkHasNoneOfTheOpenCallsOfTheOtherContext(t *testing.T) {
	f := callingFake(t)
	f.Rename("copy")
	require.NotContains(t, starter(t, f, "", "tools", "-n", "copy").out, "call_")
	require.Equal(t, outcome{exit.Failure, "", "starter: context copy: no call waits for an approval\n"}, starter(t, f, "", "approve", "-n", "copy"))
}

func TestStateShowsTheToolsAndTheCallsThatWait(t *testing.T) {
	got := starter(t, callingFake(t), "", "state", "-n", "demo")
	require.Zero(t, got.code)
	require.Regexp(t, `(?m)^tools +pay, client tool ask_user; approve pay$`, got.out)
	require.Regexp(t, `(?m)^approval +pay \{"amount":1\} \(call_1\), until 2026-01-03 15:04$`, got.out)
}

func TestToolsThatNoWorkerHasAreReported(t *testing.T) {
	f := newFake(t)
	f.lacking.Error = `no tool matches "fetchh" (this worker has fetch)`
	require.Equal(t, outcome{exit.Failure, "", "starter: no tool matches \"fetchh\" (this worker has fetch)\n"}, starter(t, f, "", "tools", "-n", "demo", "fetchh"))
	require.Empty(t, f.inputs)

	f = newFake(t, []event.Body{})
	f.lacking.Unmatched = []string{"mcp:files/*"}
	got := starter(t, f, "", "tools", "-n", "demo", "mcp:files/*")
	require.Zero(t, got.code)
	require.Contains(t, got.errOut, "no tool of the worker matches mcp:files/* at present\n")
	require.Len(t, f.inputs, 1)

	f = newFake(t, []event.Body{})
	f.checkErr = client.ErrNoWorker
	got = starter(t, f, "", "tools", "-n", "demo", "fetch")
	require.Zero(t, got.code)
	require.Contains(t, got.errOut, "cannot look for the tools: no worker responds (start one, or retry later if they are busy)\n")

	f = newFake(t, []event.Body{})
	f.checkErr = errors.New("unexpected check")
	require.NotContains(t, starter(t, f, "", "tools", "-n", "demo", "--client-tool", `{"name":"ask"}`).errOut, "check")
}
