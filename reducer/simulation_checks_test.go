package reducer_test

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// check checks the invariants between steps.
func (w *simulation) check() {
	s := w.session
	loaded := reducer.Load("demo", reducer.Reduce, w.history...)
	require.Equal(w, s.EventCount, loaded.EventCount)
	require.Equal(w, s.Reduced, loaded.Reduced)
	require.Equal(w, s.Details, loaded.Details)
	require.Equal(w, s.Turns, loaded.Turns)
	require.Equal(w, s.Model, loaded.Model)
	require.Equal(w, s.OpenToolCalls, loaded.OpenToolCalls)
	require.Equal(w, s.Started, loaded.Started)
	require.Equal(w, s.Ended, loaded.Ended)
	require.Equal(w, s.Recent, loaded.Recent)
	require.Equal(w, s.Usage, loaded.Usage)
	require.Equal(w, s.ContextTokens, loaded.ContextTokens)
	require.Equal(w, s.ProviderID, loaded.ProviderID)
	require.Equal(w, s.Offered, loaded.Offered)
	require.Equal(w, s.Windows, loaded.Windows)
	require.Equal(w, s.Removed, loaded.Removed)
	for _, e := range w.log {
		if e.ClientEventID != "" && e.Tag() != event.TagInputRejected {
			id, _ := s.Find(e.ClientEventID)
			require.Equal(w, e.ID, id)
		}
	}
	if s.Request == nil {
		require.Equal(w, s.Requests, loaded.Requests)
		require.Empty(w, s.Trigger, "an idle session has an unanswered message")
		require.Empty(w, loaded.Trigger)
		require.Empty(w, s.Closing, "a closing session is idle")
		require.Empty(w, w.waiting, "a message waits, but no request runs")
		w.checkReasons()
	} else {
		require.Equal(w, s.Requests, loaded.Requests)
		{
			require.Equal(w, s.Request.ID, loaded.Request.ID)
			require.Equal(w, s.Request.Attempt, loaded.Request.Attempt)
			require.Equal(w, s.Request.AttemptEnded, loaded.Request.AttemptEnded)
			require.Equal(w, s.Request.Steps, loaded.Request.Steps)
			require.Equal(w, s.Request.Through, loaded.Request.Through)
			require.Equal(w, s.Request.Refusals > 0, loaded.Request.Refusals > 0)
			require.Equal(w, idsOf(s.Request.Calls), idsOf(loaded.Request.Calls))
		}
		require.False(w, s.Ended, "a request runs in an ended session")
	}
	require.NoError(w, reducer.Validate(s.Reduced))
	w.checkRequests()
	w.checkAttempts()
	w.checkHooks()
	w.checkConversation()
	w.checkCompactions()
}

// checkAttempts requires that exactly one event records the end of each attempt, except of one that was withdrawn, and
// that the usage of the session is the sum over these events.
func (w *simulation) checkAttempts() {
	var running string // request and attempt; "" for none
	var ended reducer.Usage
	end := func(request string, attempt int, usage event.Usage) {
		if !strings.HasPrefix(running, request+" ") {
			require.Zero(w, usage, "an event about no attempt of %s has a usage", request)
			return
		}
		require.Contains(w, []string{running, request + " 0"}, fmt.Sprint(request, " ", attempt), "the end of another attempt")
		running, ended = "", ended.Add(usage)
	}
	for _, e := range w.log {
		switch body := e.Body.(type) {
		case event.LLMRequestStarted:
			isCorrection := running == fmt.Sprint(body.RequestID, " ", body.Attempt)
			require.True(w, running == "" || isCorrection || w.withdrawn[running], "%s begins without the end of an attempt", e.ID)
			running = fmt.Sprint(body.RequestID, " ", body.Attempt)
		case event.LLMAttemptEnded:
			require.NotEmpty(w, running, "%s is the end of no attempt", e.ID)
			end(body.RequestID, body.Attempt, body.Usage)
		case event.LLMRequestFellBack:
			end(body.RequestID, 0, body.Usage)
		case event.LLMRequestCompleted:
			end(body.RequestID, 0, body.Usage)
		case event.LLMRequestInterrupted:
			end(body.RequestID, 0, body.Usage)
		case event.LLMRequestFailed:
			end(body.RequestID, 0, body.Usage)
		}
	}
	if w.session.Request == nil {
		require.Empty(w, running, "the end of an attempt is missing")
	}
	require.Equal(w, ended, w.session.Usage)
}

// checkHooks requires that each hook is recorded once per attempt and stage, with its attempt, and
// that no fallback follows a refusal.
func (w *simulation) checkHooks() {
	recorded, sent := map[string]bool{}, map[string]int{}
	for _, e := range w.log {
		switch body := e.Body.(type) {
		case event.LLMRequestStarted:
			sent[body.RequestID] = body.Attempt
		case event.ToolsOffered:
			require.Equal(w, sent[body.RequestID], body.Attempt, "%s is about another attempt", e.ID)
		case event.HookApplied:
			key := fmt.Sprint(body.RequestID, body.Attempt, body.Stage, body.Hook)
			require.False(w, recorded[key], "%s repeats a report", e.ID)
			recorded[key] = true
			require.Equal(w, sent[body.RequestID], body.Attempt, "%s is about another attempt", e.ID)
		case event.LLMRequestFellBack:
			require.NotEqual(w, event.FailureRefusedByHook, body.Kind)
		}
	}
}

// isCorrected reports whether an event repeats the start of an attempt with another model.
func isCorrected(e event.Event, log []event.Event) bool {
	body := e.Body.(event.LLMRequestStarted)
	for i := event.Counter(e.ID) - 2; i >= 0; i-- {
		if earlier, ok := log[i].Body.(event.LLMRequestStarted); ok {
			return earlier.Model != body.Model || earlier.ProviderID != body.ProviderID
		}
	}
	return false
}

// checkReasons requires an event with the outcome of each message that requires an answer.
// Clients wait for it.
func (w *simulation) checkReasons() {
	shown, finished := map[string]int{}, 0
	end := func(requestID, through string) {
		finished = max(finished, cmp.Or(event.Counter(through), shown[requestID]))
	}
	for i, e := range w.log {
		switch body := e.Body.(type) {
		case event.LLMRequestStarted:
			shown[body.RequestID] = event.Counter(body.ThroughEventID)
		case event.RequestEnd:
			end(body.Request(), body.Unanswered())
		case event.SessionStarted, event.SessionEnded:
			finished = i + 1
		}
	}
	for i, e := range w.log[finished:] {
		require.False(w, event.RequiresAnswer(e.Body), "the log has no outcome of %s", w.log[finished+i].ID)
	}
}

// checkRequests requires that requests run one after the other, with attempts in order and
// one end each.
func (w *simulation) checkRequests() {
	running, attempt, ended := "", 0, map[string]bool{}
	about := func(id string) {
		require.False(w, ended[id], "request %s continues after its end", id)
		if running != id {
			require.Empty(w, running, "request %s begins before %s ends", id, running)
			running, attempt = id, 0
		}
	}
	end := func(id string) {
		about(id)
		running, ended[id] = "", true
	}
	open := false
	for _, e := range w.log {
		switch body := e.Body.(type) {
		case event.SessionStarted:
			open = true
		case event.SessionEnded:
			require.True(w, open, "a session ends twice")
			require.Empty(w, running, "a session ends before its request")
			open = false
			continue
		case event.LLMRequestStarted:
			about(body.RequestID)
			require.True(w, body.Attempt == attempt+1 || body.Attempt == attempt && isCorrected(e, w.log), "%s: attempt %d follows %d", e.ID, body.Attempt, attempt)
			require.Less(w, event.Counter(body.ThroughEventID), event.Counter(e.ID))
			attempt = body.Attempt
		case event.LLMRequestFellBack:
			about(body.RequestID)
		case event.RequestEnd:
			about(body.Request())
			require.True(w, attempt > 0 || e.Tag() != event.TagLLMRequestCompleted, "completed before any attempt")
			end(body.Request())
		}
		require.True(w, open, "%s is outside of every session", e.ID)
	}
	require.Equal(w, len(ended), w.session.Turns)
}
