package client_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
)

// id is the id of the n-th event of demo.
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
		other = "other"
		own   = "own"
		last  = "last"
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
			{event.SessionStarted{}, "", other},
			{message, "a", own},
			{started(1, 2), "", own},
			{event.AssistantMessage{Content: "Hi"}, "", own},
			{completed(1), "", last},
		}},
		"events of earlier turns are skipped": {[]string{"b"}, []step{
			{message, "a", other},
			{started(1, 1), "", other},
			{event.AssistantMessage{Content: "Hi"}, "", other},
			{completed(1), "", other},
			{message, "b", own},
			{started(2, 5), "", own},
			{completed(2), "", last},
		}},
		"several events are one turn": {[]string{"a", "b"}, []step{
			{event.SystemPrompt{Content: "Be brief."}, "a", own},
			{message, "b", own},
			{started(1, 2), "", own},
			{completed(1), "", last},
		}},
		"settings around a message belong to its turn": {[]string{"a", "b", "c"}, []step{
			{event.SystemPrompt{}, "a", own},
			{message, "b", own},
			{event.SystemPrompt{}, "c", own},
			{started(1, 3), "", own},
			{completed(1), "", last},
		}},
		"an event sent twice is recorded once": {[]string{"a", "a"}, []step{
			{event.SystemPrompt{}, "a", last},
		}},
		"settings end the turn when they are recorded": {[]string{"a", "b"}, []step{
			{event.SystemPrompt{}, "a", own},
			{event.SetTimeout{TimeoutMs: 1}, "b", last},
		}},
		"a message without a trigger ends the turn when it is recorded": {[]string{"a"}, []step{
			{event.UserMessage{Content: "note", TriggersTurn: &no}, "a", last},
		}},
		"the end of the previous answer does not end the turn": {[]string{"b"}, []step{
			{message, "a", other},
			{started(1, 1), "", other},
			{message, "b", own},
			{event.AssistantMessage{Content: "to a"}, "", own},
			{completed(1), "", own},
			{started(2, 5), "", own},
			{completed(2), "", last},
		}},
		"an answer interrupted by the message does not end the turn": {[]string{"b"}, []step{
			{message, "a", other},
			{started(1, 1), "", other},
			{message, "b", own},
			{interrupted(1), "", own},
			{started(2, 4), "", own},
			{completed(2), "", last},
		}},
		"a newer message interrupts the answer and ends the turn": {[]string{"a"}, []step{
			{message, "a", own},
			{started(1, 1), "", own},
			{message, "b", own},
			{interrupted(1), "", last},
		}},
		"one request answers two quick messages": {[]string{"a"}, []step{
			{message, "a", own},
			{message, "b", own},
			{started(1, 2), "", own},
			{completed(1), "", last},
		}},
		"an attempt that contains the message answers it": {[]string{"b"}, []step{
			{message, "a", other},
			{started(1, 1), "", other},
			{message, "b", own},
			{started(1, 3), "", own},
			{completed(1), "", last},
		}},
		"an unsent request names the events without an answer": {[]string{"a"}, []step{
			{message, "a", own},
			{interrupted(1, 1), "", last},
		}},
		"an unsent request leaves later events to the next request": {[]string{"b"}, []step{
			{message, "a", other},
			{message, "b", own},
			{interrupted(1, 1), "", own},
			{started(2, 3), "", own},
			{completed(2), "", last},
		}},
		"a request that fails ends the turn": {[]string{"a"}, []step{
			{message, "a", own},
			{started(1, 1), "", own},
			{failed(1), "", last},
		}},
		"a request that fails before it is sent ends the turn": {[]string{"a"}, []step{
			{message, "a", own},
			{failed(1, 1), "", last},
		}},
		"the failure of the previous answer does not end the turn": {[]string{"b"}, []step{
			{message, "a", other},
			{started(1, 1), "", other},
			{message, "b", own},
			{failed(1), "", own},
			{started(2, 4), "", own},
			{completed(2), "", last},
		}},
		"a fallback does not end the turn": {[]string{"a"}, []step{
			{message, "a", own},
			{started(1, 1), "", own},
			{event.LLMRequestFellBack{RequestID: requestID(1)}, "", own},
			{started(1, 3), "", own},
			{completed(1), "", last},
		}},
		"a rejected message ends the turn": {[]string{"b"}, []step{
			{rejected, "a", other},
			{rejected, "b", last},
		}},
		"a rejected input is identified by its first event": {[]string{"a", "b"}, []step{
			{rejected, "a", last},
		}},
		"the rejection of other input does not end the turn": {[]string{"a"}, []step{
			{message, "a", own},
			{started(1, 1), "", own},
			{rejected, "b", own},
			{completed(1), "", last},
		}},
		"closing interrupts the request and ends the turn": {[]string{"a"}, []step{
			{message, "a", own},
			{started(1, 1), "", own},
			{event.AssistantMessage{Content: "Hel", Partial: true}, "", own},
			{interrupted(1), "", last},
		}},
		"input after the end of a session is answered in the next": {[]string{"a"}, []step{
			{event.SessionEnded{}, "", other},
			{event.SessionStarted{}, "", other},
			{message, "a", own},
			{started(1, 3), "", own},
			{completed(1), "", last},
		}},
		"a session of another run ends the turn": {[]string{"a"}, []step{
			{message, "a", own},
			{started(1, 1), "", own},
			{event.SessionStarted{PreviousRunID: "run-1"}, "", last},
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			turn := client.NewTurn(test.sent...)
			for i, step := range test.steps {
				mine, over := turn.Add(recorded(i+1, step.body, step.clientID))
				want := step.want
				require.Equal(t, want != other, mine, "event %d belongs to the turn", i+1)
				require.Equal(t, want == last, over, "event %d ends the turn", i+1)
			}
		})
	}
}

func TestATurnFollowsAReset(t *testing.T) {
	message := event.UserMessage{Content: "Hello"}
	again := event.SessionStarted{PreviousRunID: "run"}
	type step struct {
		n        int
		body     event.Body
		clientID string
		over     bool
	}
	for name, steps := range map[string][]step{
		"after the message": {
			{2, message, "a", false}, {3, started(1, 2), "", false},
			{3, started(1, 2), "", false}, {4, completed(1), "", true},
		},
		"before the message, which is delivered again": {
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
				_, over := turn.Add(recorded(s.n, s.body, s.clientID))
				require.Equal(t, s.over, over, "step %d", i)
			}
		})
	}
}
