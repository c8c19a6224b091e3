// Package references keeps references to external payloads that come from outside a worker away from the
// Temporal SDK.
//
// Any sender can claim that a payload is the SDK's reference to an external payload. The SDK of a worker
// resolves all references of a workflow task before the workflow sees them, and fails the task if it cannot
// resolve one, each time the task is repeated. It knows no bound for what it loads, either. So a worker makes
// references in signals, updates, queries, headers, memos and the input of new workflows inert: they reach the
// workflow as data, which the activity Load resolves. References that the worker made itself, in results,
// markers and continued runs, are not changed.
package references

import (
	"bytes"
	"context"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/proxy"
	querypb "go.temporal.io/api/query/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	updatepb "go.temporal.io/api/update/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// Encodings of payloads. The SDK also reads references in an encoding of its early versions.
const (
	encodingInert  = "chronicle/reference"
	encodingLegacy = "json/external-storage-reference"
)

var messageType = string((&sdkpb.ExternalStorageReference{}).ProtoReflect().Descriptor().FullName())

// Is reports whether the SDK takes a payload for a reference.
func Is(payload *commonpb.Payload) bool {
	switch metadata := payload.GetMetadata(); string(metadata[converter.MetadataEncoding]) {
	case converter.MetadataEncodingProtoJSON:
		return string(metadata[converter.MetadataMessageType]) == messageType
	case encodingLegacy:
		return true
	}
	return false
}

// IsInert reports whether a payload is an inert reference.
func IsInert(payload *commonpb.Payload) bool {
	return string(payload.GetMetadata()[converter.MetadataEncoding]) == encodingInert
}

// Active returns the reference that an inert payload was.
func Active(inert []byte) *commonpb.Payload {
	return &commonpb.Payload{Data: inert, Metadata: map[string][]byte{
		converter.MetadataEncoding:    []byte(converter.MetadataEncodingProtoJSON),
		converter.MetadataMessageType: []byte(messageType),
	}}
}

// Codec decodes the responses of a Temporal server, makes references in them inert, and omits what a cached workflow
// has recorded itself, see omitRecorded. The client of a worker needs it.
func Codec() encoding.CodecV2 { return codec{encoding.GetCodecV2(grpcproto.Name)} }

type codec struct{ encoding.CodecV2 }

// Unmarshal visits the payloads only if the encoded response has what references contain. A visit costs a worker more
// than everything else that it does to receive a response, and hardly any response has a reference.
func (c codec) Unmarshal(data mem.BufferSlice, response any) error {
	buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	if err := c.CodecV2.Unmarshal(mem.BufferSlice{buffer}, response); err != nil {
		return err
	}
	message := response.(proto.Message)
	if page, ok := message.(*workflowservice.GetWorkflowExecutionHistoryResponse); ok {
		if err := DecodeRaw(page); err != nil {
			return err
		}
	}
	omitRecorded(message)
	encoded := buffer.ReadOnlyData()
	if !bytes.Contains(encoded, []byte(messageType)) && !bytes.Contains(encoded, []byte(encodingLegacy)) {
		return nil
	}
	return MakeInert(context.Background(), message)
}

// DecodeRaw decodes a history that servers with history.sendRawWorkflowHistory send encoded. It changes no other page.
func DecodeRaw(page *workflowservice.GetWorkflowExecutionHistoryResponse) error {
	if len(page.GetRawHistory()) == 0 {
		return nil
	}
	page.History = &historypb.History{}
	for _, blob := range page.GetRawHistory() {
		var part historypb.History
		if err := proto.Unmarshal(blob.GetData(), &part); err != nil {
			return fmt.Errorf("decode a page of a history: %w", err)
		}
		page.History.Events = append(page.History.Events, part.GetEvents()...)
	}
	page.RawHistory = nil
	return nil
}

// omitRecorded empties the SideEffect markers in a workflow task whose history continues that of a cached workflow.
// Only a replay reads them, which begins with a complete history, in other responses. The SDK would load them from the
// store, and keep them with the cached workflow.
func omitRecorded(response proto.Message) {
	var history *historypb.History
	switch response := response.(type) {
	case *workflowservice.PollWorkflowTaskQueueResponse:
		history = response.GetHistory()
	case *workflowservice.RespondWorkflowTaskCompletedResponse:
		history = response.GetWorkflowTask().GetHistory()
	}
	events := history.GetEvents()
	if len(events) == 0 || events[0].GetEventId() == 1 {
		return
	}
	for _, e := range events {
		marker := e.GetMarkerRecordedEventAttributes()
		if _, ok := marker.GetDetails()[markerData]; ok && marker.GetMarkerName() == sideEffectMarker {
			marker.Details[markerData] = &commonpb.Payloads{}
		}
	}
}

// Names of the SDK in histories.
const (
	sideEffectMarker = "SideEffect"
	markerData       = "data"
)

// MakeInert makes the references that come from outside inert in a message such as a history.
func MakeInert(ctx context.Context, message proto.Message) error {
	return proxy.VisitPayloads(ctx, message, proxy.VisitPayloadsOptions{
		SkipSearchAttributes: true,
		ContextHook: func(ctx context.Context, message proto.Message) (context.Context, error) {
			if isFromOutside(message) {
				ctx = context.WithValue(ctx, outside{}, true)
			}
			return ctx, nil
		},
		Visitor: func(ctx *proxy.VisitPayloadsContext, payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
			if ctx.Value(outside{}) == nil {
				return payloads, nil
			}
			MakeAllInert(payloads)
			return payloads, nil
		},
	})
}

// MakeAllInert makes the references among payloads inert.
func MakeAllInert(payloads []*commonpb.Payload) {
	for i, payload := range payloads {
		if Is(payload) {
			payloads[i] = &commonpb.Payload{Data: payload.GetData(), Metadata: map[string][]byte{
				converter.MetadataEncoding: []byte(encodingInert),
			}}
		}
	}
}

// outside is the key of a context in which payloads come from outside.
type outside struct{}

func isFromOutside(message proto.Message) bool {
	switch message := message.(type) {
	case *historypb.WorkflowExecutionStartedEventAttributes:
		return message.GetInitiator() != enumspb.CONTINUE_AS_NEW_INITIATOR_WORKFLOW
	case *historypb.WorkflowExecutionSignaledEventAttributes, *updatepb.Request, *querypb.WorkflowQuery,
		*commonpb.Header, *commonpb.Memo:
		return true
	}
	return false
}
