package main

import (
	"context"
	cryptorand "crypto/rand"
	"encoding/json"
	"fmt"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"golang.org/x/sync/errgroup"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

func payload(encoding string, data []byte) converter.RawValue {
	return converter.NewRawValue(&commonpb.Payload{Metadata: map[string][]byte{converter.MetadataEncoding: []byte(encoding)}, Data: data})
}

// signalWithStart starts the context if it does not run.
func (u *user) signalWithStart(ctx context.Context, name string, input any) error {
	_, err := u.Temporal.SignalWithStartWorkflow(ctx, u.id, name, input, sdkclient.StartWorkflowOptions{ID: u.id, TaskQueue: wire.TaskQueue}, wire.WorkflowType)
	return err
}

// signalInput sends a valid event as a plain signal, which Temporal accepts up to 512 KiB.
func signalInput(ctx context.Context, u *user) error {
	data, key := u.input()
	err := u.signalWithStart(ctx, wire.SignalEvent, payload("json/plain", data))
	if err == nil || ctx.Err() == nil && !strings.Contains(err.Error(), "exceeds") {
		u.accept(input{key: key, outcome: storedUnless(err)})
	}
	return err
}

func signalMalformed(ctx context.Context, u *user) error {
	name := pick(u.rand, wire.SignalEvent, wire.SignalEvent, wire.SignalEvent, wire.SignalInterrupt, "typo", "", "__temporal_x", words(u.rand, 300))
	encoding := pick(u.rand, "json/plain", "json/plain", "json/plain", "binary/null", "binary/plain", "json/protobuf", "binary/protobuf", "binary/encrypted", "")
	data := u.malformed()
	return u.signalWithStart(ctx, name, payload(encoding, data))
}

// request is the id of the newest request, or of another one.
func (u *user) request() string {
	newest := event.FormatRequestID(u.name(), 1)
	for _, e := range u.events() {
		if started, ok := e.Body.(event.LLMRequestStarted); ok {
			newest = started.RequestID
		}
	}
	return pick(u.rand, newest, newest, newest, event.FormatRequestID(u.name(), event.RequestNumber(newest)+1), "other:r0001", "")
}

// flood sends many small signals at once.
func flood(ctx context.Context, u *user) error {
	count := pick(u.rand, 20, 100, 300)
	var sending errgroup.Group
	sending.SetLimit(20)
	for i := range count {
		key := fmt.Sprintf("%s-flood-%d", u.newKey(), i)
		sending.Go(func() error {
			body, _ := json.Marshal(map[string]any{"_tag": "UserMessage", "content": "flood " + key, "clientEventId": key, "triggersTurn": i%10 == 0})
			err := u.signalWithStart(ctx, wire.SignalEvent, payload("json/plain", body))
			u.accept(input{key: key, outcome: storedUnless(err)})
			return err
		})
	}
	return sending.Wait()
}

func update(ctx context.Context, u *user) error {
	name, data, key := wire.UpdateAppend, []byte(nil), ""
	if u.rand.IntN(2) == 0 {
		data, key = u.input()
	} else {
		name, data = pick(u.rand, wire.UpdateAppend, wire.UpdateAppend, wire.UpdateReserve, "typo"), u.malformed()
	}
	handle, err := u.Temporal.UpdateWorkflow(ctx, sdkclient.UpdateWorkflowOptions{
		WorkflowID: u.id, UpdateName: name, Args: []any{payload("json/plain", data)}, WaitForStage: sdkclient.WorkflowUpdateStageAccepted,
	})
	var appended wire.Appended
	if err == nil {
		err = handle.Get(ctx, &appended)
	}
	if key != "" {
		in := input{key: key, outcome: storedUnless(err)}
		if len(appended.EventIDs) > 0 {
			in.outcome, in.eventID = recorded, appended.EventIDs[0]
		}
		u.accept(in)
	}
	return err
}

func query(ctx context.Context, u *user) error {
	name := pick(u.rand, wire.QueryState, wire.QuerySnapshot, wire.QueryDelivery, wire.QueryDelivery, "typo", sdkclient.QueryTypeStackTrace)
	_, err := u.Temporal.QueryWorkflow(ctx, u.id, "", name, payload(pick(u.rand, "json/plain", "binary/plain", ""), u.malformed()))
	return err
}

// start starts a workflow with forged input and memo, on the name of the context: it wins only if that does not run.
func start(ctx context.Context, u *user) error {
	_, err := u.Temporal.ExecuteWorkflow(ctx, sdkclient.StartWorkflowOptions{
		ID: u.id, TaskQueue: wire.TaskQueue, WorkflowExecutionErrorWhenAlreadyStarted: true,
		Memo: map[string]any{pick(u.rand, wire.MemoStore, wire.MemoPreviousRun, "x"): pick[any](u.rand, "evil", 7, []string{"a"}, u.claim(missing, "nope"))},
	}, wire.WorkflowType, pick[any](u.rand, payload("json/plain", u.malformed()), u.claim(missing, "nope"), payload("binary/plain", []byte{0xff}),
		map[string]any{"session": "AAAA", "packed": 7, "eventCount": -1}))
	return err
}

// useBudget sends garbage to the budget of a label that the context uses.
func useBudget(ctx context.Context, u *user) error {
	team := pick(u.rand, "a", u.name())
	id := wire.BudgetID("", "team", team)
	if err := u.postEvent(ctx, event.SetRequestSettings{Labels: map[string]string{"team": team}}); err != nil {
		return err
	}
	_, err := u.Temporal.SignalWithStartWorkflow(ctx, id, pick(u.rand, wire.SignalSettle, wire.SignalSettle, "event", "typo"),
		pick[any](u.rand, u.claim(missing, "nope"), payload("json/plain", u.malformed()), payload("binary/plain", nil), wire.Settle{Key: words(u.rand, 1000), Release: true},
			wire.Settle{Key: "k", Used: event.Amount{Tokens: -1 << 62}}),
		sdkclient.StartWorkflowOptions{ID: id, TaskQueue: wire.TaskQueue}, wire.WorkflowBudget, pick[any](u.rand, nil, 7, map[string]any{"day": "9999-99-99"}))
	if err != nil {
		return err
	}
	handle, err := u.Temporal.UpdateWorkflow(ctx, sdkclient.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: wire.UpdateReserve, WaitForStage: sdkclient.WorkflowUpdateStageAccepted,
		Args: []any{pick[any](u.rand, payload("json/plain", u.malformed()), u.claim(missing, "nope"), map[string]any{"reservations": nil})},
	})
	if err == nil {
		err = handle.Get(ctx, nil)
	}
	return err
}

func interrupt(ctx context.Context, u *user) error {
	return u.context.Interrupt(ctx)
}

func closeSession(ctx context.Context, u *user) error {
	if u.rand.IntN(2) == 0 {
		return u.Temporal.SignalWorkflow(ctx, u.id, "", wire.SignalClose, payload("json/plain", u.malformed()))
	}
	return u.context.Close(ctx, words(u.rand, pick(u.rand, 1, 10_000)))
}

func fork(ctx context.Context, u *user) error {
	name := fmt.Sprintf("%s-fork-%d", u.name(), u.step)
	if err := u.context.Fork(ctx, u.place(), name); err != nil {
		return err
	}
	u.forks = append(u.forks, name)
	return nil
}

func cancel(ctx context.Context, u *user) error {
	return u.Temporal.CancelWorkflow(ctx, u.id, "")
}

func terminate(ctx context.Context, u *user) error {
	defer func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.journal.lose()
	}()
	return u.Temporal.TerminateWorkflow(ctx, u.id, "", reason)
}

// reset returns the run to one of its workflow tasks. Temporal delivers later input again.
func reset(ctx context.Context, u *user) error {
	description, err := u.Temporal.DescribeWorkflowExecution(ctx, u.id, "")
	if err != nil {
		return err
	}
	run := description.GetWorkflowExecutionInfo().GetExecution().GetRunId()
	var tasks []int64
	for history := u.Temporal.GetWorkflowHistory(ctx, u.id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); history.HasNext(); {
		h, err := history.Next()
		if err != nil {
			return err
		}
		if h.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			tasks = append(tasks, h.GetEventId())
		}
	}
	if len(tasks) == 0 {
		return errNothing
	}
	u.mu.Lock()
	u.journal.resets++
	u.mu.Unlock()
	_, err = u.Temporal.ResetWorkflowExecution(ctx, &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: "default", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: u.id, RunId: run}, Reason: reason,
		WorkflowTaskFinishEventId: tasks[u.rand.IntN(len(tasks))], RequestId: cryptorand.Text(),
	})
	return err
}

// choosePlaces sends many messages without an answer, then answers and calls in places of its choice.
func choosePlaces(ctx context.Context, u *user) error {
	count := pick(u.rand, 50, 200, 1000)
	batch := func(nth func(i int) map[string]any) error {
		events := make([]map[string]any, 0, count)
		for i := range count {
			events = append(events, nth(i))
		}
		data, err := json.Marshal(events)
		if err != nil {
			return err
		}
		return u.post(ctx, data, nil)
	}
	err := batch(func(i int) map[string]any {
		return map[string]any{"_tag": "UserMessage", "content": fmt.Sprint("m", i), "triggersTurn": false}
	})
	if err != nil {
		return err
	}
	place := event.FormatID(u.name(), 2)
	if u.rand.IntN(2) == 0 {
		place = u.place()
	}
	if u.rand.IntN(2) == 0 {
		return batch(func(i int) map[string]any {
			return map[string]any{"_tag": "AssistantMessage", "content": fmt.Sprint("a", i), "throughEventId": place}
		})
	}
	return batch(func(i int) map[string]any {
		return map[string]any{"_tag": "ToolCall", "toolCallId": fmt.Sprintf("c%x-%d", u.step, i), "toolName": "t", "messageId": place}
	})
}
