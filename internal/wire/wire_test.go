package wire_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Workers and clients of every version exchange these names.
func TestNamesOfTheProtocolNeverChange(t *testing.T) {
	for want, name := range map[string]string{
		"Context":                             wire.WorkflowType,
		"Send":                                wire.WorkflowSend,
		"contexts":                            wire.TaskQueue,
		"Load":                                wire.ActivityLoad,
		"Budget":                              wire.WorkflowBudget,
		"reserve":                             wire.UpdateReserve,
		"settle":                              wire.SignalSettle,
		"budget":                              wire.QueryBudget,
		"budget:team=support":                 wire.BudgetID("", "team", "support"),
		"budget:a%3Db=c%2Fd+%0A":              wire.BudgetID("", "a=b", "c/d \n"),
		"budget:acme/team=support":            wire.BudgetID("acme", "team", "support"),
		"budget:tenant=acme":                  wire.BudgetID("acme", "tenant", "acme"),
		"context:acme/demo":                   wire.WorkflowID("acme/demo"),
		"event":                               wire.SignalEvent,
		"interrupt":                           wire.SignalInterrupt,
		"close":                               wire.SignalClose,
		"append":                              wire.UpdateAppend,
		"Invalid":                             wire.ErrorInvalid,
		"Refused":                             wire.ErrorRejected,
		"Expired":                             wire.ErrorExpired,
		"state":                               wire.QueryState,
		"snapshot":                            wire.QuerySnapshot,
		"delivery":                            wire.QueryDelivery,
		"ContextStatus":                       wire.AttributeStatus,
		"ContextTurns":                        wire.AttributeTurns,
		"ContextModel":                        wire.AttributeModel,
		"chronicle-store":                     wire.MemoStore,
		"send:demo/daily":                     wire.ScheduleID("demo", "daily"),
		"schedule:daily-2026-01-02T09:00:00Z": wire.ScheduledEventID("demo", "send:demo/daily-2026-01-02T09:00:00Z"),
		`{"contextName":"demo","event":{"_tag":"UserMessageEvent","content":"Hi"}}`: encoded(t, wire.Scheduled{
			ContextName: "demo", Event: json.RawMessage(`{"_tag":"UserMessageEvent","content":"Hi"}`),
		}),
	} {
		require.Equal(t, want, name)
	}
}

// Anyone can start a workflow with any memo.
func TestAMemoThatNamesNoStoreIsIgnored(t *testing.T) {
	for _, test := range []struct {
		data any
		want string
	}{{"s1", "s1"}, {7, ""}, {[]string{"s1"}, ""}, {nil, ""}} {
		payload, err := converter.GetDefaultDataConverter().ToPayload(test.data)
		require.NoError(t, err)
		require.Equal(t, test.want, wire.StoreOf(&commonpb.Memo{Fields: map[string]*commonpb.Payload{wire.MemoStore: payload}}))
	}
	require.Empty(t, wire.StoreOf(nil))
}

func encoded(t *testing.T, value any) string {
	data, err := json.Marshal(value)
	require.NoError(t, err)
	return string(data)
}

// Names of other contexts and tenants have other ids, since each id round-trips.
func TestIDsRoundTripTheirNames(t *testing.T) {
	name := rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._-]{0,127}`)
	rapid.Check(t, func(t *rapid.T) {
		contextName, id := eventtest.ContextName().Draw(t, "context"), name.Draw(t, "id")
		of, ok := wire.ContextName(wire.WorkflowID(contextName))
		require.True(t, ok)
		require.Equal(t, contextName, of)
		gotName, gotID, ok := wire.ParseScheduleID(wire.ScheduleID(contextName, id))
		require.True(t, ok)
		require.Equal(t, []string{contextName, id}, []string{gotName, gotID})
	})
	for _, id := range []string{"", "daily", "send:", "send:demo", "send:demo/", "send:de mo/daily", "send:a/b/demo/daily", "context:demo/daily"} {
		_, _, ok := wire.ParseScheduleID(id)
		require.False(t, ok, id)
	}
}

func TestTenantsShareNoBudget(t *testing.T) {
	label := rapid.OneOf(rapid.StringMatching(`[a-c/=%+ ]{1,4}`), rapid.Just("team"))
	tenant := rapid.SampledFrom([]string{"", "a", "b", "a.b"})
	rapid.Check(t, func(t *rapid.T) {
		one := []string{tenant.Draw(t, "tenant"), label.Draw(t, "label"), label.Draw(t, "value")}
		other := []string{tenant.Draw(t, "other tenant"), label.Draw(t, "other label"), label.Draw(t, "other value")}
		require.Equal(t, slices.Equal(one, other), wire.BudgetID(one[0], one[1], one[2]) == wire.BudgetID(other[0], other[1], other[2]))
	})
}

func TestScheduledEventIDsAreValidAndDistinct(t *testing.T) {
	long := strings.Repeat("x", 200)
	seen := map[string]bool{}
	for _, workflowID := range []string{"mine", "send:demo/daily-2026-01-02T09:00:00Z", "send:demo/daily-2026-01-03T09:00:00Z",
		"send:demo/other-2026-01-02T09:00:00Z", long, long + "y"} {
		id := wire.ScheduledEventID("demo", workflowID)
		require.LessOrEqual(t, len(id), event.MaxClientEventID)
		require.False(t, seen[id], id)
		seen[id] = true
	}
}

func TestWorkflowIDRoundTripsTheContextName(t *testing.T) {
	require.Equal(t, "context:demo", wire.WorkflowID("demo"))
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._-]{0,127}`).Draw(t, "name")
		got, ok := wire.ContextName(wire.WorkflowID(name))
		require.True(t, ok)
		require.Equal(t, name, got)
	})
	for name, id := range map[string]string{
		"empty":                 "",
		"another workflow":      "order:demo",
		"a bare name":           "demo",
		"a bare prefix":         "context:",
		"another prefix":        "Context:demo",
		"a name with a colon":   "context:de:mo",
		"a name with a space":   "context:de mo",
		"a name over the limit": "context:" + strings.Repeat("x", event.MaxContextName+1),
	} {
		t.Run(name, func(t *testing.T) {
			_, ok := wire.ContextName(id)
			require.False(t, ok)
		})
	}
}

func TestStatus(t *testing.T) {
	answering := &reducer.Request{ID: "demo:r0001"}
	for name, test := range map[string]struct {
		session reducer.Session
		want    wire.Status
	}{
		"new":       {reducer.NewSession("demo"), wire.StatusIdle},
		"idle":      {reducer.Session{Started: true}, wire.StatusIdle},
		"answering": {reducer.Session{Started: true, Request: answering}, wire.StatusAnswering},
		"closing":   {reducer.Session{Started: true, Request: answering, Closing: "for today"}, wire.StatusAnswering},
		"closed":    {reducer.Session{Started: true, Ended: true}, wire.StatusClosed},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, wire.StatusOf(test.session)) })
	}
}

func TestStateOmitsAttachmentBytesAndKeepsTheSession(t *testing.T) {
	blob := reducer.Attachment{
		Source: event.Source{Type: event.SourceBlob, Data: []byte("bytes")}, MediaType: "image/png", FileName: "dot.png", Size: 5,
	}
	dataURL := reducer.Attachment{
		Source: event.Source{Type: event.SourceURL, URL: "data:image/png;base64,Ynl0ZXM="}, MediaType: "image/png",
	}
	ref := reducer.Attachment{
		Source: event.Source{Type: event.SourceBlob, Ref: "sha256/" + strings.Repeat("0", 64)}, MediaType: "image/png", Size: 5,
	}
	link := reducer.Attachment{
		Source: event.Source{Type: event.SourceURL, URL: "https://example.com/dot.png"}, MediaType: "image/png",
	}
	session := reducer.NewSession("demo")
	session.EventCount, session.Turns, session.Model = 7, 2, "gpt-4o-mini"
	session.ProviderID = "openai"
	session.Windows = []reducer.Window{{ProviderID: "azure", Model: "gpt-4o-mini", Tokens: 1}, {ProviderID: "openai", Model: "gpt-4o-mini", Tokens: 90}}
	session.Usage, session.ContextTokens = reducer.Usage{Attempts: 3, InputTokens: 7}, 5
	session.Reduced.Config.Request.Labels = map[string]string{"team": "support"}
	session.Reduced.Messages = []reducer.Message{
		{Role: reducer.RoleUser, Content: "Look", Attachments: []reducer.Attachment{blob, dataURL, link, ref}},
	}
	session.Reduced.PendingAttachments = []reducer.Attachment{blob}
	before, err := json.Marshal(session)
	require.NoError(t, err)

	at := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	state := wire.StateOf(session, at)
	after, err := json.Marshal(session)
	require.NoError(t, err)
	require.JSONEq(t, string(before), string(after))

	text, err := json.Marshal(state)
	require.NoError(t, err)
	require.NotContains(t, string(text), "Ynl0ZXM", "attachment bytes in the state")
	named := blob
	named.Source.Data = nil
	cut := dataURL
	cut.Source.URL = "data:image/png;base64,…"
	require.Equal(t, wire.State{
		ContextName: "demo", Status: wire.StatusIdle, EventCount: 7, LastEventID: "demo:0007", Turns: 2, Model: "gpt-4o-mini", MessageCount: 1,
		Usage:              reducer.Usage{Attempts: 3, InputTokens: 7},
		ContextTokens:      5,
		ContextWindow:      90,
		Metadata:           map[string]string{"team": "support"},
		Config:             session.Reduced.Config,
		Messages:           []reducer.Message{{Role: reducer.RoleUser, Content: "Look", Attachments: []reducer.Attachment{named, cut, link, ref}}},
		PendingAttachments: []reducer.Attachment{named},
		UpdatedAt:          at,
	}, state)
}

func TestLargeRequestSettingsLeaveLessRoomForMessages(t *testing.T) {
	session := reducer.NewSession("demo")
	for range 500 {
		session.Reduced.Messages = append(session.Reduced.Messages, reducer.Message{Role: reducer.RoleUser, Content: strings.Repeat("x", 100)})
	}
	labels := map[string]string{}
	for n := range event.MaxLabels {
		labels[fmt.Sprint("label ", n)] = strings.Repeat("x", event.MaxLabelBytes)
	}
	for name, settings := range map[string]event.RequestSettings{
		"extra fields and a schema": {
			Extra: event.Object(`{"x":"` + strings.Repeat("x", event.MaxExtraBytes-len(`{"x":""}`)) + `"}`),
			ResponseFormat: &event.ResponseFormat{Type: event.FormatJSONSchema, Schema: event.Object(
				`{"title":"` + strings.Repeat("x", event.MaxSchemaBytes/2) + `"}`)},
		},
		"labels, which are also the metadata": {Labels: labels},
	} {
		session.Reduced.Config.Request = settings
		state := wire.StateOf(session, time.Time{})
		require.NotEmpty(t, state.Messages, name)
		text, err := json.Marshal(state)
		require.NoError(t, err)
		require.Less(t, len(text), 50<<10, name)
	}
}

func TestStateShortensToolsAndCalls(t *testing.T) {
	session := reducer.NewSession("demo")
	for range 100 {
		session.Reduced.Messages = append(session.Reduced.Messages, reducer.Message{Role: reducer.RoleUser, Content: strings.Repeat("x", 1000)})
	}
	tools := &event.SetTools{MaxSteps: new(8), Approve: event.ApprovalRules{{Tool: "tool_1", When: event.Object(`{}`)}}}
	for n := range event.MaxTools {
		tools.Tools = append(tools.Tools, event.Tool{Name: fmt.Sprintf("tool_%d", n), Description: strings.Repeat("x", 400)})
	}
	session.Reduced.Config.Tools = tools
	session.Request = &reducer.Request{ID: "demo:r0001", Settings: &event.RequestSettings{Seed: new(int64(7))}}
	for n := range reducer.MaxCalls {
		session.Request.Calls = append(session.Request.Calls, reducer.Call{
			ID: fmt.Sprintf("call_%d", n), Name: "tool_1", State: reducer.CallQueued, Arguments: []byte(`{"x":"` + strings.Repeat("x", 5000) + `"}`),
		})
	}
	before, err := json.Marshal(session)
	require.NoError(t, err)
	state := wire.StateOf(session, time.Time{})
	text, err := json.Marshal(state)
	require.NoError(t, err)
	require.Less(t, len(text), 52<<10)
	require.NotEmpty(t, state.Messages)

	require.Nil(t, state.Request.Settings)
	require.Len(t, state.Request.Calls, reducer.MaxCalls)
	require.Less(t, len(state.Request.Calls[0].Arguments), 1100)
	require.Empty(t, state.Request.Calls[16].Arguments)
	require.Len(t, state.Config.Tools.Tools, event.MaxTools)
	require.Equal(t, event.Tool{Name: "tool_7"}, state.Config.Tools.Tools[7])
	require.Equal(t, event.ApprovalRules{{Tool: "tool_1"}}, state.Config.Tools.Approve)
	require.Equal(t, new(8), state.Config.Tools.MaxSteps)

	after, err := json.Marshal(session)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after), "StateOf modified the session")

	session.Reduced.Config.Tools = &event.SetTools{Tools: tools.Tools[:2]}
	require.Equal(t, session.Reduced.Config.Tools, wire.StateOf(session, time.Time{}).Config.Tools, "small tools are complete")
}

func TestStateOfANewContext(t *testing.T) {
	text, err := json.Marshal(wire.StateOf(reducer.NewSession("demo"), time.Time{}))
	require.NoError(t, err)
	require.JSONEq(t, `{
		"contextName": "demo", "status": "idle", "eventCount": 0, "turns": 0, "messageCount": 0, "messages": [],
		"config": {
			"primary": {"providerId": "openai", "model": "gpt-4o-mini", "isDefault": true},
			"retry": {"maxRetries": 3, "initialDelayMs": 100, "backoffFactor": 2, "maxDelayMs": 60000},
			"timeoutMs": 30000,
			"delivery": {"policy": "interrupt", "quietPeriodMs": 10, "maxWaitMs": 500}
		}
	}`, string(text))
}

func TestTheStateNamesTheDefaultOfTheWorker(t *testing.T) {
	session, _ := reducer.Step(reducer.NewSession("demo"), reducer.Opened{Options: reducer.Options{DefaultProviderID: "house", DefaultModel: "m1"}})
	require.Equal(t, reducer.ProviderConfig{ProviderID: "house", Model: "m1", IsDefault: true}, wire.StateOf(session, time.Time{}).Config.Primary)

	session, _ = reducer.Step(session, reducer.Received{Events: []event.Event{event.New(event.SetProviderConfig{ProviderID: "mine", Model: "m2"})}})
	require.Equal(t, reducer.ProviderConfig{ProviderID: "mine", Model: "m2"}, wire.StateOf(session, time.Time{}).Config.Primary)
}

func TestJSONRoundTripsWithoutEscapes(t *testing.T) {
	in := wire.Record{Events: []event.Event{event.New(event.UserMessage{Content: `<b>Tom & "Jerry"</b>`})}}
	raw, err := wire.JSON(in)
	require.NoError(t, err)
	payload := raw.Payload()
	require.Equal(t, `{"events":[{"_tag":"UserMessageEvent","content":"<b>Tom & \"Jerry\"</b>"}]}`, string(payload.GetData()))
	require.Equal(t, "json/plain", string(payload.GetMetadata()[converter.MetadataEncoding]))
	var out wire.Record
	require.NoError(t, converter.GetDefaultDataConverter().FromPayload(payload, &out))
	require.Equal(t, in, out)

	_, err = wire.JSON(func() {})
	require.Error(t, err)
}

func TestAQueryDoesNotReturnASessionWithLargeToolCalls(t *testing.T) {
	s := reducer.NewSession("demo")
	s.Request = &reducer.Request{ID: "demo:r0001", Calls: []reducer.Call{{ID: "call_1", Arguments: json.RawMessage(`{}`)}}}
	require.True(t, wire.Fits(s))
	s.Request.Calls[0].Arguments = json.RawMessage(`"` + strings.Repeat("x", wire.MaxSnapshotBytes) + `"`)
	require.False(t, wire.Fits(s))
}
