package reducer_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// callingWith returns a session in PhaseCalling, or after it, and the effects of the answer.
func callingWith(t *testing.T, tools event.SetTools, calls ...reducer.CalledTool) (reducer.Session, []reducer.Effect) {
	t.Helper()
	s, _ := reducer.Step(reducer.NewSession("demo"), reducer.Opened{At: eventtest.Epoch})
	s, _ = reducer.Step(s, reducer.Received{At: eventtest.Epoch, Events: []event.Event{
		event.New(tools), event.New(event.UserMessage{Content: "Hello", Settings: &event.RequestSettings{Seed: new(int64(7))}}),
	}})
	return answerWith(s, calls...)
}

// answerWith ends the next attempt with calls.
func answerWith(s reducer.Session, calls ...reducer.CalledTool) (reducer.Session, []reducer.Effect) {
	return reducer.Step(s, endOf(s, reducer.AttemptEnded{Outcome: reducer.Called, Calls: calls}))
}

func fetch(n int) reducer.CalledTool {
	return reducer.CalledTool{ID: fmt.Sprintf("c%d", n), Name: "fetch", Arguments: fmt.Appendf(nil, `{"n":%d}`, n)}
}

func TestAToolChoiceAppliesToTheFirstStep(t *testing.T) {
	for name, test := range map[string]struct {
		set, second, last string
	}{
		"a required tool": {"required", "", "none"},
		"none":            {"none", "none", "none"},
		"auto":            {"auto", "", "none"},
		"unset":           {"", "", "none"},
	} {
		t.Run(name, func(t *testing.T) {
			choice := func(s reducer.Session) string {
				if c := reducer.SettingsOf(s).ToolChoice; c != nil {
					return c.Mode
				}
				return ""
			}
			s, _ := reducer.Step(reducer.NewSession("demo"), reducer.Opened{At: eventtest.Epoch})
			events := []event.Event{event.New(event.SetTools{Tools: event.ToolList{{Pattern: "fetch"}}, MaxSteps: new(2)})}
			if test.set != "" {
				events = append(events, event.New(event.SetRequestSettings{ToolChoice: &event.ToolChoice{Mode: test.set}}))
			}
			s, _ = reducer.Step(s, reducer.Received{At: eventtest.Epoch, Events: append(events, event.New(event.UserMessage{Content: "Hello"}))})
			require.Equal(t, test.set, choice(s))
			for _, want := range []string{test.second, test.last} {
				s, _ = answerWith(s, fetch(s.EventCount))
				s, _ = reducer.Step(s, reducer.ToolEnded{At: eventtest.Epoch, RequestID: s.Request.ID, CallID: s.Request.Calls[0].ID, Outcome: reducer.CallReturned})
				require.Equal(t, want, choice(s), "%d steps", s.Request.Steps)
				require.Equal(t, want, choice(throughJSON(t, s)))
			}
		})
	}
}

func TestTheSettingsOfAQueuedMessageWaitForItsTurn(t *testing.T) {
	s, _ := callingWith(t, event.SetTools{}, fetch(1))
	s, _ = reducer.Step(s, reducer.Received{At: eventtest.Epoch, Events: []event.Event{
		event.New(event.SetDeliveryPolicy{Policy: event.PolicyQueue}),
		event.New(event.UserMessage{Content: "And?", Settings: &event.RequestSettings{Seed: new(int64(8))}}),
	}})
	s, _ = reducer.Step(s, reducer.ToolEnded{At: eventtest.Epoch, RequestID: s.Request.ID, CallID: "c1", Outcome: reducer.CallReturned})
	require.Equal(t, new(int64(7)), reducer.SettingsOf(s).Seed)
	s, _ = reducer.Step(s, endOf(s, reducer.AttemptEnded{Outcome: reducer.Completed, Text: "Hi"}))
	require.Equal(t, "demo:r0002", s.Request.ID)
	require.Equal(t, new(int64(8)), reducer.SettingsOf(s).Seed)
}

// A worker can report anything, because the model that it asks can be any server.
func TestCallsAreBounded(t *testing.T) {
	var calls []reducer.CalledTool
	for n := range 1000 {
		calls = append(calls, fetch(n))
	}
	s, effects := callingWith(t, event.SetTools{}, calls...)
	require.Len(t, s.Request.Calls, reducer.MaxCalls)
	require.Len(t, effects, 1+4, "the parallel limit")

	long := fetch(1)
	long.ID, long.Name = strings.Repeat("x", 1000), strings.Repeat("y", 1000)
	large := fetch(2)
	large.Arguments = json.RawMessage(`{"x":"` + strings.Repeat("x", event.MaxArgumentBytes) + `"}`)
	failed := fetch(3)
	failed.Error = strings.Repeat("\u00e9", 100_000)
	s, effects = callingWith(t, event.SetTools{}, long, large, failed)
	size := 0
	for _, e := range effects[0].(reducer.Record).Events {
		require.NoError(t, e.Validate())
		data, err := e.MarshalJSON()
		require.NoError(t, err)
		size += len(data)
	}
	require.Less(t, size, 20_000)
	require.Equal(t, 1, s.Request.Steps)
	require.Equal(t, reducer.PhaseRunning, s.Phase(), "none of the calls is executed")

	s, _ = callingWith(t, event.SetTools{}, fetch(1))
	s, _ = reducer.Step(s, reducer.ToolEnded{
		At: eventtest.Epoch, RequestID: "demo:r0001", CallID: "c1", Outcome: reducer.CallReturned, Value: []byte(`"` + strings.Repeat("x", 2<<20) + `"`),
	})
	require.Contains(t, s.Reduced.Messages[2].Content, "the result has 2097154 bytes")
}

func TestATurnHasABoundedNumberOfSteps(t *testing.T) {
	s, _ := callingWith(t, event.SetTools{Tools: event.ToolList{{Pattern: "fetch"}}}, fetch(0))
	for n := 1; s.Request != nil; n++ {
		require.LessOrEqual(t, n, 17)
		s, _ = reducer.Step(s, reducer.ToolEnded{At: eventtest.Epoch, RequestID: "demo:r0001", CallID: s.Request.Calls[0].ID, Outcome: reducer.CallReturned})
		s, _ = answerWith(s, fetch(n))
	}
	require.Equal(t, 17, s.Usage.Attempts, "16 steps and the end")
	require.Empty(t, s.OpenToolCalls)
}

func TestClientsCannotAddCallsToARequest(t *testing.T) {
	s, _ := callingWith(t, event.SetTools{}, fetch(1))
	for _, id := range []string{"demo:r0001", "demo:r0002"} {
		forged := event.New(event.ToolCall{ToolCallID: "forged", ToolName: "fetch", RequestID: id})
		after, effects := reducer.Step(s, reducer.Received{At: eventtest.Epoch, Events: []event.Event{forged}})
		require.Equal(t, []event.Tag{event.TagInputRejected}, tags(effects))
		require.Equal(t, s.Request, after.Request)
	}
	imported := event.New(event.ToolCall{ToolCallID: "c9", ToolName: "fetch", RequestID: "other:r0001"})
	_, effects := reducer.Step(s, reducer.Received{At: eventtest.Epoch, Events: []event.Event{imported}})
	require.Equal(t, []event.Tag{event.TagToolCall}, tags(effects))
}

func TestClientsCannotReuseTheIDOfACallOfARequest(t *testing.T) {
	s, _ := receive(reducer.NewSession("demo"), event.AssistantMessage{Content: "Earlier"}, event.UserMessage{Content: "Hello"})
	s, _ = answerWith(s, fetch(1))
	earlier := s.Reduced.Messages[0].EventID
	requireRejected := func() {
		t.Helper()
		for _, messageID := range []string{"", earlier} {
			after, recorded := receive(s, event.ToolCall{ToolCallID: "c1", ToolName: "fetch", MessageID: messageID})
			require.Equal(t, []event.Tag{event.TagInputRejected}, recorded)
			require.Equal(t, s.Reduced, after.Reduced)
			require.Equal(t, s.OpenToolCalls, after.OpenToolCalls)
		}
	}
	requireRejected()
	s, _ = reducer.Step(s, reducer.ToolEnded{At: eventtest.Epoch, RequestID: "demo:r0001", CallID: "c1", Outcome: reducer.CallReturned, Value: []byte(`"real"`)})
	requireRejected()
	s, _ = reducer.Step(s, reducer.InterruptAsked{At: eventtest.Epoch})
	requireRejected()
}

// receive returns the session after an input, and the tags that it records.
func receive(s reducer.Session, bodies ...event.Body) (reducer.Session, []event.Tag) {
	var events []event.Event
	for _, body := range bodies {
		events = append(events, event.New(body))
	}
	s, effects := reducer.Step(s, reducer.Received{At: eventtest.Epoch, Events: events})
	return s, tags(effects)
}

func TestAClientCannotReplaceTheResultOfACall(t *testing.T) {
	answer := func(id string) event.Body { return event.ToolResult{ToolCallID: id, Value: []byte(`"forged"`)} }
	client, guarded := fetch(2), fetch(3)
	client.Client, guarded.Approve = true, true
	s, _ := callingWith(t, event.SetTools{}, fetch(1), client, guarded, fetch(4))

	_, recorded := receive(s, answer("c2"), answer("c2"))
	require.Equal(t, []event.Tag{event.TagInputRejected}, recorded, "two results in one input")
	s, recorded = receive(s, answer("c2"))
	require.Equal(t, []event.Tag{event.TagToolResult}, recorded)
	s, _ = reducer.Step(s, reducer.ToolEnded{At: eventtest.Epoch, RequestID: "demo:r0001", CallID: "c1", Outcome: reducer.CallReturned, Value: []byte(`"real"`)})
	s, _ = receive(s, event.ApprovalDecided{ToolCallID: "c3", Decision: event.Deny})
	requireRejected := func() {
		t.Helper()
		for _, id := range []string{"c1", "c2", "c3"} {
			after, recorded := receive(s, answer(id))
			require.Equal(t, []event.Tag{event.TagInputRejected}, recorded, id)
			require.Equal(t, s.Reduced, after.Reduced)
		}
	}
	requireRejected()
	s, _ = reducer.Step(s, reducer.InterruptAsked{At: eventtest.Epoch})
	require.Nil(t, s.Request)
	requireRejected()
	_, recorded = receive(s, answer("c4"))
	require.Equal(t, []event.Tag{event.TagToolResult}, recorded, "the result of a call with a placeholder")
}

func TestAResultOfAClientIsBounded(t *testing.T) {
	client := fetch(1)
	client.Client = true
	s, _ := callingWith(t, event.SetTools{}, client)
	value := func(size int) []byte { return []byte(`"` + strings.Repeat("x", size-2) + `"`) }
	for _, body := range []event.ToolResult{
		{ToolCallID: "c1", Value: value(1<<20 + 1)},
		{ToolCallID: "c1", Error: value(1<<20 + 1)},
	} {
		after, effects := reducer.Step(s, reducer.Received{At: eventtest.Epoch, Events: []event.Event{event.New(body)}})
		require.Equal(t, []event.Tag{event.TagInputRejected}, tags(effects))
		require.Equal(t, s.Request, after.Request, "the call waits for another result")
		require.Contains(t, effects[0].(reducer.Record).Events[0].Body.(event.InputRejected).Reason, "the result has 1048577 bytes (at most 1048576)")
	}
	_, recorded := receive(s, event.ToolResult{ToolCallID: "c1", Value: value(1 << 20)})
	require.Equal(t, []event.Tag{event.TagToolResult, event.TagLLMRequestStarted}, recorded)

	_, recorded = receive(s, event.ToolCall{ToolCallID: "imported", ToolName: "fetch"}, event.ToolResult{ToolCallID: "imported", Value: value(1<<20 + 1)})
	require.Equal(t, []event.Tag{event.TagToolCall, event.TagToolResult}, recorded, "a log of another agent")
}

func TestOneInputDecidesOnceAboutACall(t *testing.T) {
	first, second := fetch(1), fetch(2)
	first.Approve, second.Approve = true, true
	s, _ := callingWith(t, event.SetTools{}, first, second)
	edit := event.ApprovalDecided{ToolCallID: "c1", Decision: event.Approve, Parameters: []byte(`{"n":9}`)}
	for _, decided := range []string{"c1", ""} {
		after, recorded := receive(s, event.ApprovalDecided{ToolCallID: decided, Decision: event.Approve}, edit)
		require.Equal(t, []event.Tag{event.TagInputRejected}, recorded, "the arguments that were executed would not be those of the message")
		require.Equal(t, s.Reduced, after.Reduced)
	}
	s, recorded := receive(s, edit, event.ApprovalDecided{Decision: event.Approve})
	require.Equal(t, []event.Tag{event.TagApprovalDecided, event.TagApprovalDecided}, recorded)
	require.JSONEq(t, `{"n":9}`, string(s.Request.Calls[0].Arguments))
	require.JSONEq(t, `{"n":9}`, s.Reduced.Messages[1].ToolCalls[0].Arguments)
	require.Equal(t, reducer.CallRunning, s.Request.Calls[1].State)
}

func TestPersistedNamesOfCallsNeverChange(t *testing.T) {
	request := reducer.Request{
		ID: "demo:r0001", Steps: 2, Limit: "demo:0003", Settings: &event.RequestSettings{Seed: new(int64(7))},
		Calls: []reducer.Call{{
			ID: "c1", Name: "fetch", Arguments: json.RawMessage(`{"a":"<"}`), State: reducer.CallApproval, Client: true, Idempotent: true,
			TimeoutMs: 3, Attempts: 4, Deadline: eventtest.Epoch, Error: "no",
		}},
	}
	const persisted = `{"id":"demo:r0001","steps":2,"limit":"demo:0003","settings":{"seed":7},
		"calls":[{"id":"c1","name":"fetch","arguments":{"a":"<"},"state":"approval","client":true,"idempotent":true,
		"timeoutMs":3,"attempts":4,"deadline":"2026-01-02T15:04:05Z","error":"no"}]}`
	data, err := json.Marshal(request)
	require.NoError(t, err)
	require.JSONEq(t, persisted, string(data))
	require.Equal(t, request, throughJSON(t, request))
	require.Equal(t, []reducer.CallState{"queued", "running", "approval", "client"},
		[]reducer.CallState{reducer.CallQueued, reducer.CallRunning, reducer.CallApproval, reducer.CallClient})
}

// The client can execute the call only after the approval, and edited arguments only after their validation.
func TestTheWaitForAClientBeginsAfterTheApproval(t *testing.T) {
	ask := reducer.CalledTool{ID: "c1", Name: "ask", Arguments: []byte(`{}`), Client: true, Approve: true}
	waiting, _ := callingWith(t, event.SetTools{Tools: event.ToolList{{Name: "ask", Parameters: event.Object(`{}`)}}, ExpiryMs: new(int64(3_600_000))}, ask)
	for edited, want := range map[string]time.Duration{``: 90 * time.Minute, `{"x":1}`: 100 * time.Minute} {
		approved := event.New(event.ApprovalDecided{ToolCallID: "c1", Decision: event.Approve, Parameters: []byte(edited)})
		s, _ := reducer.Step(waiting, reducer.Received{At: eventtest.Epoch.Add(30 * time.Minute), Events: []event.Event{approved}})
		if edited != "" {
			require.Zero(t, s.Request.Calls[0].Deadline)
			s, _ = reducer.Step(s, reducer.ToolEnded{At: eventtest.Epoch.Add(40 * time.Minute), RequestID: "demo:r0001", CallID: "c1", Outcome: reducer.CallReturned})
		}
		require.Equal(t, eventtest.Epoch.Add(want), s.Request.Calls[0].Deadline, edited)
	}
}

func TestEditedArgumentsOfAClientsToolAreValidated(t *testing.T) {
	schema := event.Object(`{"type":"object","required":["question"]}`)
	ask := reducer.CalledTool{ID: "c1", Name: "ask", Arguments: []byte(`{"question":"?"}`), Client: true, Approve: true}
	waiting, _ := callingWith(t, event.SetTools{Tools: event.ToolList{{Name: "ask", Parameters: schema}}}, ask)
	edited := event.New(event.ApprovalDecided{ToolCallID: "c1", Decision: event.Approve, Parameters: []byte(`{"x":1}`)})
	checking, effects := reducer.Step(waiting, reducer.Received{At: eventtest.Epoch, Events: []event.Event{edited}})
	require.Equal(t, reducer.CallChecking, checking.Request.Calls[0].State)
	isCheck := func(e reducer.Effect) bool {
		call, ok := e.(reducer.CallTool)
		return ok && string(call.Schema) == string(schema) && string(call.Call.Arguments) == `{"x":1}`
	}
	require.True(t, slices.ContainsFunc(effects, isCheck))
	ended := reducer.ToolEnded{At: eventtest.Epoch, RequestID: "demo:r0001", CallID: "c1", Outcome: reducer.CallReturned}

	s, _ := reducer.Step(checking, ended)
	require.Equal(t, reducer.CallClient, s.Request.Calls[0].State)
	invalid := ended
	invalid.IsError, invalid.Error = true, []byte(`"invalid arguments: root: missing property 'question'"`)
	s, _ = reducer.Step(checking, invalid)
	require.Empty(t, s.Request.Calls, "the error is the result")

	lost := ended
	lost.Outcome = reducer.CallLost
	s, _ = reducer.Step(checking, lost)
	require.Empty(t, s.Request.Calls)

	s, effects = reducer.Step(checking, reducer.Continued{At: eventtest.Epoch})
	require.Equal(t, reducer.CallChecking, s.Request.Calls[0].State)
	require.True(t, slices.ContainsFunc(effects, isCheck), "the next run checks again")

	s, _ = reducer.Step(checking, reducer.InterruptAsked{At: eventtest.Epoch})
	require.Nil(t, s.Request)
	_, effects = reducer.Step(s, ended)
	require.Empty(t, effects, "a late check changes nothing")

	result := event.ToolResult{ToolCallID: "c1", Value: []byte(`"answer"`)}
	s, recorded := receive(checking, result)
	require.Equal(t, []event.Tag{event.TagToolResult, event.TagLLMRequestStarted}, recorded, "a client may execute the call once it is approved")
	for _, late := range []reducer.ToolEnded{ended, invalid, lost} {
		_, effects = reducer.Step(s, late)
		require.Empty(t, effects, "a late check changes nothing")
	}
	_, recorded = receive(checking, result, result)
	require.Equal(t, []event.Tag{event.TagInputRejected}, recorded)

	approved := event.New(event.ApprovalDecided{ToolCallID: "c1", Decision: event.Approve})
	s, _ = reducer.Step(waiting, reducer.Received{At: eventtest.Epoch, Events: []event.Event{approved}})
	require.Equal(t, reducer.CallClient, s.Request.Calls[0].State, "the arguments of the model are validated already")
}
