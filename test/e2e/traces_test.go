package e2e

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
	tracecollector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	updatepb "go.temporal.io/api/update/v1"
	"go.temporal.io/api/workflowservice/v1"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/tracing"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

// traced is a world whose client and workers export their spans to memory.
type traced struct {
	*world
	tracers *sdktrace.TracerProvider
	spans   *tracetest.InMemoryExporter
	roots   map[trace.TraceID]string // names of the traces
}

func newTraced(t *testing.T, steps ...llmtest.Step) *traced {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	t.Cleanup(func() { require.NoError(t, tracers.Shutdown(context.Background())) })
	w := newWorldOn(t, environment{tracers: tracers, waitForUpdate: true}, steps...)
	return &traced{world: w, tracers: tracers, spans: spans, roots: map[trace.TraceID]string{}}
}

// in runs a function in a new trace.
func (w *traced) in(name string, f func()) {
	w.t.Helper()
	before := w.ctx
	ctx, root := tracing.StartRoot(w.ctx, w.tracers, trace.SpanKindClient, name, "")
	w.roots[root.SpanContext().TraceID()] = name
	w.ctx = ctx
	f()
	w.ctx = before
	root.End()
}

// tree returns the spans of a trace, with dashes below their parents, and with the given attributes
// and their links. Blob operations are omitted: their order depends on timing.
func (w *traced) tree(name string, shown ...attribute.Key) string {
	return w.treeOf(name, func(span string) bool { return !strings.HasPrefix(span, "blob ") }, shown...)
}

// treeOf is a tree of the spans whose names are included.
func (w *traced) treeOf(name string, included func(span string) bool, shown ...attribute.Key) string {
	children := map[trace.SpanID][]tracetest.SpanStub{}
	byID := map[trace.SpanID]tracetest.SpanStub{}
	for _, span := range w.spans.GetSpans() {
		byID[span.SpanContext.SpanID()] = span
		if w.roots[span.SpanContext.TraceID()] == name && included(span.Name) {
			children[span.Parent.SpanID()] = append(children[span.Parent.SpanID()], span)
		}
	}
	var lines []string
	var draw func(parent trace.SpanID, indent string)
	draw = func(parent trace.SpanID, indent string) {
		slices.SortStableFunc(children[parent], func(a, b tracetest.SpanStub) int {
			return cmp.Or(a.StartTime.Compare(b.StartTime), strings.Compare(a.Name, b.Name))
		})
		for _, span := range children[parent] {
			line := indent + span.Name
			for _, a := range span.Attributes {
				if slices.Contains(shown, a.Key) {
					line += fmt.Sprintf(" %s=%s", a.Key[strings.LastIndex(string(a.Key), ".")+1:], a.Value.String())
				}
			}
			for _, link := range span.Links {
				to := byID[link.SpanContext.SpanID()]
				line += fmt.Sprintf(" [%s %s in %s]", link.Attributes[0].Value.AsString(), to.Name, w.roots[to.SpanContext.TraceID()])
			}
			if span.Status.Code == codes.Error {
				line += " error"
			}
			lines = append(lines, line)
			draw(span.SpanContext.SpanID(), indent+"- ")
		}
	}
	draw(trace.SpanID{}, "")
	return strings.Join(lines, "\n")
}

func (w *traced) span(name string) tracetest.SpanStub {
	w.t.Helper()
	spans := w.spans.GetSpans()
	i := slices.IndexFunc(spans, func(s tracetest.SpanStub) bool { return s.Name == name })
	require.GreaterOrEqual(w.t, i, 0, "no span %s", name)
	return spans[i]
}

func TestATraceShowsATurnWithAnInterruptionARetryAndATool(t *testing.T) {
	t.Parallel()
	p := newProbe(t, echoed)
	w := newTraced(t,
		llmtest.Answer("One", " two").HoldAfter(1, llmtest.NewGate()),
		llmtest.Error(500, "server_error", "down"),
		llmtest.Answer("Let me look.").Calls(p.call("probe", "a")),
		llmtest.Answer("Done.").Usage(12, 3),
	)
	w.worker()
	c := w.open("traced")
	var interrupted *turn
	w.in("first", func() {
		w.setTools(c, "probe")
		w.send(c, event.New(event.SetRetryConfig{MaxRetries: 1, InitialDelayMs: 1}))
	})
	w.in("second", func() {
		interrupted = w.ask(c, "Count")
		interrupted.underWay()
	})
	w.in("third", func() { w.ask(c, "Look").rest() })
	interrupted.rest()

	require.Equal(t, story(`
		first
		- UpdateWithStartWorkflow:append
		- - HandleUpdate:append
		- - StartActivity:Open
		- - - RunActivity:Open
		- UpdateWithStartWorkflow:append
		- - HandleUpdate:append
	`), w.tree("first"))
	require.Equal(t, story(`
		second
		- UpdateWithStartWorkflow:append
		- - HandleUpdate:append
		- - StartActivity:Generate
		- - - RunActivity:Generate attempt=1 outcome=interrupted [includes UpdateWithStartWorkflow:append in first] [includes UpdateWithStartWorkflow:append in first]
		- - - - chat scripted
	`), w.tree("second", tracing.Attempt, tracing.Outcome, semconv.ErrorTypeKey))
	require.Equal(t, story(`
		third
		- UpdateWithStartWorkflow:append
		- - HandleUpdate:append
		- - StartActivity:Stop
		- - - RunActivity:Stop
		- - StartActivity:Generate
		- - - RunActivity:Generate attempt=1 outcome=failed [interrupts RunActivity:Generate in second] error
		- - - - chat scripted type=server error error
		- - StartActivity:Generate
		- - - RunActivity:Generate attempt=2 outcome=tool_calls [retries RunActivity:Generate in third]
		- - - - chat scripted
		- - StartActivity:CallTool
		- - - RunActivity:CallTool
		- - - - execute_tool probe outcome=ok
		- - StartActivity:Generate
		- - - RunActivity:Generate attempt=3 outcome=completed
		- - - - chat scripted
	`), w.tree("third", tracing.Attempt, tracing.Outcome, semconv.ErrorTypeKey))
	w.replay(c, "")
}

func TestASpanOfAModelCallFollowsTheConventions(t *testing.T) {
	t.Parallel()
	w := newTraced(t, llmtest.Answer("Done.").Usage(12, 3).Cached(5))
	w.worker()
	c := w.open("conventions")
	w.in("turn", func() { w.say(c, "My secret plan") })
	call := w.span("chat scripted")
	require.Equal(t, trace.SpanKindClient, call.SpanKind)
	got := map[attribute.Key]any{}
	for _, a := range call.Attributes {
		got[a.Key] = a.Value.AsInterface()
	}
	for _, key := range []attribute.Key{semconv.GenAIResponseTimeToFirstChunkKey, semconv.ServerPortKey, semconv.GenAIResponseIDKey} {
		require.NotEmpty(t, got[key], key)
		delete(got, key)
	}
	require.Equal(t, map[attribute.Key]any{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.conversation.id": c.Name(),
		"gen_ai.request.model": "scripted", "gen_ai.request.stream": true, "gen_ai.response.model": "scripted",
		"gen_ai.response.finish_reasons": []string{"stop"}, "server.address": "127.0.0.1",
		"gen_ai.usage.input_tokens": int64(12), "gen_ai.usage.output_tokens": int64(3), "gen_ai.usage.cache_read.input_tokens": int64(5),
	}, got)
	parent := w.model.Requests()[0].Header.Get("traceparent")
	require.Contains(t, parent, call.SpanContext.TraceID().String()+"-"+call.SpanContext.SpanID().String(), "the provider can continue the trace")
	for _, span := range w.spans.GetSpans() {
		require.NotContains(t, fmt.Sprint(span.Attributes, span.Events, span.Status), "secret plan", "content is traced only if asked for")
	}
}

func TestInputWithoutATraceStartsOnePerTurn(t *testing.T) {
	t.Parallel()
	p := newProbe(t, echoed)
	w := newTraced(t, llmtest.Answer("Let me look.").Calls(p.call("probe", "a")), llmtest.Answer("Done."))
	w.worker()
	c := w.open("headless")
	plain := (&world{t: t, ctx: w.ctx, on: environment{temporal: w.on.temporal}}).dial(w.archive.Store())
	for _, input := range []map[string]any{
		{"_tag": "SetToolsEvent", "tools": []string{"probe"}},
		{"_tag": "UserMessageEvent", "content": "Look"},
	} {
		_, err := plain.SignalWithStartWorkflow(w.ctx, wire.WorkflowID(c.Name()), wire.SignalEvent, input,
			sdkclient.StartWorkflowOptions{ID: wire.WorkflowID(c.Name()), TaskQueue: w.queue}, wire.WorkflowType)
		require.NoError(t, err)
	}
	w.await(c, isTag(event.TagLLMRequestCompleted))
	start := w.span("StartActivity:Generate")
	require.False(t, start.Parent.IsValid())
	w.roots[start.SpanContext.TraceID()] = "turn"
	require.Equal(t, story(`
		StartActivity:Generate
		- RunActivity:Generate outcome=tool_calls
		- - chat scripted
		- - StartActivity:CallTool
		- - - RunActivity:CallTool
		- - - - execute_tool probe outcome=ok
		- - StartActivity:Generate
		- - - RunActivity:Generate outcome=completed
		- - - - chat scripted
	`), w.tree("turn", tracing.Outcome))
	w.replay(c, "")
}

// A signal carries what an update cannot: large input, and input without a worker.
func TestATraceShowsALargeMessage(t *testing.T) {
	t.Parallel()
	w := newTraced(t, llmtest.Answer("Hello"), llmtest.Answer("Long."))
	stop := w.worker()
	c := w.open("large-traced")
	w.in("first", func() { w.say(c, "Hi") })
	first := w.tree("first")
	stop()
	w.in("large", func() {
		_, err := c.Send(w.ctx, event.New(event.UserMessage{Content: strings.Repeat("long text ", 10_000)}))
		require.NoError(t, err)
	})
	w.worker()
	w.await(c, func(e event.Event) bool {
		answer, ok := e.Body.(event.AssistantMessage)
		return ok && answer.Content == "Long."
	})
	require.Equal(t, story(`
		large
		- SignalWithStartWorkflow:Context
		- - blob stat outcome=missing
		- - blob write outcome=ok
		- - HandleSignal:event
		- - StartActivity:Generate
		- - - RunActivity:Generate outcome=completed
		- - - - chat scripted
	`), w.treeOf("large", func(string) bool { return true }, tracing.Outcome))
	require.Equal(t, first+"\n- - StartActivity:Load\n- - - RunActivity:Load", w.tree("first"), "the replay makes no spans")
	w.replay(c, "")
}

func TestStarterSendPrintsTheIDOfTheExportedTrace(t *testing.T) {
	t.Parallel()
	exports := make(chan *tracecollector.ExportTraceServiceRequest, 100)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		request := &tracecollector.ExportTraceServiceRequest{}
		if err = errors.Join(err, proto.Unmarshal(body, request)); err != nil {
			t.Error(err)
		}
		exports <- request
	}))
	defer collector.Close()
	w := newWorld(t, llmtest.Answer("Hello"))
	w.worker()
	c := w.open("printed-trace")
	file, err := built()
	require.NoError(t, err)
	cmd := exec.CommandContext(w.ctx, file, w.withAddresses([]string{"send", "-n", c.Name(), "-m", "Hi", "--trace"})...)
	cmd.Env = append(os.Environ(), "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="+collector.URL+"/v1/traces")
	var out, errOut strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errOut
	require.NoError(t, cmd.Run(), &errOut)
	collector.Close()
	close(exports)

	printed := regexp.MustCompile(`\btrace ([0-9a-f]{32})\b`).FindStringSubmatch(out.String() + errOut.String())
	require.NotNil(t, printed, "%s%s", &out, &errOut)
	var names []string
	for export := range exports {
		for _, resource := range export.GetResourceSpans() {
			for _, scope := range resource.GetScopeSpans() {
				for _, span := range scope.GetSpans() {
					names = append(names, span.GetName())
					require.Equal(t, printed[1], hex.EncodeToString(span.GetTraceId()), span.GetName())
				}
			}
		}
	}
	require.Contains(t, names, "starter send")
	require.Contains(t, names, "UpdateWithStartWorkflow:append")
}

func TestATraceContinuesWithItsRun(t *testing.T) {
	t.Parallel()
	p := newProbe(t, echoed)
	w := newTraced(t, llmtest.Calls(p.call("probe", "a")), llmtest.Answer("Done."))
	w.worker(shortRuns)
	c := w.open("continued")
	w.send(c, event.New(event.SetTools{Tools: event.ToolList{{Pattern: "*"}}, Approve: event.ApprovalRules{{Tool: "probe*"}}}))
	var turn *turn
	w.in("turn", func() {
		turn = w.ask(c, "Look")
		turn.until(isTag(event.TagApprovalRequested))
	})
	w.continueAsNew(c)
	w.send(c, event.New(event.ApprovalDecided{Decision: event.Approve}))
	require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag())
	require.Regexp(t, `(?m)^- - - RunActivity:Generate outcome=completed$`, w.tree("turn", tracing.Outcome))
	require.NotContains(t, w.tree("turn"), "error")
	for _, run := range w.runs(c) {
		w.replayRun(c, run, "")
	}
}

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
