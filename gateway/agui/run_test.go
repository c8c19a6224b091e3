package agui

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/thread"
)

const requestID = "demo:r0001"

// sent is an event with a client event id.
type sent struct {
	id   string
	body event.Body
}

// readRun returns the types of the frames of a run that joins after the first events, and the last frame. It is empty if
// the run does not end.
func readRun(t *testing.T, from int, input []string, bodies ...any) (types []string, last frame) {
	t.Helper()
	of := &thread.Thread{}
	var r *run
	for i, step := range bodies {
		body, ok := step.(sent)
		if !ok {
			body.body = step.(event.Body)
		}
		e := event.New(body.body)
		e.ID, e.ContextName, e.ClientEventID = event.FormatID("demo", i+1), "demo", body.id
		if i < from {
			of.Apply(gateway.Item{Event: e})
			continue
		}
		if r == nil {
			r = newRun(runInput{}, of, func(calls []string) []string {
				return slices.DeleteFunc(calls, func(id string) bool { return strings.HasPrefix(id, "asked") })
			})
			r.await(client.Receipt{ClientEventIDs: input})
			r.settle()
			require.False(t, r.isDone, "the run ended at once: %v", r.out)
		}
		r.apply(gateway.Item{Event: e})
		for _, f := range r.out {
			types, last = append(types, f.Type), f
		}
		if r.out = nil; r.isDone {
			require.Equal(t, len(bodies)-1, i, "the run ended early: %v", types)
			return types, last
		}
	}
	return types, frame{}
}

func started(through int) event.LLMRequestStarted {
	return event.LLMRequestStarted{RequestID: requestID, ThroughEventID: event.FormatID("demo", through)}
}

var clientTools = event.SetTools{Tools: event.ToolList{{Name: "locate", Parameters: event.Object(`{}`)}}}

func TestARunWhoseInputRequiresNoAnswerEnds(t *testing.T) {
	_, last := readRun(t, 0, []string{"a", "b"}, sent{"a", event.SystemPrompt{Content: "Be brief"}}, sent{"b", clientTools})
	require.Equal(t, "RUN_FINISHED", last.Type)
	require.Equal(t, "success", last.Outcome.Type)
}

func TestARunWhoseInputIsRejectedEndsWithTheReason(t *testing.T) {
	_, last := readRun(t, 0, []string{"a", "b"}, sent{"a", event.InputRejected{Reason: "busy"}})
	require.Equal(t, "RUN_ERROR", last.Type)
	require.Equal(t, "busy", last.Message)
}

// A session that ends at the same time does not have the input: the next one does.
func TestARunGoesOnInTheNextSession(t *testing.T) {
	_, last := readRun(t, 0, []string{"a"}, event.SessionEnded{}, event.SessionStarted{}, sent{"a", event.UserMessage{Content: "Hi"}}, started(3),
		event.AssistantMessage{RequestID: requestID, Content: "Hello"}, event.LLMRequestCompleted{RequestID: requestID})
	require.Equal(t, "success", last.Outcome.Type)
}

// A client that joins a request sees no end at a call that was answered already, and the rest of the answer.
func TestAJoinedRunEndsWhereTheRequestDoes(t *testing.T) {
	types, last := readRun(t, 6, nil, clientTools, event.UserMessage{Content: "Where?"}, started(2),
		event.ToolCall{RequestID: requestID, ToolCallID: "c1", ToolName: "locate"},
		event.LLMAttemptEnded{RequestID: requestID, Attempt: 1, Outcome: event.AttemptToolCalls},
		event.ToolResult{ToolCallID: "c1", Value: quoted("here")}, started(6),
		event.AssistantMessage{RequestID: requestID, Content: "Here"}, event.LLMRequestCompleted{RequestID: requestID})
	require.Empty(t, last.Outcome.Pending)
	require.NotContains(t, types, "TOOL_CALL_RESULT", "the client has it")
	require.Contains(t, types, "TEXT_MESSAGE_CONTENT")
}

func TestARunEndsWhereOnlyItsClientCanContinue(t *testing.T) {
	_, last := readRun(t, 1, []string{"a"}, clientTools, sent{"a", event.UserMessage{Content: "Where?"}}, started(2),
		event.ToolCall{RequestID: requestID, ToolCallID: "c1", ToolName: "locate"},
		event.LLMAttemptEnded{RequestID: requestID, Attempt: 1, Outcome: event.AttemptToolCalls})
	require.Equal(t, []string{"c1"}, last.Outcome.Pending)
}

// The log has the approval after the end of the attempt.
func TestARunOffersNoCallThatWaitsForAnApproval(t *testing.T) {
	_, last := readRun(t, 1, []string{"a"}, clientTools, sent{"a", event.UserMessage{Content: "Where?"}}, started(2),
		event.ToolCall{RequestID: requestID, ToolCallID: "asked", ToolName: "locate"},
		event.LLMAttemptEnded{RequestID: requestID, Attempt: 1, Outcome: event.AttemptToolCalls},
		event.ApprovalRequested{RequestID: requestID, ToolCallID: "asked"})
	require.Equal(t, "interrupt", last.Outcome.Type)
}

// A client may record a call, and its result, while the model answers.
func TestARunGoesOnAfterACallOfAnotherClient(t *testing.T) {
	_, last := readRun(t, 1, []string{"a"}, clientTools, sent{"a", event.UserMessage{Content: "Hi"}}, started(2),
		event.ToolCall{ToolCallID: "c1", ToolName: "clock"}, event.ToolResult{ToolCallID: "c1", Value: quoted("noon")},
		event.AssistantMessage{RequestID: requestID, Content: "Hello"}, event.LLMRequestCompleted{RequestID: requestID})
	require.Equal(t, "success", last.Outcome.Type)
}

// Its request begins only when the context schedules an attempt.
func TestARunThatJoinsBeforeTheRequestBeginsGoesOn(t *testing.T) {
	asked := event.UserMessage{Content: "Hi"}
	_, last := readRun(t, 1, nil, asked, started(1), event.AssistantMessage{RequestID: requestID, Content: "Hello"}, event.LLMRequestCompleted{RequestID: requestID})
	require.Equal(t, "success", last.Outcome.Type)
}

// Misspelt arguments would run the call with the original ones.
func TestADecisionHasNoUnknownField(t *testing.T) {
	_, err := decode([]byte(`{"threadId":"demo","runId":"r","resume":[{"interruptId":"c1","status":"resolved","payload":{"approved":true,"argument":{}}}]}`))
	require.ErrorContains(t, err, `unknown field "argument"`)
}

// The agent runs only with an answer to its interrupt.
func TestADecisionIsNotSentAfterAnotherOne(t *testing.T) {
	log := []event.Body{
		event.UserMessage{Content: "Hi"}, started(1), event.AssistantMessage{RequestID: requestID}, event.ToolCall{RequestID: requestID, ToolCallID: "c1", ToolName: "write"},
		event.LLMAttemptEnded{RequestID: requestID, Outcome: event.AttemptToolCalls}, event.ApprovalRequested{RequestID: requestID, ToolCallID: "c1"},
		event.ApprovalDecided{ToolCallID: "c1", Decision: event.Approve},
	}
	decide := func(body string, known int) ([]event.Event, error) {
		of := &thread.Thread{}
		for i, body := range log[:known] {
			e := event.New(body)
			e.ID = event.FormatID("demo", i+1)
			of.Apply(gateway.Item{Event: e})
		}
		in, err := decode([]byte(`{"threadId":"demo","runId":"r","resume":[{"interruptId":"c1","status":"resolved","payload":` + body + `}]}`))
		require.NoError(t, err)
		return in.events(of, gateway.Setup{}, nil)
	}
	events, err := decide(`{"approved":true}`, 6)
	require.NoError(t, err)
	require.Len(t, events, 1)
	for _, late := range []string{`{"approved":true}`, `{"approved":false}`} {
		events, err = decide(late, 7)
		require.NoError(t, err)
		require.Empty(t, events)
	}
	_, err = decide(`{"approved":true}`, 5)
	require.ErrorContains(t, err, "waits for no approval")
}

func TestMalformedInputIsRejected(t *testing.T) {
	for body, want := range map[string]string{
		`[]`:             "the body has the wrong type: array",
		`{"threadId":5}`: "threadId has the wrong type: number",
		`{"threadId":"demo","runId":"r","messages":[{"role":"user","content":"Hi"}]}`:          "message 0 has no id",
		`{"threadId":"demo","runId":"r","messages":[{"id":"m1","role":"user","content":5}]}`:   "the content of message m1 is neither a text nor an array of parts",
		`{"threadId":"demo","runId":"r","messages":[{"id":"m1","role":"user","content":[5]}]}`: "the content of message m1 is neither a text nor an array of parts",
	} {
		_, err := decode([]byte(body))
		require.ErrorContains(t, err, want, body)
	}
}
