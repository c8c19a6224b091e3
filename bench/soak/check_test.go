package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// log numbers and chains bodies as a session does.
func log(bodies ...event.Body) []event.Event {
	var out []event.Event
	for i, body := range bodies {
		e := event.New(body)
		e.ID, e.ParentID = event.FormatID("demo", i+1), ""
		if i > 0 {
			e.ParentID = event.FormatID("demo", i)
		}
		if m, ok := body.(event.UserMessage); ok {
			e.ClientEventID = m.Content[:2] // its key
		}
		out = append(out, e)
	}
	return out
}

// check checks a log in which clients sent m1 and m2, and m3 for all they know.
func check(events []event.Event) []error {
	c := &client{
		sent:   []sentMessage{{"m1", "m1 1 0s"}, {"m2", "m2 2 0s"}, {"m3", "m3 1 0s"}},
		unsure: map[string]bool{"m3": true},
		told:   events,
	}
	return []error{
		checkChain("demo", events), c.checkTold(events), c.checkMessages(events),
		checkRequests(events), checkAnswers(events), c.checkRest(events),
	}
}

func TestWhatDoesNotHoldIsFound(t *testing.T) {
	m1, m2, m3 := event.UserMessage{Content: "m1 1 0s"}, event.UserMessage{Content: "m2 2 0s"}, event.UserMessage{Content: "m3 1 0s"}
	request := func(n int) string { return event.FormatRequestID("demo", n) }
	through := func(n int) string { return event.FormatID("demo", n) }
	started := func(n, attempt, seen int) event.Body {
		return event.LLMRequestStarted{RequestID: request(n), Attempt: attempt, ThroughEventID: through(seen)}
	}
	says := func(n, seen int, text string) event.Body {
		return event.AssistantMessage{RequestID: request(n), ThroughEventID: through(seen), Content: text}
	}
	completed := func(n int) event.Body { return event.LLMRequestCompleted{RequestID: request(n)} }
	begin := event.SessionStarted{}

	tests := map[string]struct {
		log  []event.Event
		want string // "" when all holds
	}{
		"two turns":       {log(begin, m1, started(1, 1, 2), says(1, 2, "re:m1 a "), completed(1), m2, started(2, 1, 6), says(2, 6, "re:m2 a b "), completed(2)), ""},
		"an unsure one":   {log(begin, m1, m2, m3, started(1, 1, 4), says(1, 4, "re:m3 a "), completed(1)), ""},
		"a lost message":  {log(begin, m1, started(1, 1, 2), says(1, 2, "re:m1 a "), completed(1)), "message m2 is lost"},
		"a doubled one":   {log(begin, m1, m2, m2, started(1, 1, 4), says(1, 4, "re:m2 a b "), completed(1)), "doubled"},
		"another order":   {log(begin, m2, m1, started(1, 1, 3), says(1, 3, "re:m1 a "), completed(1)), "order"},
		"no answer":       {log(begin, m1, started(1, 1, 2), says(1, 2, "re:m1 a "), completed(1), m2), "neither an answer nor a reason"},
		"no end":          {log(begin, m1, m2, started(1, 1, 3)), "has no end"},
		"two ends":        {log(begin, m1, m2, started(1, 1, 3), says(1, 3, "re:m2 a b "), completed(1), completed(1)), "has ended"},
		"two at a time":   {log(begin, m1, m2, started(1, 1, 3), started(2, 1, 3), completed(2), completed(1)), "but demo:r0001 runs"},
		"an attempt back": {log(begin, m1, m2, started(1, 2, 3), started(1, 1, 3), says(1, 3, "re:m2 a b "), completed(1)), "attempt 1, after attempt 2"},
		"a wrong answer":  {log(begin, m1, m2, started(1, 1, 3), says(1, 3, "re:m1 a "), completed(1)), `want "m2"`},
		"two glued":       {log(begin, m1, m2, started(1, 1, 3), says(1, 3, "re:m2 a re:m2 a b "), completed(1)), "with 4 tokens"},
		"a gap": {append(log(begin, m1), log(begin, m1, m2, m2, started(1, 1, 4), says(1, 4, "re:m2 a b "), completed(1))[3:]...),
			"want demo:0003 after demo:0002"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			problems := ""
			for _, err := range check(test.log) {
				if err != nil {
					problems += err.Error() + "\n"
				}
			}
			if test.want == "" {
				require.Empty(t, problems)
				return
			}
			require.Contains(t, problems, test.want)
		})
	}
}

func TestAFollowerMustBeToldTheLog(t *testing.T) {
	events := log(event.SessionStarted{}, event.UserMessage{Content: "m1 1 0s"})
	c := &client{told: log(event.SessionStarted{}, event.SystemPrompt{})}
	require.ErrorContains(t, c.checkTold(events), "does not bear out")
}
