package event_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func TestRunning(t *testing.T) {
	const first, second = "demo:r0001", "demo:r0002"
	asks := event.UserMessage{Content: "Hello"}
	started := func(id string, attempt, through int) event.Body {
		return event.LLMRequestStarted{RequestID: id, Attempt: attempt, ThroughEventID: event.FormatID("demo", through)}
	}
	for name, test := range map[string]struct {
		log     []event.Body
		request string
		attempt int // 0: none
	}{
		"nobody has asked":                          {nil, first, 0},
		"a note asks nothing":                       {[]event.Body{event.Note{Content: "note"}}, first, 0},
		"a message asks":                            {[]event.Body{asks}, first, 1},
		"the log shows the attempt":                 {[]event.Body{asks, started(first, 3, 1)}, first, 3},
		"an attempt failed":                         {[]event.Body{asks, started(first, 1, 1), event.LLMAttemptEnded{RequestID: first, Attempt: 1}}, first, 2},
		"an attempt was stopped before it was sent": {[]event.Body{asks, started(first, 1, 1), asks, started(first, 2, 3)}, first, 2},
		"the worker used another provider":          {[]event.Body{asks, started(first, 1, 1), started(first, 1, 1)}, first, 1},
		"the fallback answers":                      {[]event.Body{asks, started(first, 2, 1), event.LLMRequestFellBack{RequestID: first}}, first, 3},
		"after tool calls":                          {[]event.Body{asks, started(first, 1, 1), event.AssistantMessage{RequestID: first}}, first, 2},
		"a client's message ends no attempt":        {[]event.Body{asks, started(first, 1, 1), event.AssistantMessage{RequestID: "demo:r9999"}}, first, 1},
		"nor does one before the attempt":           {[]event.Body{asks, event.AssistantMessage{RequestID: first}}, first, 1},
		"everything is answered":                    {[]event.Body{asks, started(first, 1, 1), event.LLMRequestCompleted{RequestID: first}}, second, 0},
		"stopped by a person":                       {[]event.Body{asks, event.LLMRequestInterrupted{RequestID: first, ThroughEventID: "demo:0001"}}, second, 0},
		"stopped by a message":                      {[]event.Body{asks, started(first, 1, 1), asks, event.LLMRequestInterrupted{RequestID: first, ThroughEventID: "demo:0001"}}, second, 1},
		"asked again":                               {[]event.Body{asks, started(first, 1, 1), event.LLMRequestFailed{RequestID: first}, asks}, second, 1},
		"closed before the answer":                  {[]event.Body{asks, event.SessionEnded{}}, first, 0},
		"a repeated end changes nothing":            {[]event.Body{asks, started(second, 1, 1), event.LLMRequestFailed{RequestID: first}}, second, 1},
		"an imported log begins with request two":   {[]event.Body{asks, started(second, 1, 1)}, second, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var r event.Running
			for i, body := range test.log {
				e := event.New(body)
				e.ID = event.FormatID("demo", i+1)
				r = r.After(e)
			}
			for number := range 3 {
				id := event.FormatRequestID("demo", number+1)
				for attempt := 1; attempt < 5; attempt++ {
					isRunning := id == test.request && attempt == test.attempt
					require.Equal(t, isRunning, r.Compare(id, attempt) == 0, "%s, attempt %d", id, attempt)
				}
			}
			require.Negative(t, r.Compare("forged", 1))
		})
	}
}

func TestRunningIsUnknownUntilTheLogShowsIt(t *testing.T) {
	r := event.Running{Unknown: true}
	require.Zero(t, r.Compare("demo:r0007", 4))
	r = r.After(event.New(event.UserMessage{Content: "Hello"}))
	require.Zero(t, r.Compare("demo:r0007", 4))
	r = r.After(event.New(event.LLMRequestFailed{RequestID: "demo:r0003"}))
	require.Positive(t, r.Compare("demo:r0007", 4))
	require.Negative(t, r.Compare("demo:r0003", 4))
}
