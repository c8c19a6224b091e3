package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/starter/evaluate"
)

// The other model is rate-limited once. The probe must see the recorded call only.
func TestRecordedAnswersAreComparedWithThoseOfAnotherModel(t *testing.T) {
	t.Parallel()
	p := newProbe(t, echoed)
	var isLimited atomic.Bool
	w := newWorld(t, llmtest.Func(func(r llmtest.Request) llmtest.Step {
		isOther := r.Model == "other"
		switch {
		case isOther && !isLimited.Swap(true):
			return llmtest.Error(429, "rate_limit_exceeded", "slow down").RetryAfter("0")
		case isOther && len(r.Results()) > 0:
			return llmtest.Answer("It is", " done")
		case len(r.Results()) > 0:
			return llmtest.Answer("Done.")
		}
		return llmtest.Answer("Let me look.").Calls(p.call("probe", "a"))
	}))
	w.worker()
	c := w.open("evaluated")
	w.send(c, event.New(event.SystemPrompt{Content: "Be thorough."}))
	w.setTools(c, "probe")
	w.say(c, "Look")
	log, recorded := w.log(c), w.model.Requests()

	output := filepath.Join(t.TempDir(), "eval")
	args := []string{"eval", "-n", c.Name(), "--provider", "openai", "--model", "other", "--system", "Be brief.", "-o", output}
	printed := w.starter("", args...)
	require.Regexp(t, `2 answers of 1 context, agreement by words
recorded: agreement 100%, 0 failed, .*
recorded configuration, again: agreement 100%, 0 failed, .*
openai other with another system prompt: agreement 75%, 0 failed, .*`, printed)
	require.Equal(t, log, w.log(c), "nothing is recorded")
	require.Len(t, p.seen(), 1, "no tool is called")

	var again [][]byte
	requests := w.model.Requests()
	for _, r := range requests[len(recorded):] {
		if r.Model == "other" {
			require.Equal(t, []string{"system: Be brief.", "user: Look"}, contents(r)[:2])
			require.Equal(t, []string{"probe"}, r.ToolNames())
			continue
		}
		again = append(again, r.Body)
	}
	require.Len(t, requests, len(recorded)+2+3)
	require.ElementsMatch(t, [][]byte{recorded[0].Body, recorded[1].Body}, again)

	var report evaluate.Report
	data, err := os.ReadFile(output + ".json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &report))
	require.Equal(t, "It is done", report.Questions[1].Candidate.Text)
	require.Equal(t, "Done.", report.Questions[1].Recorded.Text)
	require.Equal(t, report.Questions[0].Recorded.Calls, report.Questions[0].Candidate.Calls)

	// Temporal still has the answer whose line was cut off.
	lines, err := os.ReadFile(output + ".jsonl")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(output+".jsonl", lines[:bytes.LastIndexByte(lines[:len(lines)-1], '\n')+9], 0o600))
	require.Equal(t, printed, w.starter("", args...))
	require.Len(t, w.model.Requests(), len(requests), "no question is asked again")

	_, errOut, err := w.tryStarter("", append(args, "--min-agreement", "0.8")...)
	require.Error(t, err)
	require.Contains(t, errOut, "the agreement of openai other with another system prompt is 0.750 (want 0.8 or more)")
}
