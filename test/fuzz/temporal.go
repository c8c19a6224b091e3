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

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

func payload(encoding string, data []byte) converter.RawValue {
	return converter.NewRawValue(&commonpb.Payload{Metadata: map[string][]byte{converter.MetadataEncoding: []byte(encoding)}, Data: data})
}

// signal starts the context if it does not run.
func (t *target) signal(ctx context.Context, name string, input any) error {
	_, err := t.Temporal.SignalWithStartWorkflow(ctx, t.id, name, input, sdkclient.StartWorkflowOptions{ID: t.id, TaskQueue: taskQueue}, wire.WorkflowType)
	return err
}

// signalInput sends a valid event as a plain signal, which Temporal accepts up to 512 KiB.
func signalInput(ctx context.Context, t *target) error {
	data, key := t.input()
	err := t.signal(ctx, wire.SignalEvent, payload("json/plain", data))
	if err == nil || ctx.Err() == nil && !strings.Contains(err.Error(), "exceeds") {
		t.accept(input{key: key, unsure: err != nil})
	}
	return err
}

func signalMalformed(ctx context.Context, t *target) error {
	name := pick(t.rand, wire.SignalEvent, wire.SignalEvent, wire.SignalEvent, wire.SignalInterrupt, "typo", "", "__temporal_x", words(t.rand, 300))
	encoding := pick(t.rand, "json/plain", "json/plain", "json/plain", "binary/null", "binary/plain", "json/protobuf", "binary/protobuf", "binary/encrypted", "")
	data := t.malformed()
	return t.signal(ctx, name, payload(encoding, data))
}

// request is the id of the newest request, or of another one.
func (t *target) request() string {
	newest := event.FormatRequestID(t.name, 1)
	for _, e := range t.events() {
		if started, ok := e.Body.(event.LLMRequestStarted); ok {
			newest = started.RequestID
		}
	}
	return pick(t.rand, newest, newest, newest, event.FormatRequestID(t.name, event.RequestNumber(newest)+1), "other:r0001", "")
}

// flood sends many small signals at once.
func flood(ctx context.Context, t *target) error {
	count := pick(t.rand, 20, 100, 300)
	failed := make(chan error, count)
	slots := make(chan struct{}, 20)
	for i := range count {
		key := fmt.Sprintf("%s-flood-%d", t.newKey(), i)
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			body, _ := json.Marshal(map[string]any{"_tag": "UserMessage", "content": "flood " + key, "clientEventId": key, "triggersTurn": i%10 == 0})
			err := t.signal(ctx, wire.SignalEvent, payload("json/plain", body))
			t.accept(input{key: key, unsure: err != nil})
			failed <- err
		}()
	}
	var last error
	for range count {
		if err := <-failed; err != nil {
			last = err
		}
	}
	return last
}

func update(ctx context.Context, t *target) error {
	name, data, key := wire.UpdateAppend, []byte(nil), ""
	if t.rand.IntN(2) == 0 {
		data, key = t.input()
	} else {
		name, data = pick(t.rand, wire.UpdateAppend, wire.UpdateAppend, wire.UpdateReserve, "typo"), t.malformed()
	}
	handle, err := t.Temporal.UpdateWorkflow(ctx, sdkclient.UpdateWorkflowOptions{
		WorkflowID: t.id, UpdateName: name, Args: []any{payload("json/plain", data)}, WaitForStage: sdkclient.WorkflowUpdateStageAccepted,
	})
	var appended wire.Appended
	if err == nil {
		err = handle.Get(ctx, &appended)
	}
	if key != "" {
		in := input{key: key, unsure: err != nil}
		if len(appended.EventIDs) > 0 {
			in.eventID = appended.EventIDs[0]
		}
		t.accept(in)
	}
	return err
}

func query(ctx context.Context, t *target) error {
	name := pick(t.rand, wire.QueryState, wire.QuerySnapshot, wire.QueryDelivery, wire.QueryDelivery, "typo", sdkclient.QueryTypeStackTrace)
	_, err := t.Temporal.QueryWorkflow(ctx, t.id, "", name, payload(pick(t.rand, "json/plain", "binary/plain", ""), t.malformed()))
	return err
}

// start starts a workflow with forged input and memo, on the name of the context: it wins only if that does not run.
func start(ctx context.Context, t *target) error {
	_, err := t.Temporal.ExecuteWorkflow(ctx, sdkclient.StartWorkflowOptions{
		ID: t.id, TaskQueue: taskQueue, WorkflowExecutionErrorWhenAlreadyStarted: true,
		Memo: map[string]any{pick(t.rand, wire.MemoStore, wire.MemoPreviousRun, "x"): pick[any](t.rand, "evil", 7, []string{"a"}, t.claim(missing, "nope"))},
	}, wire.WorkflowType, pick[any](t.rand, payload("json/plain", t.malformed()), t.claim(missing, "nope"), payload("binary/plain", []byte{0xff}),
		map[string]any{"session": "AAAA", "packed": 7, "eventCount": -1}))
	return err
}

// useBudget sends garbage to the budget of a label that the context uses.
func useBudget(ctx context.Context, t *target) error {
	team := pick(t.rand, "a", t.name)
	id := wire.BudgetID("team", team)
	if _, err := t.send(ctx, event.SetRequestSettings{Labels: map[string]string{"team": team}}); err != nil {
		return err
	}
	_, err := t.Temporal.SignalWithStartWorkflow(ctx, id, pick(t.rand, wire.SignalSettle, wire.SignalSettle, "event", "typo"),
		pick[any](t.rand, t.claim(missing, "nope"), payload("json/plain", t.malformed()), payload("binary/plain", nil), wire.Settle{Key: words(t.rand, 1000), Release: true},
			wire.Settle{Key: "k", Used: event.Amount{Tokens: -1 << 62}}),
		sdkclient.StartWorkflowOptions{ID: id, TaskQueue: taskQueue}, wire.WorkflowBudget, pick[any](t.rand, nil, 7, map[string]any{"day": "9999-99-99"}))
	if err != nil {
		return err
	}
	handle, err := t.Temporal.UpdateWorkflow(ctx, sdkclient.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: wire.UpdateReserve, WaitForStage: sdkclient.WorkflowUpdateStageAccepted,
		Args: []any{pick[any](t.rand, payload("json/plain", t.malformed()), t.claim(missing, "nope"), map[string]any{"reservations": nil})},
	})
	if err == nil {
		err = handle.Get(ctx, nil)
	}
	return err
}

func interrupt(ctx context.Context, t *target) error {
	return t.context.Interrupt(ctx)
}

func closeSession(ctx context.Context, t *target) error {
	if t.rand.IntN(2) == 0 {
		return t.Temporal.SignalWorkflow(ctx, t.id, "", wire.SignalClose, payload("json/plain", t.malformed()))
	}
	return t.context.Close(ctx, words(t.rand, pick(t.rand, 1, 10_000)))
}

func fork(ctx context.Context, t *target) error {
	name := fmt.Sprintf("%s-fork-%d", t.name, t.number)
	if err := t.context.Fork(ctx, t.place(), name); err != nil {
		return err
	}
	forked, err := t.Contexts.Open(name)
	if err == nil {
		t.mu.Lock()
		t.forks = append(t.forks, forked)
		t.mu.Unlock()
	}
	return err
}

func cancel(ctx context.Context, t *target) error {
	return t.Temporal.CancelWorkflow(ctx, t.id, "")
}

func terminate(ctx context.Context, t *target) error {
	defer t.lose()
	return t.Temporal.TerminateWorkflow(ctx, t.id, "", "fuzz")
}

// reset returns the run to one of its workflow tasks. Temporal delivers later input again.
func reset(ctx context.Context, t *target) error {
	description, err := t.Temporal.DescribeWorkflowExecution(ctx, t.id, "")
	if err != nil {
		return err
	}
	run := description.GetWorkflowExecutionInfo().GetExecution().GetRunId()
	var tasks []int64
	for history := t.Temporal.GetWorkflowHistory(ctx, t.id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); history.HasNext(); {
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
	t.mu.Lock()
	t.resets++
	t.mu.Unlock()
	_, err = t.Temporal.ResetWorkflowExecution(ctx, &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: "default", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: t.id, RunId: run}, Reason: "fuzz",
		WorkflowTaskFinishEventId: tasks[t.rand.IntN(len(tasks))], RequestId: cryptorand.Text(),
	})
	return err
}

// choosePlaces sends many messages without an answer, then answers and calls in places of its choice.
func choosePlaces(ctx context.Context, t *target) error {
	count := pick(t.rand, 50, 200, 1000)
	batch := func(nth func(i int) map[string]any) error {
		events := make([]map[string]any, 0, count)
		for i := range count {
			events = append(events, nth(i))
		}
		data, err := json.Marshal(events)
		if err != nil {
			return err
		}
		_, err = t.post(ctx, data, nil)
		return err
	}
	err := batch(func(i int) map[string]any {
		return map[string]any{"_tag": "UserMessage", "content": fmt.Sprint("m", i), "triggersTurn": false}
	})
	if err != nil {
		return err
	}
	place := event.FormatID(t.name, 2)
	if t.rand.IntN(2) == 0 {
		place = t.place()
	}
	if t.rand.IntN(2) == 0 {
		return batch(func(i int) map[string]any {
			return map[string]any{"_tag": "AssistantMessage", "content": fmt.Sprint("a", i), "throughEventId": place}
		})
	}
	return batch(func(i int) map[string]any {
		return map[string]any{"_tag": "ToolCall", "toolCallId": fmt.Sprintf("c%x-%d", t.number, i), "toolName": "t", "messageId": place}
	})
}
