package client_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
)

// id is the id of the n-th event of the context that the tests are about.
func id(n int) string { return event.FormatID("demo", n) }

func requestID(n int) string { return event.FormatRequestID("demo", n) }

// recorded is the n-th event of a log.
func recorded(n int, body event.Body, clientEventID ...string) event.Event {
	e := event.New(body)
	e.ID, e.ContextName = id(n), "demo"
	if len(clientEventID) > 0 {
		e.ClientEventID = clientEventID[0]
	}
	return e
}

func started(request, through int) event.Body {
	return event.LLMRequestStarted{RequestID: requestID(request), ThroughEventID: id(through), Attempt: 1}
}

func completed(request int) event.Body {
	return event.LLMRequestCompleted{RequestID: requestID(request)}
}

func interrupted(request int, unsentThrough ...int) event.Body {
	b := event.LLMRequestInterrupted{RequestID: requestID(request), Reason: event.ReasonNewUserInput}
	for _, n := range unsentThrough {
		b.ThroughEventID = id(n)
	}
	return b
}

func failed(request int, unsentThrough ...int) event.Body {
	b := event.LLMRequestFailed{RequestID: requestID(request), Error: "down"}
	for _, n := range unsentThrough {
		b.ThroughEventID = id(n)
	}
	return b
}

var rejected = event.InputRejected{Reason: "busy"}

func TestTurn(t *testing.T) {
	const (
		notMine = "-"
		isMine  = "mine"
		last    = "last"
	)
	type step struct {
		body     event.Body
		clientID string
		want     string
	}
	no := false
	message := event.UserMessage{Content: "Hello"}
	tests := map[string]struct {
		sent  []string
		steps []step
	}{
		"a message and its answer": {[]string{"a"}, []step{
			{event.SessionStarted{}, "", notMine},
			{message, "a", isMine},
			{started(1, 2), "", isMine},
			{event.AssistantMessage{Content: "Hi"}, "", isMine},
			{completed(1), "", last},
		}},
		"earlier turns are another's": {[]string{"b"}, []step{
			{message, "a", notMine},
			{started(1, 1), "", notMine},
			{event.AssistantMessage{Content: "Hi"}, "", notMine},
			{completed(1), "", notMine},
			{message, "b", isMine},
			{started(2, 5), "", isMine},
			{completed(2), "", last},
		}},
		"several events are one turn": {[]string{"a", "b"}, []step{
			{event.SystemPrompt{Content: "Be brief."}, "a", isMine},
			{message, "b", isMine},
			{started(1, 2), "", isMine},
			{completed(1), "", last},
		}},
		"a message between two others is not overtaken by them": {[]string{"a", "b", "c"}, []step{
			{event.SystemPrompt{}, "a", isMine},
			{message, "b", isMine},
			{event.SystemPrompt{}, "c", isMine},
			{started(1, 3), "", isMine},
			{completed(1), "", last},
		}},
		"two events of the same id are recorded once": {[]string{"a", "a"}, []step{
			{event.SystemPrompt{}, "a", last},
		}},
		"events without a message end when they are recorded": {[]string{"a", "b"}, []step{
			{event.SystemPrompt{}, "a", isMine},
			{event.SetTimeout{TimeoutMs: 1}, "b", last},
		}},
		"a message that wants no answer ends when it is recorded": {[]string{"a"}, []step{
			{event.UserMessage{Content: "note", TriggersTurn: &no}, "a", last},
		}},
		"the end of the answer before is not the end": {[]string{"b"}, []step{
			{message, "a", notMine},
			{started(1, 1), "", notMine},
			{message, "b", isMine},
			{event.AssistantMessage{Content: "to a"}, "", isMine},
			{completed(1), "", isMine},
			{started(2, 5), "", isMine},
			{completed(2), "", last},
		}},
		"the answer that makes way for the message is not its own": {[]string{"b"}, []step{
			{message, "a", notMine},
			{started(1, 1), "", notMine},
			{message, "b", isMine},
			{interrupted(1), "", isMine},
			{started(2, 4), "", isMine},
			{completed(2), "", last},
		}},
		"a newer message interrupts the answer and ends the turn": {[]string{"a"}, []step{
			{message, "a", isMine},
			{started(1, 1), "", isMine},
			{message, "b", isMine},
			{interrupted(1), "", last},
		}},
		"one request answers two quick messages": {[]string{"a"}, []step{
			{message, "a", isMine},
			{message, "b", isMine},
			{started(1, 2), "", isMine},
			{completed(1), "", last},
		}},
		"an attempt that has seen the message answers it": {[]string{"b"}, []step{
			{message, "a", notMine},
			{started(1, 1), "", notMine},
			{message, "b", isMine},
			{started(1, 3), "", isMine},
			{completed(1), "", last},
		}},
		"a request that ends before it is sent says what goes without an answer": {[]string{"a"}, []step{
			{message, "a", isMine},
			{interrupted(1, 1), "", last},
		}},
		"a request that ends before it is sent leaves what comes later to the next": {[]string{"b"}, []step{
			{message, "a", notMine},
			{message, "b", isMine},
			{interrupted(1, 1), "", isMine},
			{started(2, 3), "", isMine},
			{completed(2), "", last},
		}},
		"a request that fails ends the turn": {[]string{"a"}, []step{
			{message, "a", isMine},
			{started(1, 1), "", isMine},
			{failed(1), "", last},
		}},
		"a request that fails before it is sent ends the turn": {[]string{"a"}, []step{
			{message, "a", isMine},
			{failed(1, 1), "", last},
		}},
		"the failure of the answer before is not the end": {[]string{"b"}, []step{
			{message, "a", notMine},
			{started(1, 1), "", notMine},
			{message, "b", isMine},
			{failed(1), "", isMine},
			{started(2, 4), "", isMine},
			{completed(2), "", last},
		}},
		"a fallback is not the end": {[]string{"a"}, []step{
			{message, "a", isMine},
			{started(1, 1), "", isMine},
			{event.LLMRequestFellBack{RequestID: requestID(1)}, "", isMine},
			{started(1, 3), "", isMine},
			{completed(1), "", last},
		}},
		"a rejected message ends the turn": {[]string{"b"}, []step{
			{rejected, "a", notMine},
			{rejected, "b", last},
		}},
		"a rejected input of several events is found by its first": {[]string{"a", "b"}, []step{
			{rejected, "a", last},
		}},
		"the rejection of another's message is not the end": {[]string{"a"}, []step{
			{message, "a", isMine},
			{started(1, 1), "", isMine},
			{rejected, "b", isMine},
			{completed(1), "", last},
		}},
		"closing ends the turn with its request": {[]string{"a"}, []step{
			{message, "a", isMine},
			{started(1, 1), "", isMine},
			{event.AssistantMessage{Content: "Hel", Partial: true}, "", isMine},
			{interrupted(1), "", last},
		}},
		"what comes after the end of a session is answered in the next": {[]string{"a"}, []step{
			{event.SessionEnded{}, "", notMine},
			{event.SessionStarted{}, "", notMine},
			{message, "a", isMine},
			{started(1, 3), "", isMine},
			{completed(1), "", last},
		}},
		"another run means that the one of the turn was terminated": {[]string{"a"}, []step{
			{message, "a", isMine},
			{started(1, 1), "", isMine},
			{event.SessionStarted{PreviousRunID: "run-1"}, "", last},
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			turn := client.NewTurn(test.sent...)
			for i, step := range test.steps {
				mine, over := turn.See(recorded(i+1, step.body, step.clientID))
				want := step.want
				require.Equal(t, want != notMine, mine, "event %d belongs to the turn", i+1)
				require.Equal(t, want == last, over, "event %d ends the turn", i+1)
			}
		})
	}
}

func TestATurnGoesBackWithTheLog(t *testing.T) {
	message := event.UserMessage{Content: "Hello"}
	again := event.SessionStarted{PreviousRunID: "run"}
	type step struct {
		n        int
		body     event.Body
		clientID string
		over     bool
	}
	for name, steps := range map[string][]step{
		"behind the message": {
			{2, message, "a", false}, {3, started(1, 2), "", false},
			{3, started(1, 2), "", false}, {4, completed(1), "", true},
		},
		"to before the message, which is delivered again": {
			{4, message, "a", false}, {5, started(1, 4), "", false},
			{2, event.Note{}, "", false}, {3, message, "a", false}, {4, started(1, 3), "", false}, {5, completed(1), "", true},
		},
		"to the beginning of the session": {
			{3, again, "", false}, {4, message, "a", false}, {5, started(1, 4), "", false},
			{3, again, "", false}, {4, message, "a", false}, {5, started(1, 4), "", false}, {6, completed(1), "", true},
		},
		"and the new run is terminated": {
			{3, again, "", false}, {4, message, "a", false},
			{3, again, "", false}, {4, message, "a", false}, {5, again, "", true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			turn := client.NewTurn("a")
			for i, s := range steps {
				_, over := turn.See(recorded(s.n, s.body, s.clientID))
				require.Equal(t, s.over, over, "step %d", i)
			}
		})
	}
}
