package agui

import (
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
)

const requestID = "demo:r0001"

// sent is an event with a client event id.
type sent struct {
	id   string
	body event.Body
}

// readRun returns the types of the frames of a run that sees the events after the first ones, and the last frame. It is
// empty if the run does not end.
func readRun(t *testing.T, from int, input []string, bodies ...any) (types []string, last frame) {
	t.Helper()
	r := &run{thread: newThread(), known: newThread().known(), input: map[string]bool{}, from: from}
	r.await(client.Receipt{ClientEventIDs: input})
	for i, step := range bodies {
		of, ok := step.(sent)
		if !ok {
			of.body = step.(event.Body)
		}
		e := event.New(of.body)
		e.ID, e.ContextName, e.ClientEventID = event.FormatID("demo", i+1), "demo", of.id
		_, err := r.next(gateway.Item{Event: e})
		for _, f := range r.out {
			types = append(types, f.Type)
		}
		if errors.Is(err, io.EOF) {
			require.Equal(t, len(bodies)-1, i, "the run ended early: %v", types)
			return types, r.out[len(r.out)-1]
		}
		require.NoError(t, err)
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

// A client that joins a request sees no end at a call that was answered already.
func TestAJoinedRunEndsWhereTheRequestDoes(t *testing.T) {
	types, last := readRun(t, 6, nil, clientTools, event.UserMessage{Content: "Where?"}, started(2),
		event.ToolCall{RequestID: requestID, ToolCallID: "c1", ToolName: "locate"},
		event.LLMAttemptEnded{RequestID: requestID, Attempt: 1, Outcome: event.AttemptToolCalls},
		event.ToolResult{ToolCallID: "c1", Value: quoted("here")}, started(6),
		event.AssistantMessage{RequestID: requestID, Content: "Here"}, event.LLMRequestCompleted{RequestID: requestID})
	require.Empty(t, last.Outcome.Pending)
	require.Contains(t, types, "TOOL_CALL_RESULT")
	require.Contains(t, types, "TEXT_MESSAGE_CONTENT")
}

func TestARunEndsWhereOnlyItsClientCanContinue(t *testing.T) {
	_, last := readRun(t, 1, []string{"a"}, clientTools, sent{"a", event.UserMessage{Content: "Where?"}}, started(2),
		event.ToolCall{RequestID: requestID, ToolCallID: "c1", ToolName: "locate"},
		event.LLMAttemptEnded{RequestID: requestID, Attempt: 1, Outcome: event.AttemptToolCalls})
	require.Equal(t, []string{"c1"}, last.Outcome.Pending)
}
