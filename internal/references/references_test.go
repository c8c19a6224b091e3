package references_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	protocolpb "go.temporal.io/api/protocol/v1"
	querypb "go.temporal.io/api/query/v1"
	updatepb "go.temporal.io/api/update/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/seed-9ed7edd4/chronicle/internal/references"
)

func reference() *commonpb.Payload { return references.Active([]byte(`{"driverName":"x"}`)) }

func legacy() *commonpb.Payload {
	return &commonpb.Payload{Data: []byte(`{}`), Metadata: map[string][]byte{"encoding": []byte("json/external-storage-reference")}}
}

func payloads(all ...*commonpb.Payload) *commonpb.Payloads { return &commonpb.Payloads{Payloads: all} }

func events(all ...*historypb.HistoryEvent) *workflowservice.PollWorkflowTaskQueueResponse {
	return &workflowservice.PollWorkflowTaskQueueResponse{History: &historypb.History{Events: all}}
}

func started(initiator enumspb.ContinueAsNewInitiator) proto.Message {
	return events(&historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
		WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{Initiator: initiator, Input: payloads(reference())},
	}})
}

// received returns a message as a worker receives it.
func received(t *testing.T, sent proto.Message) proto.Message {
	t.Helper()
	data, err := references.Codec().Marshal(sent)
	require.NoError(t, err)
	message := sent.ProtoReflect().New().Interface()
	require.NoError(t, references.Codec().Unmarshal(data, message))
	return message
}

func TestReferencesFromOutsideBecomeInert(t *testing.T) {
	request := &updatepb.Request{Input: &updatepb.Input{Args: payloads(reference())}}
	body, err := anypb.New(request)
	require.NoError(t, err)
	for name, test := range map[string]struct {
		message proto.Message
		inert   bool
	}{
		"the input of a new workflow":  {started(enumspb.CONTINUE_AS_NEW_INITIATOR_UNSPECIFIED), true},
		"the input of a cron run":      {started(enumspb.CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE), true},
		"the input of a continued run": {started(enumspb.CONTINUE_AS_NEW_INITIATOR_WORKFLOW), false},
		"a signal": {events(&historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{
			WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{Input: payloads(reference(), legacy())},
		}}), true},
		"the header of a signal": {events(&historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{
			WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{
				Header: &commonpb.Header{Fields: map[string]*commonpb.Payload{"trace": reference()}},
			},
		}}), true},
		"a memo": {events(&historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
			WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{
				Initiator: enumspb.CONTINUE_AS_NEW_INITIATOR_WORKFLOW,
				Memo:      &commonpb.Memo{Fields: map[string]*commonpb.Payload{"m": reference()}},
			},
		}}), true},
		"an update": {&workflowservice.PollWorkflowTaskQueueResponse{Messages: []*protocolpb.Message{{Body: body}}}, true},
		"an accepted update": {events(&historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionUpdateAcceptedEventAttributes{
			WorkflowExecutionUpdateAcceptedEventAttributes: &historypb.WorkflowExecutionUpdateAcceptedEventAttributes{AcceptedRequest: request},
		}}), true},
		"a query": {&workflowservice.PollWorkflowTaskQueueResponse{Query: &querypb.WorkflowQuery{QueryArgs: payloads(reference())}}, true},
		"a task that answers the completion of another": {&workflowservice.RespondWorkflowTaskCompletedResponse{
			WorkflowTask: &workflowservice.PollWorkflowTaskQueueResponse{Query: &querypb.WorkflowQuery{QueryArgs: payloads(legacy())}},
		}, true},
		"a result": {events(&historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{
			ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{Result: payloads(reference())},
		}}), false},
		"a marker": {events(&historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_MarkerRecordedEventAttributes{
			MarkerRecordedEventAttributes: &historypb.MarkerRecordedEventAttributes{Details: map[string]*commonpb.Payloads{"data": payloads(reference())}},
		}}), false},
		"other payloads": {events(&historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{
			WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{
				Input: payloads(&commonpb.Payload{Data: []byte(`{}`), Metadata: map[string][]byte{"encoding": []byte("json/plain")}}, nil),
			},
		}}), false},
	} {
		t.Run(name, func(t *testing.T) {
			before := proto.Clone(test.message)
			require.NoError(t, references.MakeInert(t.Context(), test.message))
			require.Equal(t, test.inert, !proto.Equal(before, test.message))
			once := proto.Clone(test.message)
			require.NoError(t, references.MakeInert(t.Context(), test.message))
			require.True(t, proto.Equal(once, test.message), "a second time changes nothing")
			require.True(t, proto.Equal(once, received(t, before)), "a worker receives it inert")
		})
	}
}

func TestAReferenceInARawHistoryIsInert(t *testing.T) {
	history := events(&historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{
		WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{Input: payloads(reference())},
	}}).GetHistory()
	data, err := proto.Marshal(history)
	require.NoError(t, err)
	raw := &workflowservice.GetWorkflowExecutionHistoryResponse{RawHistory: []*commonpb.DataBlob{{Data: data}, {Data: data}}}
	page := received(t, raw).(*workflowservice.GetWorkflowExecutionHistoryResponse)
	require.Empty(t, page.GetRawHistory())
	require.Len(t, page.GetHistory().GetEvents(), 2)
	for _, e := range page.GetHistory().GetEvents() {
		require.True(t, references.IsInert(e.GetWorkflowExecutionSignaledEventAttributes().GetInput().GetPayloads()[0]))
	}
}

func TestAnInertReferenceKeepsItsData(t *testing.T) {
	signaled := &historypb.WorkflowExecutionSignaledEventAttributes{Input: payloads(reference())}
	require.NoError(t, references.MakeInert(t.Context(), signaled))
	inert := signaled.GetInput().GetPayloads()[0]
	require.True(t, references.IsInert(inert))
	require.False(t, references.Is(inert))
	require.True(t, proto.Equal(reference(), references.Active(inert.GetData())))
}

func marker(id int64, name string) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{EventId: id, Attributes: &historypb.HistoryEvent_MarkerRecordedEventAttributes{
		MarkerRecordedEventAttributes: &historypb.MarkerRecordedEventAttributes{
			MarkerName: name, Details: map[string]*commonpb.Payloads{"side-effect-id": payloads(legacy()), "data": payloads(reference())},
		},
	}}
}

func TestACachedWorkflowDoesNotReceiveWhatItRecorded(t *testing.T) {
	first, next := &historypb.HistoryEvent{EventId: 1}, &historypb.HistoryEvent{EventId: 5}
	another := func(all ...*historypb.HistoryEvent) proto.Message {
		return &workflowservice.RespondWorkflowTaskCompletedResponse{WorkflowTask: events(all...)}
	}
	for name, test := range map[string]struct {
		message proto.Message
		omitted bool
	}{
		"a task of a cached workflow":           {events(next, marker(6, "SideEffect")), true},
		"a task with the completion of another": {another(next, marker(6, "SideEffect")), true},
		"a complete history":                    {events(first, marker(6, "SideEffect")), false},
		"another marker":                        {events(next, marker(6, "LocalActivity")), false},
		"a history for a replay":                {&workflowservice.GetWorkflowExecutionHistoryResponse{History: events(next, marker(6, "SideEffect")).GetHistory()}, false},
	} {
		t.Run(name, func(t *testing.T) {
			want := proto.Clone(test.message)
			if test.omitted {
				task, ok := want.(*workflowservice.PollWorkflowTaskQueueResponse)
				if !ok {
					task = want.(*workflowservice.RespondWorkflowTaskCompletedResponse).GetWorkflowTask()
				}
				task.GetHistory().GetEvents()[1].GetMarkerRecordedEventAttributes().Details["data"] = &commonpb.Payloads{}
			}
			require.True(t, proto.Equal(want, received(t, test.message)))
		})
	}
}
