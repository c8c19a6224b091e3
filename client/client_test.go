package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdktemporal "go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func open(t *testing.T, f *temporal) *client.Context {
	t.Helper()
	c, err := client.New(client.Options{Temporal: f}).Open("demo")
	require.NoError(t, err)
	return c
}

func TestOpenMakesNoRequest(t *testing.T) {
	c := client.New(client.Options{Temporal: &temporal{}})
	demo, err := c.Open("demo")
	require.NoError(t, err)
	require.Equal(t, "demo", demo.Name())
	require.False(t, c.Live())
	_, err = c.Open("de mo")
	require.ErrorIs(t, err, client.ErrName)
	require.EqualError(t, err, `context "de mo": a name has 1-128 of A-Z a-z 0-9 . _ -, first a letter or digit`)
	c.Shutdown() // leaves the connections of the caller open
}

func TestSendAppendsByAnUpdateThatStartsTheContext(t *testing.T) {
	f := &temporal{update: func(sdkclient.UpdateWorkflowOptions) (wire.Appended, error) {
		return wire.Appended{EventIDs: []string{"demo:0002"}}, nil
	}}
	c, err := client.New(client.Options{Temporal: f, TaskQueue: "mine"}).Open("demo")
	require.NoError(t, err)
	hello := event.New(event.UserMessage{Content: "<Hello>"})
	hello.ClientEventID = "one"
	sent, err := c.Send(t.Context(), hello)
	require.NoError(t, err)
	require.Equal(t, []string{"one"}, sent.ClientEventIDs)
	require.Equal(t, []string{"demo:0002"}, sent.EventIDs)
	require.Empty(t, f.signals, "the update has recorded it")

	again := []event.Event{hello, event.New(event.SystemPrompt{Content: "Be brief."})}
	again[1].ClientEventID = "two"
	for range 2 {
		_, err = c.Send(t.Context(), again...)
		require.NoError(t, err)
	}
	require.Len(t, f.updates, 3)
	for _, u := range f.updates {
		require.Equal(t, "context:demo", u.WorkflowID)
		require.Equal(t, "append", u.UpdateName)
	}
	require.NotEqual(t, f.updates[1].UpdateID, f.updates[2].UpdateID, "the server would return the first result again")
	require.Equal(t, `{"_tag":"UserMessageEvent","clientEventId":"one","content":"<Hello>"}`, dataOf(t, f.updates[0].Args))
	require.Equal(t, sdkclient.StartWorkflowOptions{
		ID: "context:demo", TaskQueue: "mine", WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE, Memo: map[string]any{},
	}, f.start)
}

func TestSendReturnsTheOutcomeOfTheUpdate(t *testing.T) {
	failure := func(kind string) error { return sdktemporal.NewApplicationError("busy", kind) }
	message := event.New(event.UserMessage{Content: "Hello"})
	send := func(f *temporal, err error) (client.Receipt, error) {
		f.update = func(sdkclient.UpdateWorkflowOptions) (wire.Appended, error) { return wire.Appended{}, err }
		return open(t, f).Send(t.Context(), message)
	}
	t.Run("rejected", func(t *testing.T) {
		f := &temporal{}
		sent, err := send(f, failure(wire.ErrorRejected))
		require.ErrorIs(t, err, client.ErrRefused)
		require.EqualError(t, err, "send to context demo: rejected: busy")
		require.Len(t, sent.ClientEventIDs, 1, "identifies the InputRejectedEvent")
		require.Empty(t, f.signals)
	})
	t.Run("invalid for this worker", func(t *testing.T) {
		f := &temporal{}
		_, err := send(f, failure(wire.ErrorInvalid))
		require.ErrorAs(t, err, new(*event.FieldError))
		require.Empty(t, f.signals)
	})
	for name, err := range map[string]error{
		"a worker without updates":     errors.New("unknown update append"),
		"too many updates for the run": serviceerror.NewResourceExhausted(enumspb.RESOURCE_EXHAUSTED_CAUSE_UNSPECIFIED, "limit"),
		"a run that is closing":        sdktemporal.NewApplicationError("workflow completed", "AcceptedUpdateCompletedWorkflow"),
		"no worker":                    serviceerror.NewDeadlineExceeded("too late"),
		"an expired update":            sdktemporal.NewNonRetryableApplicationError("expired", wire.ErrorExpired, nil),
		"a server without updates":     serviceerror.NewUnimplemented("update"),
	} {
		t.Run(name+" falls back to a signal", func(t *testing.T) {
			f := &temporal{}
			sent, err := send(f, err)
			require.NoError(t, err)
			require.Empty(t, sent.EventIDs)
			require.Len(t, f.signals, 1)
			require.Contains(t, f.signals[0].input, sent.ClientEventIDs[0], "deduplicates it if the update completes, too")
		})
	}
}

// A signal to the run would be deleted with it.
func TestSendWaitsForTheRunThatADeletionEnds(t *testing.T) {
	for name, refusals := range map[string]int{"the next run takes the input": 3, "the run does not end": 1000} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &temporal{}
				f.update = func(sdkclient.UpdateWorkflowOptions) (wire.Appended, error) {
					if len(f.updates) <= refusals {
						return wire.Appended{}, sdktemporal.NewNonRetryableApplicationError("", wire.ErrorDeleting, nil)
					}
					return wire.Appended{EventIDs: []string{"demo:0002"}}, nil
				}
				sent, err := open(t, f).Send(t.Context(), event.New(event.UserMessage{Content: "Hello"}))
				require.Empty(t, f.signals)
				if len(sent.EventIDs) == 0 {
					require.EqualError(t, err, "send to context demo: a deletion runs")
					require.Greater(t, len(f.updates), 100)
					return
				}
				require.NoError(t, err)
				require.Len(t, f.updates, 4)
			})
		})
	}
}

func TestLargeInputIsSignaled(t *testing.T) {
	f := &temporal{update: func(sdkclient.UpdateWorkflowOptions) (wire.Appended, error) {
		t.Error("ten updates of this size exceed the size of a message")
		return wire.Appended{}, nil
	}}
	c, err := client.New(client.Options{Temporal: f, Archive: archive.New(blobstest.New(t).Store)}).Open("demo")
	require.NoError(t, err)
	sent, err := c.Send(t.Context(), event.New(event.UserMessage{Content: strings.Repeat("x", wire.MaxAppendBytes)}))
	require.NoError(t, err)
	require.Empty(t, sent.EventIDs)
	require.Len(t, f.signals, 1)
}

// dataOf returns the input of an update, which expires.
func dataOf(t *testing.T, args []any) string {
	t.Helper()
	require.Len(t, args, 2)
	sent, now := args[1].(wire.Sent), time.Now()
	require.True(t, sent.Expires.After(now) && sent.Expires.Before(now.Add(11*time.Second)), sent.Expires)
	payload, err := converter.GetDefaultDataConverter().ToPayload(args[0])
	require.NoError(t, err)
	return string(payload.GetData())
}

func TestSendFallsBackToASignalWithoutAWorker(t *testing.T) {
	f := &temporal{}
	c, err := client.New(client.Options{Temporal: f, TaskQueue: "mine"}).Open("demo")
	require.NoError(t, err)
	one := event.New(event.UserMessage{Content: "<Hello>"})
	one.ClientEventID = "one"
	sent, err := c.Send(t.Context(), one)
	require.NoError(t, err)
	require.Equal(t, []string{"one"}, sent.ClientEventIDs)
	require.Empty(t, sent.EventIDs)

	batch := []event.Event{event.New(event.SystemPrompt{Content: "Be brief."}), one}
	sent, err = c.Send(t.Context(), batch...)
	require.NoError(t, err)
	ids := sent.ClientEventIDs
	require.Len(t, ids[0], 26, "an id is assigned")
	require.Equal(t, "one", ids[1])
	require.Empty(t, batch[0].ClientEventID, "the caller's events are unchanged")

	options := sdkclient.StartWorkflowOptions{
		ID: "context:demo", TaskQueue: "mine", WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE, Memo: map[string]any{},
	}
	require.Equal(t, []signal{
		{"context:demo", "event", `{"_tag":"UserMessageEvent","clientEventId":"one","content":"<Hello>"}`, options},
		{"context:demo", "event", `[{"_tag":"SystemPromptEvent","clientEventId":"` + ids[0] + `","content":"Be brief."},` +
			`{"_tag":"UserMessageEvent","clientEventId":"one","content":"<Hello>"}]`, options},
	}, f.signals)
}

func TestARunThatFollowsAnEndedOneNamesIt(t *testing.T) {
	for way, update := range map[string]func(sdkclient.UpdateWorkflowOptions) (wire.Appended, error){
		"update": func(sdkclient.UpdateWorkflowOptions) (wire.Appended, error) { return wire.Appended{}, nil },
		"signal": nil, // no worker
	} {
		t.Run(way, func(t *testing.T) {
			f := &temporal{ended: "run-0", update: update}
			_, err := open(t, f).Send(t.Context(), event.New(event.UserMessage{Content: "Hello"}))
			require.NoError(t, err)
			started := f.start
			if update == nil {
				require.Len(t, f.signals, 1)
				started = f.signals[0].options
			}
			require.Equal(t, map[string]any{wire.MemoPreviousRun: "run-0"}, started.Memo)
			require.Equal(t, enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE, started.WorkflowIDReusePolicy)
		})
	}
}

var invalidSchema = &event.ResponseFormat{Type: event.FormatJSONSchema, Schema: event.Object(`{"type":"strin"}`)}

func TestSendRejectsInvalidEventsWithoutARequest(t *testing.T) {
	large := event.New(event.UserMessage{Content: strings.Repeat("x", wire.MaxAppendBytes)})
	half := event.New(event.UserMessage{Content: strings.Repeat("x", wire.MaxAppendBytes/2)})
	keyed := event.New(event.UserMessage{Content: "Hello"})
	keyed.Extra = map[string]json.RawMessage{"apiKey": []byte(`"sk-live-0123456789"`)}
	misspelt := event.New(event.SetTools{Tools: event.ToolList{{Pattern: "grep"}}})
	misspelt.Extra = map[string]json.RawMessage{"aprove": []byte(`["*"]`)}
	named := event.New(event.UserMessage{Content: "Hello"})
	named.ClientEventID = strings.Repeat("x", event.MaxClientEventID+1)
	one, other := event.New(event.UserMessage{Content: "one"}), event.New(event.UserMessage{Content: "other"})
	one.ClientEventID, other.ClientEventID = "mine", "mine"
	for name, test := range map[string]struct {
		events []event.Event
		want   string
	}{
		"no events":               {nil, "the input has no events"},
		"an event without a body": {[]event.Event{{}}, "_tag"},
		"an invalid schema": {[]event.Event{event.New(event.SetRequestSettings{ResponseFormat: invalidSchema})},
			"SetRequestSettingsEvent.responseFormat.schema: invalid JSON Schema: /type: "},
		"an invalid schema of a message": {[]event.Event{event.New(event.UserMessage{Content: "x", Settings: &event.RequestSettings{ResponseFormat: invalidSchema}})},
			"UserMessageEvent.settings.responseFormat.schema: invalid JSON Schema: /type: "},
		"an invalid schema of a tool": {[]event.Event{event.New(event.SetTools{Tools: event.ToolList{{Pattern: "fetch"}, {Name: "ask", Parameters: event.Object(`{"type":5}`)}}})},
			"SetToolsEvent.tools.1.parameters: invalid JSON Schema: /type: "},
		"an invalid pattern of a tool": {[]event.Event{event.New(event.SetTools{Tools: event.ToolList{{Name: "ask", Parameters: event.Object(`{"pattern":"("}`)}}})},
			"SetToolsEvent.tools.0.parameters: invalid JSON Schema: /pattern: '(' is not valid regex: "},
		"a remote schema of a tool": {[]event.Event{event.New(event.SetTools{Tools: event.ToolList{{Name: "ask", Parameters: event.Object(`{"$ref":"https://example.com/ask.json"}`)}}})},
			`SetToolsEvent.tools.0.parameters: invalid JSON Schema: "https://example.com/ask.json" is another document`},
		"an invalid schema of a rule": {[]event.Event{event.New(event.SetTools{Approve: event.ApprovalRules{{Tool: "fetch"}, {Tool: "fetch", When: event.Object(`{"type":5}`)}}})},
			"SetToolsEvent.approve.1.when: invalid JSON Schema: /type: "},
		"a lifecycle event":                  {[]event.Event{event.New(event.SessionEnded{Reason: "forged"})}, "reserved for the session"},
		"a delta":                            {[]event.Event{event.New(event.TextDelta{RequestID: "demo:r0001"})}, "reserved for the session"},
		"a value out of range":               {[]event.Event{event.New(event.SetTimeout{})}, "SetTimeoutEvent.timeoutMs"},
		"a misspelt setting":                 {[]event.Event{misspelt}, `SetToolsEvent: unknown field "aprove" (did you mean "approve"?)`},
		"a raw key":                          {[]event.Event{keyed}, "apiKeyRef"},
		"a key instead of a reference":       {[]event.Event{event.New(event.SetProviderConfig{ProviderID: "openai", Model: "m", APIKeyRef: "sk-live-0123456789"})}, "apiKeyRef"},
		"an event that is too large":         {[]event.Event{large}, "the event has 65621 bytes of JSON (at most 61440 without a blob store; " + eventlog.StoreAdvice + ")"},
		"events that are too large together": {[]event.Event{half, half, half}, "bytes of JSON (at most 61440 without a blob store; "},
		"a client id that is too long":       {[]event.Event{named}, "clientEventId"},
		"two events with one client id":      {[]event.Event{one, one, other}, "UserMessageEvent.clientEventId: event 3 of 3 has the id of another event (assign unique ids)"},
		"an invalid event among valid ones":  {[]event.Event{event.New(event.UserMessage{Content: "Hello"}), event.New(event.SetTimeout{})}, "timeoutMs"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &temporal{}
			_, err := open(t, f).Send(t.Context(), test.events...)
			var refused *event.FieldError
			require.ErrorAs(t, err, &refused)
			require.ErrorContains(t, err, test.want)
			require.NotContains(t, err.Error(), "sk-live")
			require.Empty(t, f.signals)
			require.Empty(t, f.updates)
		})
	}
}

func TestAnInputMayContainAnEventTwice(t *testing.T) {
	f := &temporal{update: func(sdkclient.UpdateWorkflowOptions) (wire.Appended, error) {
		return wire.Appended{EventIDs: []string{"demo:0002", "demo:0002"}}, nil
	}}
	hello := event.New(event.UserMessage{Content: "Hello", TriggersTurn: new(true)})
	hello.ClientEventID = "one"
	again := event.New(event.UserMessage{Content: "Hello", TriggersTurn: new(true)})
	again.ClientEventID = "one"
	sent, err := open(t, f).Send(t.Context(), hello, again)
	require.NoError(t, err)
	require.Equal(t, []string{"one", "one"}, sent.ClientEventIDs)
	require.Len(t, f.updates, 1)
}

func TestInterruptAndClose(t *testing.T) {
	f := &temporal{}
	c := open(t, f)
	require.NoError(t, c.Interrupt(t.Context()))
	require.NoError(t, c.Close(t.Context(), "for today"))
	require.Equal(t, []signal{
		{workflowID: "context:demo", name: "interrupt"},
		{workflowID: "context:demo", name: "close", input: `{"reason":"for today"}`},
	}, f.signals)

	f.err = serviceerror.NewNotFound("workflow execution already completed")
	f.known = true
	require.NoError(t, c.Close(t.Context(), ""), "closing a closed context has no effect")
	require.NoError(t, c.Interrupt(t.Context()))
	f.known = false
	require.ErrorIs(t, c.Close(t.Context(), ""), client.ErrNoContext)
}

func TestStateQueriesTheContext(t *testing.T) {
	f := &temporal{state: wire.State{ContextName: "demo", Status: wire.StatusIdle, Turns: 3}}
	state, err := open(t, f).State(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, state.Turns)
	require.Equal(t, []string{"context:demo/state"}, f.queries)
}

func TestTheStateOfATerminatedContextIsClosed(t *testing.T) {
	f := &temporal{terminated: true, state: wire.State{Status: wire.StatusAnswering, Turns: 3, Request: &reducer.Request{ID: "demo:r1"}}}
	state, err := open(t, f).State(t.Context())
	require.NoError(t, err)
	require.Equal(t, wire.State{Status: wire.StatusClosed, Turns: 3}, state)
}

func TestErrorsOfTemporalAreMapped(t *testing.T) {
	send := func(ctx context.Context, c *client.Context) error {
		_, err := c.Send(ctx, event.New(event.UserMessage{Content: "Hello"}))
		return err
	}
	state := func(ctx context.Context, c *client.Context) error {
		_, err := c.State(ctx)
		return err
	}
	closing := func(ctx context.Context, c *client.Context) error { return c.Close(ctx, "") }
	odd := errors.New("odd")
	for name, test := range map[string]struct {
		do   func(context.Context, *client.Context) error
		err  error
		want error
		text string
	}{
		"no such workflow":                                {state, serviceerror.NewNotFound("gone"), client.ErrNoContext, "get the state of context demo: no such context"},
		"nothing to close":                                {closing, serviceerror.NewNotFound("gone"), client.ErrNoContext, "close context demo: no such context"},
		"the server is unavailable":                       {send, serviceerror.NewUnavailable("refused"), client.ErrUnreachable, "send to context demo: temporal is unreachable: refused"},
		"the server does not respond":                     {send, serviceerror.NewDeadlineExceeded("too late"), client.ErrBusy, "send to context demo: temporal is busy or does not respond (retry later): too late"},
		"the server has too many requests":                {send, serviceerror.NewResourceExhausted(enumspb.RESOURCE_EXHAUSTED_CAUSE_BUSY_WORKFLOW, "busy"), client.ErrBusy, "send to context demo: temporal is busy or does not respond (retry later): busy"},
		"a busy server is no other one":                   {send, serviceerror.NewDeadlineExceeded("too late"), client.ErrUnreachable, "send to context demo: temporal is busy or does not respond (retry later): too late"},
		"a deadline of the SDK":                           {closing, context.DeadlineExceeded, client.ErrBusy, "close context demo: temporal is busy or does not respond (retry later): context deadline exceeded"},
		"a query that times out":                          {state, serviceerror.NewDeadlineExceeded("too late"), client.ErrNoWorker, "get the state of context demo: no worker responds (start one, or retry later if they are busy)"},
		"a query that the server cancels at its deadline": {state, serviceerror.NewCanceled("stream terminated by RST_STREAM with error code: CANCEL"), client.ErrNoWorker, "get the state of context demo: no worker responds (start one, or retry later if they are busy)"},
		"a query without a worker":                        {state, serviceerror.NewFailedPrecondition("no poller"), client.ErrNoWorker, "get the state of context demo: no worker responds (start one, or retry later if they are busy): no poller"},
		"a query that fails":                              {state, serviceerror.NewQueryFailed("panic"), client.ErrNoWorker, "get the state of context demo: no worker responds (start one, or retry later if they are busy): panic"},
		"anything else":                                   {send, odd, odd, "send to context demo: odd"},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.do(t.Context(), open(t, &temporal{err: test.err}))
			require.ErrorIs(t, err, test.want)
			require.ErrorIs(t, err, test.err)
			require.EqualError(t, err, test.text)
		})
	}
}

func TestACancelledCallReturnsTheErrorOfItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := open(t, &temporal{noAnswer: true}).State(ctx)
	require.Equal(t, context.Canceled, err)
}

func TestListYieldsOneSummaryPerContext(t *testing.T) {
	start := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	attributes := func(status string, turns int) *commonpb.SearchAttributes {
		fields := map[string]*commonpb.Payload{}
		for name, value := range map[string]any{
			wire.AttributeStatus: status, wire.AttributeTurns: turns, wire.AttributeModel: "gpt-4o-mini",
			wire.AttributeTitle: "A trip", wire.AttributeLabels: []string{"a=b=c", "team=x"},
		} {
			payload, err := converter.GetDefaultDataConverter().ToPayload(value)
			require.NoError(t, err)
			fields[name] = payload
		}
		return &commonpb.SearchAttributes{IndexedFields: fields}
	}
	execution := func(id string, status enumspb.WorkflowExecutionStatus, a *commonpb.SearchAttributes) *workflowpb.WorkflowExecutionInfo {
		return &workflowpb.WorkflowExecutionInfo{
			Execution: &commonpb.WorkflowExecution{WorkflowId: id}, Status: status, SearchAttributes: a,
			StartTime: timestamppb.New(start), CloseTime: timestamppb.New(start.Add(time.Hour)),
		}
	}
	const running, ended = enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED
	fork := execution("context:plain-2", running, nil)
	root, err := converter.GetDefaultDataConverter().ToPayload("plain")
	require.NoError(t, err)
	fork.Memo = &commonpb.Memo{Fields: map[string]*commonpb.Payload{wire.MemoRoot: root}}
	f := &temporal{pages: []*workflowservice.ListWorkflowExecutionsResponse{
		{NextPageToken: []byte("+2"), Executions: []*workflowpb.WorkflowExecutionInfo{
			execution("context:new", running, attributes("answering", 2)),
			execution("context:plain", running, nil),
			fork,
			execution("something else", running, nil),
		}},
		{Executions: []*workflowpb.WorkflowExecutionInfo{
			execution("context:gone", ended, attributes("answering", 1)),
			execution("context:new", ended, attributes("closed", 1)),
		}},
	}}
	c := client.New(client.Options{Temporal: f})
	var got []client.Summary
	for s, err := range c.List(t.Context(), "ContextTurns > 0 OR ContextTurns < 0") {
		require.NoError(t, err)
		got = append(got, s)
	}
	labels := map[string]string{"a": "b=c", "team": "x"}
	require.Equal(t, []client.Summary{
		{ContextName: "new", Status: wire.StatusAnswering, Turns: 2, Model: "gpt-4o-mini", Title: "A trip", Labels: labels, StartedAt: start},
		{ContextName: "plain", StartedAt: start},
		{ContextName: "plain-2", StartedAt: start, Root: "plain"},
		{ContextName: "gone", Status: wire.StatusClosed, Turns: 1, Model: "gpt-4o-mini", Title: "A trip", Labels: labels, StartedAt: start, ClosedAt: start.Add(time.Hour)},
	}, got)
	const filter = "WorkflowType = 'Context' AND (ContextTurns > 0 OR ContextTurns < 0)"
	require.Equal(t, []string{filter, filter + "+2"}, f.queries)
}

func TestAnOutageOfTemporalIsReported(t *testing.T) {
	require.NoError(t, client.New(client.Options{Temporal: &temporal{}}).Ping(t.Context()))
	away := client.New(client.Options{Temporal: &temporal{err: serviceerror.NewUnavailable("away")}})
	require.ErrorIs(t, away.Ping(t.Context()), client.ErrUnreachable)
	for _, err := range away.List(t.Context(), "") {
		require.ErrorIs(t, err, client.ErrUnreachable)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, away.Ping(gone), context.Canceled)
	cut := client.New(client.Options{Temporal: &temporal{err: serviceerror.NewCanceled("context canceled")}})
	for _, err := range cut.List(gone, "") {
		require.ErrorIs(t, err, context.Canceled)
	}
}

// isolate unsets Temporal settings in the environment.
func isolate(t *testing.T) {
	for _, setting := range os.Environ() {
		if name, _, _ := strings.Cut(setting, "="); strings.HasPrefix(name, "TEMPORAL_") {
			t.Setenv(name, "")
		}
	}
	t.Setenv("TEMPORAL_CONFIG_FILE", filepath.Join(t.TempDir(), "none.toml"))
}

func TestDialCreatesNoBlobStore(t *testing.T) {
	isolate(t)
	folder := filepath.Join(t.TempDir(), "missing")
	_, err := client.Dial(t.Context(), client.Config{Address: "127.0.0.1:1", BlobURL: "file://" + filepath.ToSlash(folder)})
	require.ErrorContains(t, err, "missing\": the folder does not exist (check the URL; the first worker creates the folder)")
	require.NoDirExists(t, folder)
}

func TestDialReturnsWhenItsContextIsDone(t *testing.T) {
	isolate(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := client.Dial(ctx, client.Config{Address: "127.0.0.1:1"})
	require.Equal(t, context.Canceled, err)
}

func TestTheTaskQueueIsThatOfTheOpenRun(t *testing.T) {
	described := func(status enumspb.WorkflowExecutionStatus) *workflowservice.DescribeWorkflowExecutionResponse {
		return &workflowservice.DescribeWorkflowExecutionResponse{
			ExecutionConfig:       &workflowpb.WorkflowExecutionConfig{TaskQueue: &taskqueuepb.TaskQueue{Name: "theirs"}},
			WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Status: status},
		}
	}
	for want, run := range map[string]*workflowservice.DescribeWorkflowExecutionResponse{
		"theirs": described(enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING),
		"mine":   described(enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED),
	} {
		c, err := client.New(client.Options{Temporal: &temporal{run: run}, TaskQueue: "mine"}).Open("demo")
		require.NoError(t, err)
		got, err := c.TaskQueue(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	c, err := client.New(client.Options{Temporal: &temporal{}, TaskQueue: "mine"}).Open("demo")
	require.NoError(t, err)
	got, err := c.TaskQueue(t.Context())
	require.NoError(t, err)
	require.Equal(t, "mine", got, "no such context")
}
