package main

import (
	"errors"
	"fmt"

	"github.com/seed-9ed7edd4/chronicle/bench/rig"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// checkUsage checks that each attempt ends once, that completed ones have the usage that the model
// reported, that the sum is that of the session, and that it stays within the budget.
func checkUsage(log []event.Event, state wire.State) error {
	var problems []error
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	var open *event.LLMRequestStarted
	var limit *int64
	attempts, input, output := 0, 0, 0
	end := func(e event.Event, requestID string, usage event.Usage) {
		if open == nil || open.RequestID != requestID {
			if usage.InputTokens+usage.OutputTokens > 0 {
				wrong("%s has the usage of no attempt", e.ID)
			}
			return
		}
		open = nil
		attempts, input, output = attempts+1, input+usage.InputTokens, output+usage.OutputTokens
		if limit != nil && int64(input+output) > *limit {
			wrong("%s: %d tokens are used, more than the budget of %d", e.ID, input+output, *limit)
		}
	}
	for i, e := range log[:min(len(log), state.EventCount)] {
		switch body := e.Body.(type) {
		case event.BudgetSet:
			limit = body.Tokens
		case event.LLMRequestStarted:
			if open != nil {
				wrong("%s starts an attempt before the end of attempt %d of %s", e.ID, open.Attempt, open.RequestID)
			}
			open = &body
		case event.LLMAttemptEnded:
			if body.Outcome == event.AttemptToolCalls {
				problems = append(problems, checkOutput(log[:i], e.ID, open, body.Usage))
			}
			end(e, body.RequestID, body.Usage)
		case event.LLMRequestCompleted:
			problems = append(problems, checkOutput(log[:i], e.ID, open, body.Usage))
			end(e, body.RequestID, body.Usage)
		case event.LLMRequestFellBack:
			end(e, body.RequestID, body.Usage)
		case event.LLMRequestInterrupted:
			end(e, body.RequestID, body.Usage)
		case event.LLMRequestFailed:
			end(e, body.RequestID, body.Usage)
		}
	}
	if got := state.Usage; got.Attempts != attempts || got.InputTokens != input || got.OutputTokens != output {
		wrong("the session has %d attempts with %d and %d tokens, the log has %d with %d and %d",
			got.Attempts, got.InputTokens, got.OutputTokens, attempts, input, output)
	}
	return errors.Join(problems...)
}

// checkOutput compares the usage of a completed attempt with the answer that precedes it in the log.
func checkOutput(log []event.Event, id string, open *event.LLMRequestStarted, usage event.Usage) error {
	want := 0
	for i := len(log) - 1; i >= 0 && want == 0; i-- {
		if body, ok := log[i].Body.(event.AssistantMessage); ok {
			calls := len(callsOf(log[i+1:], log[i].ID))
			if want = newestMessage(log, body.ThroughEventID).Tokens; calls > 0 {
				want = 1 + calls
			}
		}
	}
	if open == nil || usage.InputTokens != rig.InputTokens || usage.OutputTokens != want {
		return fmt.Errorf("%s completes an attempt with %d and %d tokens, want %d and %d", id, usage.InputTokens, usage.OutputTokens, rig.InputTokens, want)
	}
	return nil
}
