package e2e

import (
	"crypto/rand"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	updatepb "go.temporal.io/api/update/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

func TestMalformedTraceHeadersAreIgnored(t *testing.T) {
	t.Parallel()
	w := newTraced(t, llmtest.Func(echo))
	w.worker()
	c := w.open("malformed-trace")
	w.say(c, "Hello")
	execution := &commonpb.WorkflowExecution{WorkflowId: wire.WorkflowID(c.Name())}
	for name, trace := range map[string]*commonpb.Payload{
		"no encoding": {Data: []byte("garbage")},
		"binary":      payload("binary/encrypted", "\x00\xff").Payload(),
		"broken JSON": payload("json/plain", `{"traceparent":`).Payload(),
		"a number":    payload("json/plain", `5`).Payload(),
		"another key": payload("json/plain", `{"x":"y"}`).Payload(),
		"no ids":      payload("json/plain", `{"traceparent":"garbage"}`).Payload(),
		"zero ids":    payload("json/plain", `{"traceparent":"00-00000000000000000000000000000000-0000000000000000-01"}`).Payload(),
	} {
		header := &commonpb.Header{Fields: map[string]*commonpb.Payload{"_tracer-data": trace}}
		for _, way := range []string{"signal", "update"} {
			text := "A " + way + " with " + name
			input, err := converter.GetDefaultDataConverter().ToPayloads(map[string]string{"_tag": "UserMessageEvent", "content": text})
			require.NoError(t, err)
			if way == "signal" {
				_, err = w.temporal.WorkflowService().SignalWorkflowExecution(w.ctx, &workflowservice.SignalWorkflowExecutionRequest{
					Namespace: "default", WorkflowExecution: execution, SignalName: wire.SignalEvent, Input: input, Header: header, RequestId: rand.Text(),
				})
				require.NoError(t, err)
			} else {
				updated, err := w.temporal.WorkflowService().UpdateWorkflowExecution(w.ctx, &workflowservice.UpdateWorkflowExecutionRequest{
					Namespace: "default", WorkflowExecution: execution,
					WaitPolicy: &updatepb.WaitPolicy{LifecycleStage: enumspb.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED},
					Request:    &updatepb.Request{Meta: &updatepb.Meta{UpdateId: rand.Text()}, Input: &updatepb.Input{Header: header, Name: wire.UpdateAppend, Args: input}},
				})
				require.NoError(t, err)
				require.NotNil(t, updated.GetOutcome().GetSuccess(), "%s: %v", text, updated.GetOutcome())
			}
			w.await(c, func(e event.Event) bool {
				answer, ok := e.Body.(event.AssistantMessage)
				return ok && answer.Content == "You said: "+text
			})
		}
	}
	w.replay(c, "")
}
