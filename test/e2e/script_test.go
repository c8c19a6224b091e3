package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func (w *world) script(c *client.Context, lines ...string) []event.Event {
	w.t.Helper()
	var events []event.Event
	for line := range strings.Lines(w.starter(strings.Join(lines, "\n")+"\n", "script", "-n", c.Name())) {
		var e event.Event
		require.NoError(w.t, json.Unmarshal([]byte(line), &e), line)
		events = append(events, e)
	}
	return events
}

// printed returns the tag, clientEventId and counter of each event that a client sent.
func printed(events []event.Event) []string {
	var out []string
	for _, e := range events {
		if e.ClientEventID != "" {
			out = append(out, strings.TrimSuffix(string(e.Tag()), "Event")+" "+e.ClientEventID+" "+
				fmt.Sprint(event.Counter(e.ID)))
		}
	}
	return out
}

func TestAScriptPrintsRecordedEventsForRepeatedLines(t *testing.T) {
	t.Parallel()
	w := newWorldOn(t, environment{timeout: buildTimeout}, llmtest.Func(func(llmtest.Request) llmtest.Step { return llmtest.Answer("Yes.") }))
	w.worker()
	const (
		message  = `{"_tag":"UserMessage","clientEventId":"message","content":"Hello"}`
		settings = `{"_tag":"SetTimeout","clientEventId":"settings","timeoutMs":9000}`
		fresh    = `{"_tag":"UserMessage","clientEventId":"fresh","content":"Bye","triggersTurn":false}`
	)
	long := fmt.Sprintf(`{"_tag":"UserMessage","clientEventId":"long","content":%q,"triggersTurn":false}`, strings.Repeat("x", 100_000))
	c := w.open("script")
	first := w.script(c, settings, message, long)
	require.Equal(t, []string{"SetTimeout settings 2", "UserMessage message 3"}, printed(first)[:2])

	// Repeats in a later process, and in a later session.
	for range 2 {
		require.ElementsMatch(t, printed(first), printed(w.script(c, message, settings, long)))
		w.close(c, "")
	}
	// Repeats in one process, alone and in an array with a new event.
	again := w.script(c, fresh, fresh, "["+message+","+fresh+"]")
	require.Subset(t, printed(again), []string{"UserMessage message 3"})
	require.Contains(t, strings.Join(printed(again), "\n"), "UserMessage fresh ")
	require.Equal(t, 4, countOf(w, c, event.TagUserMessage)+countOf(w, c, event.TagSetTimeout))
}

func TestAScriptDeduplicatesBeyondTheSessionsMemory(t *testing.T) {
	t.Parallel()
	w := newWorldOn(t, environment{timeout: buildTimeout}, llmtest.Func(echo))
	w.worker()
	c := w.open("forgotten")
	w.send(c, note("old", "Hello"))
	var events []event.Event
	for i := range reducer.MaxRecent {
		events = append(events, note(fmt.Sprint(i), "Filler"))
	}
	w.send(c, events...)
	d, err := c.Delivery(w.ctx, "old")
	require.NoError(t, err)
	require.Empty(t, d.EventIDs, "the session has forgotten the event")

	line := `{"_tag":"UserMessageEvent","clientEventId":"old","content":"Hello","triggersTurn":false}`
	require.Equal(t, []string{"UserMessage old 2"}, printed(w.script(c, line)))
	require.Len(t, w.from(c, ""), 1+1+reducer.MaxRecent)
}
