package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	sdkclient "go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/bench/soak/agent"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// answerer decides about the calls that wait for approvals, and executes those of clients. It leaves
// some to expire, and answers some twice.
type answerer struct {
	user *user
	rand *rand.Rand
	sent int

	mu      sync.Mutex
	clients map[string]event.ToolCall // by call id
	waiting []func(context.Context)
	changed chan struct{} // has an element if something waits
}

func newAnswerer(u *user, seed uint64) *answerer {
	return &answerer{user: u, rand: rand.New(rand.NewPCG(seed, 1<<33)), clients: map[string]event.ToolCall{}, changed: make(chan struct{}, 1)}
}

// add takes an event of the log. It does not block.
func (a *answerer) add(e event.Event) {
	switch body := e.Body.(type) {
	case event.ToolCall:
		if agent.IsClients(body.ToolName) {
			a.mu.Lock()
			a.clients[body.ToolCallID] = body
			a.mu.Unlock()
		}
		if body.ToolName == agent.Ask {
			a.enqueue(func(ctx context.Context) { a.execute(ctx, body) })
		}
	case event.ApprovalRequested:
		a.enqueue(func(ctx context.Context) { a.decide(ctx, body.ToolCallID) })
	case event.ApprovalDecided:
		a.mu.Lock()
		call, ok := a.clients[body.ToolCallID]
		a.mu.Unlock()
		if ok && body.Decision == event.Approve {
			a.enqueue(func(ctx context.Context) { a.execute(ctx, call) })
		}
	}
}

func (a *answerer) enqueue(answer func(context.Context)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting = append(a.waiting, answer)
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

// run answers until ctx ends.
func (a *answerer) run(ctx context.Context) {
	for {
		select {
		case <-a.changed:
		case <-ctx.Done():
			return
		}
		a.mu.Lock()
		waiting := a.waiting
		a.waiting = nil
		a.mu.Unlock()
		for _, answer := range waiting {
			if pause.For(ctx, time.Duration(a.rand.Int64N(int64(300*time.Millisecond)))) {
				answer(ctx)
			}
		}
	}
}

func (a *answerer) decide(ctx context.Context, callID string) {
	decided := event.ApprovalDecided{ToolCallID: callID, Decision: event.Approve, DecidedBy: "soak"}
	switch a.rand.IntN(8) {
	case 0:
		return // it expires
	case 1, 2:
		decided.Decision, decided.Reason = event.Deny, "no"
	case 3:
		decided.Parameters = json.RawMessage(agent.Arguments{Key: callID + "-edited"}.String())
	case 4:
		decided.Parameters = json.RawMessage(invalid)
	case 5:
		decided.ToolCallID = "" // all that wait
	}
	a.send(ctx, decided)
	if a.rand.IntN(8) == 0 {
		decided.Decision, decided.Parameters = event.Deny, nil
		a.send(ctx, decided)
	}
}

func (a *answerer) execute(ctx context.Context, call event.ToolCall) {
	if a.rand.IntN(6) == 0 {
		return // it expires
	}
	result := event.ToolResult{ToolCallID: call.ToolCallID, Value: json.RawMessage(fmt.Sprintf("%q", "answer to "+call.ToolCallID))}
	if a.rand.IntN(4) == 0 {
		result.Value, result.Error, result.IsError = nil, json.RawMessage(`"no answer"`), true
	}
	a.send(ctx, result)
	if a.rand.IntN(8) == 0 {
		a.send(ctx, result)
	}
}

// send sends an update, or a plain signal.
func (a *answerer) send(ctx context.Context, body event.Body) {
	u := a.user
	a.sent++
	m := message{
		key: fmt.Sprintf("%s-answer-%d", u.context.Name(), a.sent), content: contentHash(body), answers: true, unordered: true,
	}
	n := u.add(m) // before sending, so that a concurrent termination counts it as a message that it may lose
	sending, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	e := event.New(body)
	e.ClientEventID = m.key
	var err error
	if a.rand.IntN(3) == 0 {
		m.outcome, err = u.signalEvent(sending, e)
	} else {
		m.outcome, m.eventID, err = u.send(sending, []event.Event{e})
	}
	if err == nil {
		u.soak.counts.answers.Add(1)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.journal.sent[n] = m
}

func (u *user) signalEvent(ctx context.Context, e event.Event) (outcome, error) {
	input, err := e.MarshalJSON()
	if err != nil {
		return unknown, err
	}
	id := wire.WorkflowID(u.context.Name())
	_, err = u.soak.rig.Temporal.SignalWithStartWorkflow(ctx, id, wire.SignalEvent, json.RawMessage(input),
		sdkclient.StartWorkflowOptions{ID: id, TaskQueue: u.taskQueue()}, wire.WorkflowType)
	if err != nil {
		return unknown, err
	}
	u.soak.counts.signals.Add(1)
	return stored, nil
}
