package activities_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/stream/streamtest"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// toolbox is a worker's tools in tests. An unexpected request panics.
type toolbox struct {
	offer func(activities.OfferRequest) ([]activities.Tool, error)
	call  func(context.Context, activities.ToolCallRequest) activities.ToolCallResult
}

func (b toolbox) Offer(_ context.Context, r activities.OfferRequest) ([]activities.Tool, error) {
	return b.offer(r)
}

func (b toolbox) Call(ctx context.Context, r activities.ToolCallRequest) activities.ToolCallResult {
	return b.call(ctx, r)
}

// logText is what a worker logs.
type logText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

type callFunc = func(context.Context, activities.ToolCallRequest) activities.ToolCallResult

// callTool calls a tool with the activity CallTool.
func callTool(t *testing.T, call callFunc, in activities.CallToolInput, options ...func(*activities.Options, *worker.Options)) (activities.CallToolResult, error) {
	t.Helper()
	suite := &testsuite.WorkflowTestSuite{}
	logged := &logText{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.NewTextHandler(logged, nil))))
	defer func() { require.NotContains(t, logged.String(), "sk-", "a key is logged") }()
	env := suite.NewTestActivityEnvironment()
	acting, working := activities.Options{}, worker.Options{}
	if call != nil {
		acting.Tools = toolbox{call: call}
	}
	for _, set := range options {
		set(&acting, &working)
	}
	env.SetWorkerOptions(working)
	env.RegisterActivity(activities.New(acting))
	in.ContextName, in.RequestID, in.ToolCallID, in.Name = "demo", "demo:r0001", "call_1", "weather"
	in.Arguments = json.RawMessage(`{"city":"Paris"}`)
	var result activities.CallToolResult
	value, err := env.ExecuteActivity(acts.CallTool, in)
	if err == nil {
		err = value.Get(&result)
	}
	require.GreaterOrEqual(t, result.DurationMs, int64(0))
	result.DurationMs = 0
	return result, err
}

func returns(result activities.ToolCallResult) callFunc {
	return func(context.Context, activities.ToolCallRequest) activities.ToolCallResult { return result }
}

// untilCancelled is a tool that fails when it is cancelled.
func untilCancelled(ctx context.Context, _ activities.ToolCallRequest) activities.ToolCallResult {
	<-ctx.Done()
	return activities.ToolCallResult{Error: json.RawMessage(`"stopped"`), IsError: true}
}

func TestAToolIsCalledWithItsArguments(t *testing.T) {
	var got activities.ToolCallRequest
	result, err := callTool(t, func(_ context.Context, r activities.ToolCallRequest) activities.ToolCallResult {
		got, got.Progress = r, nil
		return activities.ToolCallResult{Value: json.RawMessage(`{"sky":"clear"}`)}
	}, activities.CallToolInput{})
	require.NoError(t, err)
	require.Equal(t, activities.CallToolResult{Value: json.RawMessage(`{"sky":"clear"}`)}, result)
	require.Equal(t, activities.ToolCallRequest{
		ContextName: "demo", RequestID: "demo:r0001", ToolCallID: "call_1", Name: "weather", Arguments: json.RawMessage(`{"city":"Paris"}`),
	}, got)
}

func TestTheProgressOfACallIsPublished(t *testing.T) {
	conn := connectNATS(t)
	sub := subscribe(t, conn)
	var late func(string)
	_, err := callTool(t, func(_ context.Context, r activities.ToolCallRequest) activities.ToolCallResult {
		r.Progress("apiKey=sk-abcdefghijklmnopqrstuv")
		r.Progress("too fast")
		late = r.Progress
		return activities.ToolCallResult{Value: json.RawMessage(`1`)}
	}, activities.CallToolInput{}, func(o *activities.Options, _ *worker.Options) { o.Stream = conn })
	require.NoError(t, err)
	late("after the call")
	conn.PublishProgress("demo", event.ToolProgress{RequestID: "demo:r0001", ToolCallID: "end"})
	var ids, texts []string
	for len(ids) == 0 || ids[len(ids)-1] != "end" {
		if d, ok := streamtest.Delta(sub, <-sub.Messages()); ok { // the other one says that no answer is running
			require.Equal(t, "demo:r0001", d.Progress.RequestID)
			ids, texts = append(ids, d.Progress.ToolCallID), append(texts, d.Progress.Text)
		}
	}
	require.Equal(t, []string{"call_1", "end"}, ids)
	require.Equal(t, "apiKey=[removed]", texts[0])
}

func TestAFailedCallIsAResult(t *testing.T) {
	rain := json.RawMessage(`"it rains"`)
	for name, test := range map[string]struct {
		call callFunc
		in   activities.CallToolInput
		want string
	}{
		"an error":              {returns(activities.ToolCallResult{Error: rain, IsError: true}), activities.CallToolInput{}, `"it rains"`},
		"an error by its field": {returns(activities.ToolCallResult{Error: rain}), activities.CallToolInput{}, `"it rains"`},
		"a panic":               {func(context.Context, activities.ToolCallRequest) activities.ToolCallResult { panic("oh no") }, activities.CallToolInput{}, `"the tool panicked: oh no"`},
		"a panic with a key": {func(context.Context, activities.ToolCallRequest) activities.ToolCallResult {
			panic("apiKey=sk-abcdefghijklmnopqrstuv")
		}, activities.CallToolInput{}, `"the tool panicked: apiKey=[removed]"`},
		"a timeout":              {untilCancelled, activities.CallToolInput{TimeoutMs: 1}, `"timed out after 1ms, outcome unknown"`},
		"a worker without tools": {nil, activities.CallToolInput{}, `"tool weather: this worker has no tools"`},
		"a retryable error of a tool that is not idempotent": {
			returns(activities.ToolCallResult{Error: rain, IsError: true, Retryable: true}), activities.CallToolInput{}, `"it rains"`},
		"a retryable error of the last attempt": {
			returns(activities.ToolCallResult{Error: rain, IsError: true, Retryable: true}), activities.CallToolInput{MaxAttempts: 1}, `"it rains"`},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := callTool(t, test.call, test.in)
			require.NoError(t, err)
			require.Equal(t, activities.CallToolResult{Error: json.RawMessage(test.want), IsError: true}, result)
		})
	}
}

func TestARetryableErrorIsRetried(t *testing.T) {
	_, err := callTool(t, returns(activities.ToolCallResult{Error: json.RawMessage(`"it rains"`), IsError: true, Retryable: true}),
		activities.CallToolInput{MaxAttempts: 2})
	var failed *temporal.ApplicationError
	require.ErrorAs(t, err, &failed)
	require.False(t, failed.NonRetryable())
	require.Equal(t, "it rains", failed.Message())
}

func TestAResultCanBeRecorded(t *testing.T) {
	deep := strings.Repeat("[", 9_500) + strings.Repeat("]", 9_500)
	for name, test := range map[string]struct {
		value, want string
	}{
		"nothing":                  {``, `""`},
		"null":                     {`null`, `"null"`},
		"invalid JSON":             {`{"a":`, `"{\"a\":"`},
		"invalid UTF-8":            {"\"a\xff\"", `"a` + "\uFFFD" + `"`},
		"a field named like a key": {`{"apiKey":"hunter2","sky":"clear"}`, `{"apiKey [removed]":null,"sky":"clear"}`},
		"a key":                    {`"sk-abcdefghijklmnopqrstuv"`, `"[removed]"`},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := callTool(t, returns(activities.ToolCallResult{Value: json.RawMessage(test.value)}), activities.CallToolInput{})
			require.NoError(t, err)
			require.Equal(t, test.want, string(result.Value))
			require.NoError(t, event.New(event.ToolResult{ToolCallID: "call_1", Value: result.Value}).Validate())
		})
	}
	for name, value := range map[string]string{
		"deep":         deep,
		"long":         `"` + strings.Repeat("x", 2_000_000) + `"`,
		"long escapes": `"` + strings.Repeat(`\u0001`, 400_000) + `"`,
	} {
		t.Run(name, func(t *testing.T) {
			result, err := callTool(t, returns(activities.ToolCallResult{Value: json.RawMessage(value)}), activities.CallToolInput{})
			require.NoError(t, err)
			data, err := event.New(event.ToolResult{ToolCallID: "call_1", Value: result.Value}).MarshalJSON()
			require.NoError(t, err)
			require.Less(t, len(data), wire.MaxEventBytes)
			_, err = event.DecodeInput(data)
			require.NoError(t, err)
			require.Equal(t, byte('"'), result.Value[0])
		})
	}
}

func TestACancelledCallIsCancelledUnlessItSucceeds(t *testing.T) {
	for name, succeeds := range map[string]bool{"fails": false, "succeeds": true} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			result, err := callTool(t, func(ctx context.Context, r activities.ToolCallRequest) activities.ToolCallResult {
				cancel()
				result := untilCancelled(ctx, r)
				if succeeds {
					return activities.ToolCallResult{Value: json.RawMessage(`1`)}
				}
				return result
			}, activities.CallToolInput{}, func(_ *activities.Options, o *worker.Options) { o.BackgroundActivityContext = ctx })
			if succeeds {
				require.NoError(t, err)
				require.Equal(t, "1", string(result.Value))
				return
			}
			require.True(t, temporal.IsCanceledError(err), "%v", err)
		})
	}
}

func TestAWorkerThatStopsHandsAnIdempotentCallBack(t *testing.T) {
	for name, attempts := range map[string]int{"idempotent": 1, "not idempotent": 0} {
		t.Run(name, func(t *testing.T) {
			handBack := make(chan struct{})
			result, err := callTool(t, func(ctx context.Context, r activities.ToolCallRequest) activities.ToolCallResult {
				close(handBack)
				return untilCancelled(ctx, r)
			}, activities.CallToolInput{MaxAttempts: attempts}, func(o *activities.Options, _ *worker.Options) { o.HandBack = handBack })
			if attempts == 0 {
				require.NoError(t, err)
				require.Equal(t, `"interrupted, outcome unknown"`, string(result.Error))
				return
			}
			var failed *temporal.ApplicationError
			require.ErrorAs(t, err, &failed)
			require.False(t, failed.NonRetryable())
			require.Equal(t, "handed-back", failed.Type())
		})
	}
}

func TestACallSendsHeartbeats(t *testing.T) {
	beat := make(chan struct{}, 10)
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	env.SetOnActivityHeartbeatListener(func(*activity.Info, converter.EncodedValues) { beat <- struct{}{} })
	env.RegisterActivity(activities.New(activities.Options{Tools: toolbox{
		call: func(context.Context, activities.ToolCallRequest) activities.ToolCallResult {
			<-beat
			return activities.ToolCallResult{Value: json.RawMessage(`1`)}
		},
	}}))
	_, err := env.ExecuteActivity(acts.CallTool, activities.CallToolInput{})
	require.NoError(t, err)
}

func TestEditedArgumentsOfAClientsToolAreOnlyValidated(t *testing.T) {
	for schema, want := range map[string]string{
		string(city):            "",
		`{"required":["town"]}`: `"invalid arguments: root: missing property 'town' (an approval edited them)"`,
	} {
		result, err := callTool(t, nil, activities.CallToolInput{Schema: json.RawMessage(schema)})
		require.NoError(t, err)
		require.Equal(t, want, string(result.Error))
		require.Equal(t, want != "", result.IsError)
	}
}
