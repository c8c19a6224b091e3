package activities_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// recordings is a log, with the request of each attempt as Generate sends it.
type recordings struct {
	t       *testing.T
	session reducer.Session
	events  []event.Event
	sent    map[string]received // by the event that started the attempt
	tools   activities.Tools
}

// received is what a model receives.
type received struct {
	config  reducer.ProviderConfig
	request activities.ModelRequest
}

func silent() *testsuite.TestActivityEnvironment {
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	return suite.NewTestActivityEnvironment()
}

// models are all models. They keep the newest request.
type models struct {
	caller
	newest received
}

func (m *models) Resolve(config reducer.ProviderConfig) (activities.Model, error) {
	m.newest.config = config
	return m, nil
}

func (m *models) received() received {
	return received{m.newest.config, m.request}
}

func newRecordings(t *testing.T) *recordings {
	r := &recordings{
		t: t, session: reducer.NewSession("demo"), sent: map[string]received{},
		tools: toolbox{offer: offers},
	}
	r.apply(reducer.Opened{At: time.Now()})
	return r
}

func (r *recordings) apply(in reducer.Input) {
	r.t.Helper()
	var effects []reducer.Effect
	r.session, effects = reducer.Step(r.session, in)
	for _, effect := range effects {
		switch effect := effect.(type) {
		case reducer.Record:
			r.events = append(r.events, effect.Events...)
		case reducer.StartAttempt:
			r.sent[effect.Through] = r.generate(effect)
		}
	}
}

func (r *recordings) generate(start reducer.StartAttempt) received {
	r.t.Helper()
	model, session := &models{}, r.session
	env := silent()
	s := &server{session: func(int) (reducer.Session, error) { return session, nil }}
	env.RegisterActivity(activities.New(activities.Options{Temporal: s, Models: model, Tools: r.tools}))
	in := inputOf(session)
	in.Fallback = start.Fallback
	_, err := env.ExecuteActivity(acts.Generate, in)
	require.NoError(r.t, err)
	return model.received()
}

func (r *recordings) receive(bodies ...event.Body) {
	r.t.Helper()
	var events []event.Event
	for _, body := range bodies {
		events = append(events, event.New(body))
	}
	r.apply(reducer.Received{At: time.Now(), Events: events})
}

func (r *recordings) end(in reducer.AttemptEnded) {
	r.t.Helper()
	in.At, in.RequestID, in.Attempt = time.Now(), r.session.Request.ID, r.session.Request.Attempt
	r.apply(in)
}

// unknown is a server without histories.
type unknown struct{ *server }

func (unknown) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return nil, serviceerror.NewNotFound("no such workflow")
}

// evaluate runs the activity on the log.
func (r *recordings) evaluate(model activities.Models, in wire.Evaluation, hooks ...hook.Hook) (out wire.Evaluated, err error) {
	r.t.Helper()
	logs := archive.New(blobstest.New(r.t).Store)
	folder, err := logs.Folder(r.t.Context(), "demo")
	require.NoError(r.t, err)
	require.NoError(r.t, folder.Register(r.t.Context(), archive.Run{ID: archive.ImportID + "1"}))
	_, err = logs.Write(r.t.Context(), "demo", archive.ImportID+"1", r.events)
	require.NoError(r.t, err)
	env := silent()
	env.RegisterActivity(activities.New(activities.Options{Temporal: unknown{&server{}}, Archive: logs, Models: model, Tools: toolbox{}, Hooks: hooks}))
	in.ContextName = cmp.Or(in.ContextName, "demo")
	value, err := env.ExecuteActivity(acts.Evaluate, in)
	if err == nil {
		err = value.Get(&out)
	}
	return out, err
}

// answers yields the events of each answer of a request, and of the attempt that made it.
func (r *recordings) answers(yield func(through, answer string) bool) {
	started := ""
	for _, e := range r.events {
		switch body := e.Body.(type) {
		case event.LLMRequestStarted:
			started = e.ID
		case event.AssistantMessage:
			if body.RequestID != "" && !yield(started, e.ID) {
				return
			}
		}
	}
}

// weatherTurn is a turn with a call and a message that waits for its end, and another one that falls back.
func weatherTurn(t *testing.T) *recordings {
	r := newRecordings(t)
	r.receive(event.SystemPrompt{Content: "Be thorough."}, event.SetDeliveryPolicy{Policy: event.PolicyQueue, QuietPeriodMs: new(int64(0))},
		event.SetTools{Tools: event.ToolList{{Pattern: "weather"}, {Pattern: "mcp:files/*"}, {Name: "ask_user", Description: "Ask"}}},
		event.SetProviderConfig{ProviderID: "p", Model: "m", Temperature: new(0.5)}, event.SetProviderConfig{ProviderID: "q", Model: "n", AsFallback: true},
		event.SetRequestSettings{TopP: new(0.9)}, event.BudgetSet{Tokens: new(int64(1))},
		event.UserMessage{Content: "Hello", Settings: &event.RequestSettings{Seed: new(int64(7)), ToolChoice: &event.ToolChoice{Name: "weather"}}})
	tools, err := offers(activities.OfferRequest{})
	require.NoError(t, err)
	offered := event.ToolsOffered{RequestID: r.session.Request.ID, Attempt: 1, Patterns: r.session.Reduced.Config.Tools.Patterns()}
	for _, tool := range tools {
		offered.Tools = append(offered.Tools, event.OfferedTool{
			Name: tool.Name, Canonical: tool.Canonical, Description: tool.Description, Parameters: string(tool.Parameters),
			Idempotent: tool.Idempotent, TimeoutMs: tool.Timeout.Milliseconds(), Attempts: tool.Attempts,
		})
	}
	r.end(reducer.AttemptEnded{
		Outcome: reducer.Called, Text: "Let me see.", Offered: &offered,
		Calls: []reducer.CalledTool{{ID: "call_1", Name: "weather", Arguments: json.RawMessage(`{"city":"Paris"}`)}},
	})
	r.receive(event.UserMessage{Content: "And then?"})
	r.apply(reducer.ToolEnded{At: time.Now(), RequestID: r.session.Request.ID, CallID: "call_1", Outcome: reducer.CallReturned, Value: json.RawMessage(`"sunny"`)})
	require.NotEmpty(t, r.session.Request.Limit, "a message waits for the end of the turn")
	r.end(reducer.AttemptEnded{Outcome: reducer.Completed, Text: "It is sunny.", FinishReason: "stop"})
	failed := reducer.AttemptEnded{Outcome: reducer.Failed}
	failed.Kind, failed.Error = event.FailureUnauthorized, "no key"
	r.end(failed)
	r.end(reducer.AttemptEnded{Outcome: reducer.Completed, Text: "Then it rains.", FinishReason: "stop"})
	return r
}

func TestAnEvaluationSendsTheRecordedRequest(t *testing.T) {
	r := weatherTurn(t)
	count := 0
	for through, answer := range r.answers {
		model := &models{caller: caller{answer: activities.Answer{Text: "Hi", FinishReason: "stop"}}}
		out, err := r.evaluate(model, wire.Evaluation{Through: through, Answer: answer})
		require.NoError(t, err)
		require.Equal(t, "Hi", out.Text)
		require.Equal(t, asJSON(t, r.sent[through]), asJSON(t, model.received()), answer)
		count++
	}
	require.Equal(t, 3, count)
}

func asJSON(t *testing.T, r received) string {
	data, err := json.MarshalIndent([]any{r.config, r.request}, "", " ")
	require.NoError(t, err)
	return string(data)
}

func TestAnEvaluationReplacesTheProviderAndTheSystemPrompt(t *testing.T) {
	r := weatherTurn(t)
	for through, answer := range r.answers {
		model := &models{caller: caller{answer: activities.Answer{Calls: []reducer.ToolCall{
			{Name: "weather", Arguments: `{"city":"Rome"}`}, {Name: "weather", Arguments: `{}`}, {Name: "nope", Arguments: `{}`},
		}}}}
		out, err := r.evaluate(model, wire.Evaluation{
			Through: through, Answer: answer, Provider: &event.SetProviderConfig{ProviderID: "x", Model: "y"}, System: new("Be brief."),
		})
		require.NoError(t, err)
		got := model.received()
		require.Equal(t, reducer.ProviderConfig{ProviderID: "x", Model: "y"}, got.config)
		require.Equal(t, "Be brief.", got.request.Messages[0].Content)
		require.Equal(t, contentsAfterFirst(r.sent[through].request), contentsAfterFirst(got.request))
		require.Equal(t, wire.EvaluatedCall{Name: "weather", Arguments: json.RawMessage(`{"city":"Rome"}`)}, out.Calls[0])
		require.Contains(t, out.Calls[1].Error, "invalid arguments")
		require.Contains(t, out.Calls[2].Error, `unknown tool "nope"`)
	}
}

func contentsAfterFirst(r activities.ModelRequest) (contents []string) {
	for _, m := range r.Messages[1:] {
		contents = append(contents, fmt.Sprint(m.Role, m.Content, m.ToolCalls))
	}
	return contents
}

func TestAnImportedAnswerIsEvaluated(t *testing.T) {
	r := newRecordings(t)
	r.receive(event.UserMessage{Content: "Hello", TriggersTurn: new(false)}, event.AssistantMessage{Content: "Hi"})
	model := &models{caller: caller{answer: activities.Answer{Text: "Hey"}}}
	out, err := r.evaluate(model, wire.Evaluation{Through: "demo:0002", Answer: "demo:0003"})
	require.NoError(t, err)
	require.Equal(t, "Hey", out.Text)
	require.Len(t, model.request.Messages, 1)
}

func TestHooksCheckEvaluations(t *testing.T) {
	guard := hook.Hook{Name: "guard", Before: func(context.Context, hook.Request) (hook.Verdict, error) { return hook.Refuse("off topic"), nil }}
	r := weatherTurn(t)
	for through, answer := range r.answers {
		out, err := r.evaluate(&models{}, wire.Evaluation{Through: through, Answer: answer}, guard)
		require.NoError(t, err)
		require.Contains(t, out.Error, "off topic")
	}
}

func TestAnInvalidEvaluationIsNotRetried(t *testing.T) {
	r := weatherTurn(t)
	for want, in := range map[string]wire.Evaluation{
		"a name has 1-128":        {ContextName: "a/..", Through: "demo:0002", Answer: "demo:0003"},
		"the log ends with event": {Through: "demo:0999", Answer: "demo:0999"},
		"providerId: empty":       {Through: "demo:0002", Answer: "demo:0003", Provider: &event.SetProviderConfig{Model: "m"}},
	} {
		_, err := r.evaluate(&models{}, in)
		var failed *temporal.ApplicationError
		require.ErrorAs(t, err, &failed)
		require.True(t, failed.NonRetryable())
		require.Contains(t, failed.Message(), want)
	}
}

// rateLimited answers no request.
type rateLimited struct {
	models
	err *activities.ModelError
}

func (l *rateLimited) Resolve(reducer.ProviderConfig) (activities.Model, error) { return l, nil }

func (l *rateLimited) Stream(context.Context, activities.ModelRequest, func(activities.Delta)) (activities.Answer, error) {
	return activities.Answer{}, l.err
}

func TestARateLimitDelaysAnEvaluation(t *testing.T) {
	r := weatherTurn(t)
	in := wire.Evaluation{Through: "demo:0010", Answer: "demo:0012"}
	slow := &activities.ModelError{Kind: "status", Failure: event.FailureRateLimited, Retryable: true, RetryAfter: 7 * time.Second, Err: errors.New("slow down")}
	_, err := r.evaluate(&rateLimited{err: slow}, in)
	require.Equal(t, 7*time.Second, unsent(t, err).NextRetryDelay())

	slow.Retryable = false
	out, err := r.evaluate(&rateLimited{err: slow}, in)
	require.NoError(t, err)
	require.Contains(t, out.Error, "slow down")
}

// slow is an unknown server that responds late.
type slow struct{ unknown }

func (s slow) DescribeWorkflowExecution(ctx context.Context, id, runID string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	time.Sleep(time.Minute) // bubble time
	return s.unknown.DescribeWorkflowExecution(ctx, id, runID)
}

func TestAnEvaluationSendsHeartbeatsWhileItReadsTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs := archive.New(blobstest.New(t).Store)
		folder, err := logs.Folder(t.Context(), "demo")
		require.NoError(t, err)
		const run = archive.ImportID + "1"
		require.NoError(t, folder.Register(t.Context(), archive.Run{ID: run}))
		question := event.Event{ID: "demo:0001", ContextName: "demo", Timestamp: time.Now(), Body: event.UserMessage{Content: "Hello", TriggersTurn: new(false)}}
		answer := event.Event{ID: "demo:0002", ParentID: question.ID, ContextName: "demo", Timestamp: time.Now(), Body: event.AssistantMessage{Content: "Hi"}}
		_, err = logs.Write(t.Context(), "demo", run, []event.Event{question, answer})
		require.NoError(t, err)
		heartbeats := 0
		env := silent()
		env.SetTestTimeout(time.Hour)
		env.SetOnActivityHeartbeatListener(func(*activity.Info, converter.EncodedValues) { heartbeats++ })
		env.RegisterActivity(activities.New(activities.Options{
			Temporal: slow{unknown{&server{}}}, Archive: logs, Models: &models{caller: caller{answer: activities.Answer{Text: "Hi"}}}, Tools: toolbox{},
		}))
		_, err = env.ExecuteActivity(acts.Evaluate, wire.Evaluation{ContextName: "demo", Through: question.ID, Answer: answer.ID})
		require.NoError(t, err)
		require.NotZero(t, heartbeats)
	})
}
