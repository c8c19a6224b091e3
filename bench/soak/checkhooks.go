package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-9ed7edd4/chronicle/bench/soak/agent"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
)

// hookReports are what the log must contain about an attempt that completed, by the hook of its message.
var hookReports = map[string]event.HookApplied{
	agent.Instruct:      {Stage: event.HookBefore, Outcome: event.HookChanged},
	agent.FailsOpen:     {Stage: event.HookBefore, Outcome: event.HookFailed},
	agent.ChangesAnswer: {Stage: event.HookAfter, Outcome: event.HookChanged},
}

type attemptID struct {
	request string
	attempt int
}

// checkHooks checks that no report is repeated, that attempts that completed have the report of the
// hook that their message names, and that refused requests were not sent.
func checkHooks(log []event.Event) error {
	var problems []error
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	reports := map[attemptID]map[string]event.HookApplied{}
	var started event.LLMRequestStarted
	completed := func(e event.Event) {
		hook := newestMessage(log, started.ThroughEventID).Script.Hook
		want, isReported := hookReports[hook]
		got := reports[attemptID{started.RequestID, started.Attempt}][hook]
		if isReported && (got.Stage != want.Stage || got.Outcome != want.Outcome) {
			wrong("%s ends attempt %d of %s without a report of the hook %s", e.ID, started.Attempt, started.RequestID, hook)
		}
		if agent.RefusesText(hook) {
			wrong("%s completes an attempt that the hook %s refuses", e.ID, hook)
		}
	}
	for _, e := range log {
		switch body := e.Body.(type) {
		case event.LLMRequestStarted:
			started = body
			if m := newestMessage(log, body.ThroughEventID); m.Script.Withheld {
				wrong("%s sends message %s, which a hook refuses", e.ID, m.Key)
			}
		case event.HookApplied:
			id := attemptID{body.RequestID, body.Attempt}
			if reports[id] == nil {
				reports[id] = map[string]event.HookApplied{}
			}
			if _, isRepeated := reports[id][body.Hook]; isRepeated {
				wrong("%s repeats the report of the hook %s", e.ID, body.Hook)
			}
			reports[id][body.Hook] = body
			if body.Hook == agent.Instruct && (body.Change == nil || body.Change.Instructions != "instructed:"+body.Reason) {
				wrong("%s does not contain the change of the request", e.ID)
			}
		case event.LLMAttemptEnded:
			if body.Outcome == event.AttemptToolCalls {
				completed(e)
			}
		case event.LLMRequestCompleted:
			completed(e)
		}
	}
	return errors.Join(problems...)
}

// deliveryTimeout bounds the wait for the last deliveries. A delivery of a killed worker is repeated.
const deliveryTimeout = time.Minute

// checkDelivered checks that the hook with OnEvent received the log, in order and completely. It waits
// for the last events.
func (u *user) checkDelivered(ctx context.Context, log []event.Event) error {
	if !u.kind.isAgent() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, deliveryTimeout)
	defer cancel()
	for {
		delivered := u.soak.executions.DeliveredTo(u.context.Name())
		err := checkDelivered(delivered, log)
		if err == nil || len(delivered.Problems) > 0 || !pause.For(ctx, 200*time.Millisecond) {
			u.soak.counts.delivered.Add(int64(len(delivered.Events)))
			u.soak.counts.repeated.Add(int64(delivered.Repeated))
			return err
		}
	}
}

// checkDelivered compares what a hook received with the log. The hook may have received newer events.
func checkDelivered(delivered agent.Delivered, log []event.Event) error {
	problems := delivered.Problems
	for i, e := range log {
		if i >= len(delivered.Events) {
			problems = append(problems, fmt.Errorf("%d events from %s on were not delivered", len(log)-i, e.ID))
			break
		}
		if hash, err := agent.Hash(e); err != nil || delivered.Events[i].Hash != hash {
			problems = append(problems, fmt.Errorf("%s of run %s was delivered, but it is not the event in the log", e.ID, delivered.Events[i].RunID))
			break
		}
	}
	return errors.Join(problems...)
}
