package transcript_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer/transcript"
)

// entryOf returns the entry of a call with its result. The working directory is
// /home/ada/app.
func entryOf(t require.TestingT, tool, parameters string, result *event.ToolResult) transcript.Entry {
	p := transcript.NewPatcher()
	p.Apply(logged(t, 1, `{"_tag":"Note","kind":"system","content":"init","cwd":"/home/ada/app"}`))
	call := event.New(event.ToolCall{ToolCallID: "c", ToolName: tool, Parameters: json.RawMessage(parameters)})
	call.ID = "demo:0002"
	p.Apply(call)
	if result != nil {
		answer := event.New(*result)
		answer.ID = "demo:0003"
		p.Apply(answer)
	}
	entries := p.Document().Entries
	require.Len(t, entries, 2)
	return entries[1].Content
}

func TestToolCallsMapToActions(t *testing.T) {
	for _, tc := range []struct{ name, tool, parameters, want string }{
		{"reading a file", "Read", `{"file_path":"/home/ada/app/a.go"}`, `{"action":"file_read","path":"a.go"}`},
		{"reading a file, alternative names", "read_file", `{"path":"/home/ada/app/b/c.go"}`, `{"action":"file_read","path":"b/c.go"}`},
		{"reading a file outside the working directory", "Read", `{"path":"/etc/hosts"}`, `{"action":"file_read","path":"/etc/hosts"}`},
		{"reading a file in a sibling directory with the same prefix", "Read", `{"path":"/home/ada/app2/a.go"}`, `{"action":"file_read","path":"/home/ada/app2/a.go"}`},
		{"listing a directory", "LS", `{"directory_path":"/home/ada/app"}`, `{"action":"file_read","path":"."}`},
		{"listing the working directory", "LS", `{}`, `{"action":"file_read","path":"."}`},
		{"finding files", "Glob", `{"patterns":["*.go","*.md"],"folder":"/home/ada/app/b"}`, `{"action":"search","query":"*.go *.md","path":"b"}`},
		{"searching text", "Grep", `{"pattern":"func main","path":"/home/ada/app"}`, `{"action":"search","query":"func main","path":"."}`},
		{"searching the web", "WebSearch", `{"query":"go generics"}`, `{"action":"search","query":"go generics"}`},
		{"fetching a page", "FetchUrl", `{"url":"https://example.com"}`, `{"action":"web_fetch","url":"https://example.com"}`},
		{"fetching a page with Claude Code", "WebFetch", `{"url":"https://example.com","prompt":"p"}`, `{"action":"web_fetch","url":"https://example.com"}`},
		{"a command", "Execute", `{"command":"ls"}`, `{"action":"command_run","command":"ls"}`},
		{"a command as a list of arguments", "shell", `{"command":["ls","-l"]}`, `{"action":"command_run","command":"ls -l"}`},
		{"a command of Claude Code", "Bash", `{"command":"ls","description":"List"}`, `{"action":"command_run","command":"ls"}`},
		{"a new file", "Create", `{"file_path":"/home/ada/app/a","content":"x\n"}`, `{"action":"file_edit","path":"a","changes":[{"action":"write","content":"x\n"}]}`},
		{"an empty file", "Write", `{"file_path":"a","content":""}`, `{"action":"file_edit","path":"a","changes":[{"action":"write"}]}`},
		{"an edit", "Edit", `{"file_path":"a","old_string":"x","new_string":"y"}`,
			`{"action":"file_edit","path":"a","changes":[{"action":"edit","unified_diff":"--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n"}]}`},
		{"an edit, alternative names", "Edit", `{"path":"a","old_str":"x","new_str":""}`,
			`{"action":"file_edit","path":"a","changes":[{"action":"edit","unified_diff":"--- a\n+++ a\n@@ -1 +0,0 @@\n-x\n"}]}`},
		{"several edits", "MultiEdit", `{"file_path":"a","changes":[{"old_str":"x","new_str":"y"},{"old_str":"1","new_str":"2"}]}`,
			`{"action":"file_edit","path":"a","changes":[{"action":"edit","unified_diff":"--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n"},{"action":"edit","unified_diff":"--- a\n+++ a\n@@ -1 +1 @@\n-1\n+2\n"}]}`},
		{"several edits of Claude Code", "MultiEdit", `{"file_path":"a","edits":[{"old_string":"x","new_string":"y"}]}`,
			`{"action":"file_edit","path":"a","changes":[{"action":"edit","unified_diff":"--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n"}]}`},
		{"a patch of one file", "ApplyPatch", `{"input":"*** Begin Patch\n*** Update File: /home/ada/app/a\n@@\n-x\n+y\n*** End Patch"}`,
			`{"action":"file_edit","path":"a","changes":[{"action":"edit","unified_diff":"--- a\n+++ a\n@@\n-x\n+y\n"}]}`},
		{"a patch that renames a file", "ApplyPatch", `{"input":"*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n-x\n+y\n*** End Patch"}`,
			`{"action":"file_edit","path":"a","changes":[{"action":"rename","to":"b"},{"action":"edit","unified_diff":"--- a\n+++ a\n@@\n-x\n+y\n"}]}`},
		{"a patch of several files", "apply_patch", `{"patch":"*** Begin Patch\n*** Add File: a\n+x\n+y\n*** Delete File: b\n*** End Patch\n"}`,
			`{"action":"file_edit","path":"a","changes":[{"action":"write","path":"a","content":"x\ny\n"},{"action":"delete","path":"b"}]}`},
		{"todos", "TodoWrite", `{"todos":[{"content":"a","status":"completed"},{"content":"b","status":"pending"}]}`,
			`{"action":"todo_management","todos":[{"content":"a","status":"completed"},{"content":"b","status":"pending"}]}`},
		{"todos as lines of text", "TodoWrite", `{"todos":"1. [completed] a\n2. [pending] b\n"}`,
			`{"action":"todo_management","todos":[{"content":"a","status":"completed"},{"content":"b","status":"pending"}]}`},
		{"todos with priorities", "TodoWrite", `{"todos":[{"content":"a","status":"pending","priority":"high"}]}`,
			`{"action":"todo_management","todos":[{"content":"a","status":"pending","priority":"high"}]}`},
		{"a plan with a reason", "ExitSpecMode", `{"plan":"# Do it","reason":"The spec is complete."}`,
			`{"action":"plan_presentation","plan":"# Do it","description":"The spec is complete."}`},
		{"a reason without a plan", "ExitSpecMode", `{"reason":"The spec is complete."}`,
			`{"action":"plan_presentation","description":"The spec is complete."}`},
		{"a plan", "ExitSpecMode", `{"plan":"# Do it"}`, `{"action":"plan_presentation","plan":"# Do it"}`},
		{"a subagent", "Task", `{"description":"Look around","prompt":"p","subagent_type":"x"}`, `{"action":"other","description":"Look around"}`},
		{"an unknown tool", "slack_post_message", `{"text":"hi"}`, `{"action":"tool","arguments":{"text":"hi"}}`},
		{"a tool without parameters", "ping", ``, `{"action":"tool"}`},
		{"a known tool with unknown parameters", "Edit", `{"what":1}`, `{"action":"tool","arguments":{"what":1}}`},
		{"parameters encoded as a string", "Read", `"{\"path\":\"a\"}"`, `{"action":"file_read","path":"a"}`},
		{"parameters other than an object", "Read", `[1]`, `{"action":"tool","arguments":[1]}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := entryOf(t, tc.tool, tc.parameters, nil)
			require.Equal(t, transcript.Created, got.EntryType.Status)
			require.Equal(t, tc.tool, got.EntryType.ToolName)
			require.JSONEq(t, tc.want, marshal(t, got.EntryType.ActionType))
		})
	}
}

func TestTheTitleOfATodoListCountsAllItems(t *testing.T) {
	for todos, want := range map[string]string{
		`[]`:                                     "0 todos",
		`[{"content":"a","status":"completed"}]`: "1 todo",
		`[{"content":"a","status":"completed"},{"content":"b","status":"pending"}]`: "2 todos",
	} {
		require.Equal(t, want, entryOf(t, "TodoWrite", `{"todos":`+todos+`}`, nil).Content)
	}
}

func TestResultsCompleteTheirCalls(t *testing.T) {
	value := func(raw string) event.ToolResult { return event.ToolResult{Value: json.RawMessage(raw)} }
	failed := func(raw string) event.ToolResult { return event.ToolResult{Error: json.RawMessage(raw), IsError: true} }
	const run, edit, patch = `{"command":"x"}`, `{"path":"a","old_str":"x","new_str":"y"}`, `{"input":"*** Begin Patch"}`
	for _, tc := range []struct {
		name, tool, parameters string
		result                 event.ToolResult
		status                 transcript.Status
		want                   string
	}{
		{"a command that succeeds", "Execute", run, value(`"hi\n\n\n[Process exited with code 0]"`), transcript.Success,
			`{"action":"command_run","command":"x","result":{"exit_status":0,"output":"hi"}}`},
		{"a command that fails", "Execute", run, value(`"no\n[Process exited with code 2]"`), transcript.Failed,
			`{"action":"command_run","command":"x","result":{"exit_status":2,"output":"no"}}`},
		{"a command of Claude Code that fails", "Bash", run, event.ToolResult{Value: json.RawMessage(`"Exit code 1\nno"`), IsError: true}, transcript.Failed,
			`{"action":"command_run","command":"x","result":{"exit_status":1,"output":"no"}}`},
		{"a command without output", "Bash", run, value(`""`), transcript.Success,
			`{"action":"command_run","command":"x","result":{"output":""}}`},
		{"a command that times out", "Execute", run, failed(`{"type":"timeout_error","message":"after 60 s"}`), transcript.TimedOut,
			`{"action":"command_run","command":"x","result":{"output":"after 60 s"}}`},
		{"a command without permission", "Execute", run, failed(`{"type":"PermissionDenied","message":"no"}`), transcript.Denied,
			`{"action":"command_run","command":"x","result":{"output":"no"}}`},
		{"reading a file", "Read", `{"path":"a"}`, value(`[{"type":"text","text":"all"},{"type":"text","text":"of it"}]`), transcript.Success,
			`{"action":"file_read","path":"a","result":"all\nof it"}`},
		{"a todo list whose result repeats the call", "TodoWrite", `{"todos":[{"content":"x","status":"pending"}]}`, value(`"the same"`), transcript.Success,
			`{"action":"todo_management","todos":[{"content":"x","status":"pending"}]}`},
		{"reading a missing file", "Read", `{"path":"a"}`, failed(`"no such file"`), transcript.Failed,
			`{"action":"file_read","path":"a","result":"no such file"}`},
		{"searching text", "Grep", `{"pattern":"x"}`, value(`[{"type":"text","text":"a:1"},{"type":"text","text":"b:2"}]`), transcript.Success,
			`{"action":"search","query":"x","result":"a:1\nb:2"}`},
		{"an edit whose result contains the exact diff", "Edit", edit, value(`{"diff":"@@ -7 +7 @@\n-x\n+y"}`), transcript.Success,
			`{"action":"file_edit","path":"a","changes":[{"action":"edit","unified_diff":"@@ -7 +7 @@\n-x\n+y"}]}`},
		{"a patch whose result contains the diff", "ApplyPatch", patch, value(`{"file_path":"/home/ada/app/b","diff":"@@"}`), transcript.Success,
			`{"action":"file_edit","path":"b","changes":[{"action":"edit","unified_diff":"@@"}]}`},
		{"a patch whose result is encoded as a string", "ApplyPatch", patch, value(`"{\"file_path\":\"b\",\"content\":\"new\"}"`), transcript.Success,
			`{"action":"file_edit","path":"b","changes":[{"action":"write","content":"new"}]}`},
		{"a patch whose result is nested in a value", "ApplyPatch", patch, value(`{"success":true,"value":{"file_path":"/home/ada/app/b","diff":"@@"}}`), transcript.Success,
			`{"action":"file_edit","path":"b","changes":[{"action":"edit","unified_diff":"@@"}]}`},
		{"a patch whose nested result is encoded as a string", "ApplyPatch", patch, value(`"{\"value\":\"{\\\"file_path\\\":\\\"b\\\",\\\"content\\\":\\\"new\\\"}\"}"`), transcript.Success,
			`{"action":"file_edit","path":"b","changes":[{"action":"write","content":"new"}]}`},
		{"a patch whose result has a diff besides a value", "ApplyPatch", patch, value(`{"file_path":"b","diff":"@@","value":{"diff":"@@ nested"}}`), transcript.Success,
			`{"action":"file_edit","path":"b","changes":[{"action":"edit","unified_diff":"@@"}]}`},
		{"a patch whose result is nested twice", "ApplyPatch", patch, value(`{"value":{"value":{"diff":"@@"}}}`), transcript.Success,
			`{"action":"file_edit"}`},
		{"a patch that deletes a file", "ApplyPatch", `{"input":"*** Delete File: a"}`, value(`{"file_path":"a","content":""}`), transcript.Success,
			`{"action":"file_edit","path":"a","changes":[{"action":"delete"}]}`},
		{"an unknown tool", "weather", `{"in":"Oslo"}`, value(`{"degrees":-4}`), transcript.Success,
			`{"action":"tool","arguments":{"in":"Oslo"},"result":{"degrees":-4}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.result.ToolCallID = "c"
			got := entryOf(t, tc.tool, tc.parameters, &tc.result)
			require.Equal(t, tc.status, got.EntryType.Status)
			require.JSONEq(t, tc.want, marshal(t, got.EntryType.ActionType))
		})
	}
}

func TestACallCanBePendingApproval(t *testing.T) {
	p := transcript.NewPatcher()
	p.Apply(logged(t, 1, `{"_tag":"ToolCall","toolCallId":"c","toolName":"Execute","parameters":{"command":"rm -r ."},"status":"pending_approval"}`))
	require.Equal(t, transcript.PendingApproval, p.Document().Entries[0].Content.EntryType.Status)
}

func TestMetadataIsBounded(t *testing.T) {
	long := strings.Repeat("é", 10_000)
	metadataOf := func(fields string) map[string]string {
		p := transcript.NewPatcher()
		p.Apply(logged(t, 1, `{"_tag":"UserMessage","content":"Hello",`+fields+`}`))
		raw := p.Document().Entries[0].Content.Metadata
		require.LessOrEqual(t, len(raw), 20<<10)
		got := map[string]string{}
		var values map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(raw, &values))
		for name, value := range values {
			if json.Unmarshal(value, new(string)) == nil {
				var text string
				require.NoError(t, json.Unmarshal(value, &text))
				got[name] = text
				continue
			}
			got[name] = string(value)
		}
		return got
	}
	require.Equal(t, map[string]string{"messageId": "m-1", "usage": `{"input_tokens":3}`},
		metadataOf(`"messageId":"m-1","usage":{"input_tokens":3},"sourceTimestamp":"2026-01-02T15:04:05Z","status":"x"`))

	text := metadataOf(`"line":"` + long + `"`)["line"]
	require.True(t, strings.HasPrefix(text, "éé"))
	require.Regexp(t, `é… \(\d+ bytes omitted\)$`, text)
	require.Less(t, len(text), 5<<10)
	require.Contains(t, metadataOf(`"tools":["` + long + `"]`)["tools"], `["éé`, "the JSON of a long value is a text")
	require.Contains(t, metadataOf(`"line":"` + strings.Repeat(`\u0001`, 10_000) + `"`)["line"], "bytes omitted", "control characters take six bytes each")

	var many []string
	for n := range 10 {
		many = append(many, fmt.Sprintf(`"f%d":"%s"`, n, strings.Repeat("x", 3000)))
	}
	require.Len(t, metadataOf(strings.Join(many, ",")), 5, "fields beyond 16 KiB are omitted")
}

func TestEventsWithoutExtraFieldsHaveNoMetadata(t *testing.T) {
	p := transcript.NewPatcher()
	p.Apply(logged(t, 1, `{"_tag":"UserMessage","content":"Hello"}`))
	p.Apply(logged(t, 2, `{"_tag":"ToolCall","toolCallId":"c","toolName":"x"}`))
	require.NotContains(t, marshal(t, p.Document()), "metadata")
}

func TestExcessWaitingResultsAreDroppedWithAWarning(t *testing.T) {
	p := transcript.NewPatcher()
	for n := 1; n <= transcript.MaxWaiting; n++ {
		require.Empty(t, p.Apply(logged(t, n, fmt.Sprintf(`{"_tag":"ToolResult","toolCallId":"c%d","value":1}`, n))))
	}
	n := transcript.MaxWaiting + 1
	require.Len(t, p.Apply(logged(t, n, `{"_tag":"ToolResult","toolCallId":"another","value":1}`)), 1)
	warning := p.Document().Entries[0].Content
	require.Equal(t, transcript.Warning, warning.EntryType.Level)
	require.Contains(t, warning.Content, `"c1"`)

	p.Apply(logged(t, n+1, `{"_tag":"ToolCall","toolCallId":"c1","toolName":"x"}`))
	p.Apply(logged(t, n+2, `{"_tag":"ToolCall","toolCallId":"c2","toolName":"x"}`))
	entries := p.Document().Entries
	require.Equal(t, transcript.Created, entries[1].Content.EntryType.Status, "its result should have been dropped")
	require.Equal(t, transcript.Success, entries[2].Content.EntryType.Status, "its result should have waited")
}

func TestRecentCallsCanGetAnotherResult(t *testing.T) {
	p := transcript.NewPatcher()
	n := 0
	next := func(line string, args ...any) []transcript.Operation {
		n++
		return p.Apply(logged(t, n, fmt.Sprintf(line, args...)))
	}
	next(`{"_tag":"ToolCall","toolCallId":"slow","toolName":"x"}`)
	const calls = 2*transcript.MaxCalls + 1
	for i := range calls {
		next(`{"_tag":"ToolCall","toolCallId":"c%d","toolName":"x"}`, i)
		next(`{"_tag":"ToolResult","toolCallId":"c%d","value":1}`, i)
	}
	require.Len(t, next(`{"_tag":"ToolResult","toolCallId":"c%d","value":2}`, calls-transcript.MaxCalls), 1)
	require.Empty(t, next(`{"_tag":"ToolResult","toolCallId":"c0","value":2}`), "the result should wait for a new call with the id")
	require.Len(t, next(`{"_tag":"ToolResult","toolCallId":"slow","value":1}`), 1, "open calls should not count")
}

func TestAnEvictedOpenCallStillGetsItsResult(t *testing.T) {
	p := transcript.NewPatcher()
	const calls = transcript.MaxCalls + 1
	for n := 1; n <= calls; n++ {
		p.Apply(logged(t, n, fmt.Sprintf(`{"_tag":"ToolCall","toolCallId":"c%d","toolName":"x"}`, n)))
	}
	require.Equal(t, "/entries/0", p.Apply(logged(t, calls+1, `{"_tag":"ToolResult","toolCallId":"c1","value":1}`))[0].Path)
}

func TestReductionsOfOneStateAreIndependent(t *testing.T) {
	const call, result = `{"_tag":"ToolCall","toolCallId":%q,"toolName":"x"}`, `{"_tag":"ToolResult","toolCallId":%q,"value":1}`
	for _, tc := range []struct{ name, first, second string }{
		{"with calls", call, result},
		{"with waiting results", result, call},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var s transcript.State
			// After three appends the slice has spare capacity.
			for n := 1; n <= 3; n++ {
				s, _ = transcript.Reduce(s, logged(t, n, fmt.Sprintf(tc.first, fmt.Sprint(n))))
			}
			one, _ := transcript.Reduce(s, logged(t, 4, fmt.Sprintf(tc.first, "one")))
			other, _ := transcript.Reduce(s, logged(t, 4, fmt.Sprintf(tc.first, "other")))
			for id, state := range map[string]transcript.State{"one": one, "other": other} {
				_, effects := transcript.Reduce(state, logged(t, 5, fmt.Sprintf(tc.second, id)))
				require.NotEmpty(t, effects)
				require.IsType(t, transcript.UpdateToolStatus{}, effects[len(effects)-1], id)
			}
		})
	}
}

func FuzzTools(f *testing.F) {
	for _, tool := range []string{"Read", "Glob", "Execute", "MultiEdit", "ApplyPatch", "TodoWrite", "weather"} {
		f.Add(tool, `{"path":"/home/ada/app","edits":[{"old_str":"a","new_str":"b"}]}`, `{"diff":"@@"}`)
		f.Add(tool, `{"command":"ls","todos":"1. [x] a"}`, `"a\n[Process exited with code 1]"`)
		f.Add(tool, `{"patch":"*** Add File: a\n+x\n*** Move to: b\n-y\n"}`, `[{"type":"text","text":"a"}]`)
		f.Add(tool, `{"todos":[{}],"pattern":null,"patterns":[1]}`, `{`)
	}
	f.Fuzz(func(t *testing.T, tool, parameters, result string) {
		got := entryOf(t, tool, parameters, &event.ToolResult{ToolCallID: "c", Value: json.RawMessage(result)})
		require.NotEqual(t, transcript.Created, got.EntryType.Status)
		require.NotContains(t, got.Content, "\n")
		require.True(t, json.Valid([]byte(marshal(t, got))))
	})
}
