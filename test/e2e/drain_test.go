package e2e

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

// Every answer completes with a single request.
// On an overloaded machine, heartbeats are late, and requests are repeated.
func TestARollingDeploymentCompletesRunningAnswers_Long(t *testing.T) {
	long(t)
	onlyHeavy(t)
	gates := map[string]*llmtest.Gate{"first": llmtest.NewGate(), "second": llmtest.NewGate()}
	w := newWorld(t, llmtest.Func(func(r llmtest.Request) llmtest.Step {
		return llmtest.Answer("An", " answer", " to", " the "+r.LastUser()).HoldAfter(2, gates[r.LastUser()])
	}))
	old := []*process{w.drainingProcess(), w.drainingProcess()}
	var all []*client.Context
	for i := range 20 {
		all = append(all, w.open(fmt.Sprintf("deployed-%d", i)))
	}
	for i, text := range []string{"first", "second"} {
		var turns []*turn
		for _, c := range all {
			turns = append(turns, w.ask(c, text))
		}
		for _, turn := range turns {
			turn.underWay()
		}
		w.drainingProcess()
		require.NoError(t, syscall.Kill(old[i].PID(), syscall.SIGTERM))
		// The other worker records messages during the drain.
		for _, c := range all[:5] {
			w.send(c, note("", "during the drain"))
		}
		gates[text].Open()
		for n, turn := range turns {
			require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag())
			want := "An answer to the " + text
			// The answer may be recorded before its last delta arrives.
			require.True(t, strings.HasPrefix(want, deltaText(turn.seen)), "context %d: %q", n, deltaText(turn.seen))
			require.True(t, slices.ContainsFunc(turn.seen, func(e event.Event) bool {
				answer, ok := e.Body.(event.AssistantMessage)
				return ok && answer.Content == want && !answer.Partial
			}), "context %d", n)
			requireOneAttempt(t, turn.seen)
		}
		<-old[i].Done()
	}
	require.Len(t, w.model.Requests(), 2*len(all), "requests must not be repeated")
	for _, c := range all {
		w.log(c)
	}
}
