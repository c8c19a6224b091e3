package activities_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// caller is a model that calls tools. It keeps its request.
type caller struct {
	answer  activities.Answer
	request activities.ModelRequest
	ctx     context.Context // of the request
	needs   event.Usage     // the reservation
	panics  bool            // while it answers
	wait    chan struct{}   // holds answers until it is closed; nil: none
}

func (c *caller) Resolve(reducer.ProviderConfig) (activities.Model, error) { return c, nil }
func (*caller) ID() (providerID, model string)                             { return "openai", "scripted" }
func (*caller) Usage() event.Usage                                         { return event.Usage{} }
func (c *caller) Reservation(context.Context, activities.ModelRequest) (event.Usage, error) {
	return c.needs, nil
}
func (*caller) MaxInput(context.Context, activities.ModelRequest) (int, error)         { return 0, nil }
func (*caller) InputTokens(context.Context, activities.ModelRequest, int) (int, error) { return 0, nil }
func (*caller) Check(activities.ModelRequest) error                                    { return nil }

func (c *caller) Stream(ctx context.Context, r activities.ModelRequest, _ func(activities.Delta)) (activities.Answer, error) {
	c.ctx, c.request = ctx, r
	if c.wait != nil {
		<-c.wait
	}
	if c.panics {
		panic("a bug")
	}
	return c.answer, nil
}

var city = event.Object(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`)

// offers returns a worker with the tools weather and files_read (mcp:files/read), which is
// idempotent.
func offers(activities.OfferRequest) ([]activities.Tool, error) {
	return []activities.Tool{
		{ToolDefinition: activities.ToolDefinition{Name: "weather", Description: "The weather", Parameters: city}, Timeout: 2 * time.Second, Attempts: 5},
		{ToolDefinition: activities.ToolDefinition{Name: "files_read", Parameters: event.Object(`{"type":"object"}`)},
			Canonical: "mcp:files/read", Idempotent: true, Attempts: 3},
	}, nil
}

var ask = event.Tool{Name: "ask", Description: "Ask", Parameters: event.Object(`{"type":"object"}`)}

// answered returns the result of Generate in a context with settings.
func answered(t *testing.T, tools activities.Tools, model *caller, settings ...event.Body) (reducer.AttemptEnded, error) {
	t.Helper()
	return answeredWith(t, activities.Options{Models: model, Tools: tools}, settings...)
}

func answeredWith(t *testing.T, options activities.Options, settings ...event.Body) (reducer.AttemptEnded, error) {
	t.Helper()
	return answeredFrom(t, newSession(settings...), options)
}

func answeredFrom(t *testing.T, session reducer.Session, options activities.Options) (reducer.AttemptEnded, error) {
	t.Helper()
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	options.Temporal = &server{session: func(int) (reducer.Session, error) { return session, nil }}
	env.RegisterActivity(activities.New(options))
	var result reducer.AttemptEnded
	value, err := env.ExecuteActivity(acts.Generate, inputOf(session))
	if err == nil {
		err = value.Get(&result)
	}
	return result, err
}

func TestToolsAreOffered(t *testing.T) {
	config := event.SetTools{Tools: event.ToolList{{Pattern: "weather"}, {Pattern: "mcp:files/*"}, ask, {Name: "bare"}}}
	model := &caller{answer: activities.Answer{Text: "Hi", FinishReason: "stop"}}
	var asked activities.OfferRequest
	result, err := answered(t, toolbox{offer: func(r activities.OfferRequest) ([]activities.Tool, error) {
		asked = r
		return offers(r)
	}}, model, config, event.SetRequestSettings{ToolChoice: &event.ToolChoice{Name: "mcp:files/read"}})
	require.NoError(t, err)
	require.Equal(t, reducer.Completed, result.Outcome)
	require.Equal(t, activities.OfferRequest{ContextName: "demo", Config: config}, asked)
	require.Equal(t, []activities.ToolDefinition{
		{Name: "weather", Description: "The weather", Parameters: city},
		{Name: "files_read", Parameters: event.Object(`{"type":"object"}`)},
		{Name: "ask", Description: "Ask", Parameters: event.Object(`{"type":"object"}`)},
		{Name: "bare", Parameters: event.Object(`{"type":"object"}`)},
	}, model.request.Tools)
	require.Equal(t, "files_read", model.request.Settings.ToolChoice.Name, "the name that the model knows")
}

func TestOfferedToolsAreReportedOnce(t *testing.T) {
	config := event.SetTools{Tools: event.ToolList{{Pattern: "weather"}, {Pattern: "mcp:files/*"}, ask}}
	model := &caller{answer: activities.Answer{Text: "Hi", FinishReason: "stop"}}
	result, err := answered(t, toolbox{offer: offers}, model, config)
	require.NoError(t, err)
	require.Equal(t, &event.ToolsOffered{
		RequestID: "demo:r0001", Attempt: 1, Patterns: []string{"weather", "mcp:files/*"}, Tools: []event.OfferedTool{
			{Name: "weather", Description: "The weather", Parameters: string(city), TimeoutMs: 2000, Attempts: 5},
			{Name: "files_read", Canonical: "mcp:files/read", Parameters: `{"type":"object"}`, Idempotent: true, Attempts: 3},
		},
	}, result.Offered)
	require.NoError(t, event.New(*result.Offered).Validate())

	session := newSession(config)
	session.Offered = &reducer.Offered{EventID: "demo:0004", Patterns: result.Offered.Patterns, Hash: result.Offered.Hash()}
	result, err = answeredFrom(t, session, activities.Options{Models: model, Tools: toolbox{offer: offers}})
	require.NoError(t, err)
	require.Nil(t, result.Offered, "the log contains the tools")

	gone := func(activities.OfferRequest) ([]activities.Tool, error) { return nil, nil }
	result, err = answeredFrom(t, session, activities.Options{Models: model, Tools: toolbox{offer: gone}})
	require.NoError(t, err)
	require.Equal(t, &event.ToolsOffered{RequestID: "demo:r0001", Attempt: 1, Patterns: []string{"weather", "mcp:files/*"}}, result.Offered)

	for _, settings := range [][]event.Body{nil, {event.SetTools{Tools: event.ToolList{ask}}}} {
		result, err = answered(t, toolbox{offer: offers}, model, settings...)
		require.NoError(t, err)
		require.Nil(t, result.Offered, "the context has no tools of the worker")
	}
}

func TestToolsThatCannotBeOfferedAreOnlyRecorded(t *testing.T) {
	config := event.SetTools{Tools: event.ToolList{{Pattern: "mcp:files/*"}}}
	model := &caller{answer: activities.Answer{Text: "Hi", FinishReason: "stop"}}
	withheld := func(activities.OfferRequest) ([]activities.Tool, error) {
		return []activities.Tool{{Canonical: "mcp:files/sum", Withheld: "of type array, key sk-abcdefghijklmnopqrstuv, " + strings.Repeat("x", 1000)}}, nil
	}
	result, err := answered(t, toolbox{offer: withheld}, model, config)
	require.NoError(t, err)
	require.Empty(t, model.request.Tools)
	require.Len(t, result.Offered.Withheld, 1)
	require.Equal(t, "mcp:files/sum", result.Offered.Withheld[0].Name)
	require.Contains(t, result.Offered.Withheld[0].Reason, "of type array, key [removed], xxx")
	require.NoError(t, event.New(*result.Offered).Validate())

	session := newSession(config)
	session.Offered = &reducer.Offered{EventID: "demo:0004", Patterns: result.Offered.Patterns, Hash: result.Offered.Hash()}
	result, err = answeredFrom(t, session, activities.Options{Models: model, Tools: toolbox{offer: withheld}})
	require.NoError(t, err)
	require.Nil(t, result.Offered, "the log contains it")
}

func TestAStepWithOtherToolsReadsTheLog(t *testing.T) {
	session := newSession(event.SetTools{Tools: event.ToolList{{Pattern: "*"}}})
	session.Request.Steps = 1
	session.Offered = &reducer.Offered{EventID: "demo:0004", Patterns: []string{"*"}, Hash: "other"}
	model := &caller{answer: activities.Answer{Text: "Hi", FinishReason: "stop"}}
	_, err := answeredFrom(t, session, activities.Options{Models: model, Tools: toolbox{offer: offers}})
	require.Contains(t, unsent(t, err).Message(), "read the tools of the turn in context demo: ")
}

func TestTooManyBytesOfToolsFailTheRequest(t *testing.T) {
	large := func(activities.OfferRequest) (tools []activities.Tool, err error) {
		return []activities.Tool{{ToolDefinition: activities.ToolDefinition{Name: "large", Description: strings.Repeat("x", event.MaxOfferedBytes)}}}, nil
	}
	result, err := answered(t, toolbox{offer: large}, &caller{}, event.SetTools{Tools: event.ToolList{{Pattern: "*"}}})
	require.NoError(t, err)
	require.Contains(t, result.Error, "tools of the worker: ToolsOfferedEvent.tools: the event has ")
}

func TestTheToolOfAClientReplacesThatOfTheWorker(t *testing.T) {
	model := &caller{answer: activities.Answer{FinishReason: "tool_calls", Calls: []reducer.ToolCall{{ID: "1", Name: "weather", Arguments: `{}`}}}}
	result, err := answered(t, toolbox{offer: offers}, model, event.SetTools{Tools: event.ToolList{{Pattern: "*"}, {Name: "weather"}}})
	require.NoError(t, err)
	require.Len(t, model.request.Tools, 2)
	require.Equal(t, []reducer.CalledTool{{ID: "1", Name: "weather", Arguments: json.RawMessage(`{}`), Client: true}}, result.Calls)
}

func TestARequestWithUnknownToolsFails(t *testing.T) {
	pattern := event.SetTools{Tools: event.ToolList{{Pattern: "weather"}}}
	for name, test := range map[string]struct {
		tools    activities.Tools
		settings []event.Body
		want     string
	}{
		"a worker without tools": {nil, []event.Body{pattern}, "tool weather: this worker has no tools (register them with the worker, or leave the tool out)"},
		"a tool choice that is not offered": {toolbox{offer: offers}, []event.Body{pattern, event.SetRequestSettings{ToolChoice: &event.ToolChoice{Name: "run"}}},
			"toolChoice: the tool run is not offered (want one of: weather, files_read)"},
		"the invalid schema of a client's tool": {nil, []event.Body{event.SetTools{Tools: event.ToolList{ask, {Name: "find", Parameters: event.Object(`{"type":5}`)}}}},
			"tool find: invalid JSON Schema in its parameters: /type: got number, want array; /type: value must be one of 'array', 'boolean', 'integer', 'null', 'number', 'object', 'string' (correct it in a SetToolsEvent)"},
		"the remote schema of a client's tool": {nil, []event.Body{event.SetTools{Tools: event.ToolList{{Name: "find", Parameters: event.Object(`{"$ref":"https://example.com/find.json"}`)}}}},
			`tool find: invalid JSON Schema in its parameters: "https://example.com/find.json" is another document, and references to other documents are not loaded (correct it in a SetToolsEvent)`},
		"an error of the worker": {toolbox{offer: func(activities.OfferRequest) ([]activities.Tool, error) {
			return nil, &activities.ModelError{Kind: "unknown-tool", Failure: event.FailureBadRequest, Err: errors.New("no such tool")}
		}}, []event.Body{pattern}, "no such tool"},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := answered(t, test.tools, &caller{}, test.settings...)
			require.NoError(t, err)
			require.Equal(t, reducer.Failed, result.Outcome)
			require.False(t, result.Retryable)
			require.Equal(t, test.want, result.Error)
			require.Equal(t, event.FailureBadRequest, result.Kind)
		})
	}
}

func TestCallsOfAnAnswerAreResolved(t *testing.T) {
	config := event.SetTools{
		Tools: event.ToolList{{Pattern: "*"}, ask},
		Approve: event.ApprovalRules{
			{Tool: "mcp:files/*"}, {Tool: "weather", When: event.Object(`{"properties":{"city":{"const":"Rome"}}}`)},
			{Tool: "ask", When: event.Object(`{"type":"nonsense"}`)},
		},
	}
	for name, test := range map[string]struct {
		call reducer.ToolCall
		want reducer.CalledTool
	}{
		"a call":                   {reducer.ToolCall{ID: "1", Name: "weather", Arguments: `{"city":"Paris"}`}, reducer.CalledTool{ID: "1", Name: "weather", Arguments: json.RawMessage(`{"city":"Paris"}`), TimeoutMs: 2000}},
		"a rule on the arguments":  {reducer.ToolCall{Name: "weather", Arguments: ` {"city": "Rome"}`}, reducer.CalledTool{Name: "weather", Arguments: json.RawMessage(`{"city":"Rome"}`), TimeoutMs: 2000, Approve: true}},
		"a rule on a pattern":      {reducer.ToolCall{Name: "files_read"}, reducer.CalledTool{Name: "files_read", Arguments: json.RawMessage(`{}`), Approve: true, Idempotent: true, Attempts: 3}},
		"a rule with a bad schema": {reducer.ToolCall{Name: "ask", Arguments: `{"q":1}`}, reducer.CalledTool{Name: "ask", Arguments: json.RawMessage(`{"q":1}`), Client: true, Approve: true}},
		"an unknown tool":          {reducer.ToolCall{Name: "rm -rf", Arguments: `{"a":1}`}, reducer.CalledTool{Name: "rm -rf", Arguments: json.RawMessage(`{"a":1}`), Error: `unknown tool "rm -rf" (available: weather, files_read, ask)`}},
		"invalid JSON":             {reducer.ToolCall{Name: "weather", Arguments: `{"city"`}, reducer.CalledTool{Name: "weather", Arguments: json.RawMessage(`{}`), Error: `invalid arguments: not JSON: unexpected EOF (you wrote: {"city")`}},
		"no object":                {reducer.ToolCall{Name: "weather", Arguments: `["Paris"]`}, reducer.CalledTool{Name: "weather", Arguments: json.RawMessage(`{}`), Error: `invalid arguments: want a JSON object (you wrote: ["Paris"])`}},
		"arguments that do not match": {reducer.ToolCall{Name: "weather", Arguments: `{"town":"Paris"}`},
			reducer.CalledTool{Name: "weather", Arguments: json.RawMessage(`{"town":"Paris"}`), Error: `invalid arguments: root: missing property 'city'`}},
		"a field named like a key": {reducer.ToolCall{Name: "weather", Arguments: `{"city":"Paris","api_key":"hunter2"}`},
			reducer.CalledTool{Name: "weather", Arguments: json.RawMessage(`{}`), Error: "invalid arguments: ToolCallEvent.parameters.api_key: a raw key is not allowed (use apiKeyRef, such as env:OPENAI_API_KEY)"}},
		"deep arguments": {reducer.ToolCall{Name: "weather", Arguments: `{"city":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`},
			reducer.CalledTool{Name: "weather", Arguments: json.RawMessage(`{}`), Error: "invalid arguments: the JSON is nested too deep"}},
		"long arguments": {reducer.ToolCall{Name: "weather", Arguments: `{"city":"` + strings.Repeat("x", 300<<10) + `"}`},
			reducer.CalledTool{Name: "weather", Arguments: json.RawMessage(`{}`), Error: "invalid arguments: 307211 bytes (at most 262144)"}},
	} {
		t.Run(name, func(t *testing.T) {
			state := &event.ProviderState{ProviderID: "openai", Model: "m", BaseURL: "https://example.com/v1", Data: json.RawMessage(`{"a":1}`)}
			model := &caller{answer: activities.Answer{Text: "Let me see.", FinishReason: "tool_calls", Calls: []reducer.ToolCall{test.call}, State: state}}
			result, err := answered(t, toolbox{offer: offers}, model, config)
			require.NoError(t, err)
			require.Equal(t, reducer.Called, result.Outcome)
			require.Equal(t, "Let me see.", result.Text)
			require.Equal(t, state, result.ProviderState, "later requests need the state of an answer with calls")
			require.Equal(t, []reducer.CalledTool{test.want}, result.Calls)
		})
	}
}

// The model chooses the arguments, and must not avoid an approval by this choice.
func TestACallThatARuleCannotDecideAboutRequiresAnApproval(t *testing.T) {
	many := strings.TrimSuffix(strings.Repeat("1,", 60_000), ",")
	for name, test := range map[string]struct{ when, arguments string }{
		"too many steps": {
			`{"properties":{"list":{"items":{"allOf":[` + strings.TrimSuffix(strings.Repeat(`{"type":"number"},`, 30), ",") + `]}}}}`, `{"list":[` + many + `]}`,
		},
		"a schema that leads back to itself": {`{"$dynamicAnchor":"a","$dynamicRef":"#a"}`, `{"list":[]}`},
	} {
		t.Run(name, func(t *testing.T) {
			model := &caller{answer: activities.Answer{Calls: []reducer.ToolCall{{Name: "files_read", Arguments: test.arguments}}}}
			result, err := answered(t, toolbox{offer: offers}, model, event.SetTools{
				Tools: event.ToolList{{Pattern: "*"}}, Approve: event.ApprovalRules{{Tool: "mcp:files/*", When: event.Object(test.when)}},
			})
			require.NoError(t, err)
			require.Empty(t, result.Calls[0].Error)
			require.True(t, result.Calls[0].Approve)
		})
	}
}

// A tool may read names without regard to case, as encoding/json does.
func TestACallCannotAvoidARuleByTheSpellingOrRepetitionOfAName(t *testing.T) {
	open := event.Tool{Name: "remove"}
	declared := event.Tool{Name: "remove", Parameters: event.Object(`{"properties":{"path":{}}}`)}
	for name, test := range map[string]struct {
		tool            event.Tool
		when, arguments string
		want            reducer.CalledTool
	}{
		"the name of a rule": {open, `{"required":["path"]}`, `{"PATH":"/"}`,
			reducer.CalledTool{Arguments: json.RawMessage(`{"PATH":"/"}`), Error: "invalid arguments: /PATH: unknown field (want path)"}},
		"a name within": {open, `{"properties":{"to":{"items":{"properties":{"path":{"const":"/"}},"required":["path"]}}},"required":["to"]}`, `{"to":[{"Path":"/"}]}`,
			reducer.CalledTool{Arguments: json.RawMessage(`{"to":[{"Path":"/"}]}`), Error: "invalid arguments: /to/0/Path: unknown field (want path)"}},
		"a name of the tool": {declared, `{"not":{}}`, `{"paTh":"/"}`,
			reducer.CalledTool{Arguments: json.RawMessage(`{"paTh":"/"}`), Error: "invalid arguments: /paTh: unknown field (want path)"}},
		"another rune of the same letter": {open, `{"required":["tasks"]}`, `{"ta\u017fks":1}`,
			reducer.CalledTool{Arguments: json.RawMessage(`{"taſks":1}`), Error: "invalid arguments: /taſks: unknown field (want tasks)"}},
		"two values": {open, `{"properties":{"path":{"const":"/"}}}`, `{"path":"/","path":"a"}`,
			reducer.CalledTool{Arguments: json.RawMessage(`{"path":"a"}`), Client: true}},
		"two values in the other order": {open, `{"properties":{"path":{"const":"/"}},"required":["path"]}`, `{"path":"a","path":"/"}`,
			reducer.CalledTool{Arguments: json.RawMessage(`{"path":"/"}`), Client: true, Approve: true}},
		"another name": {declared, `{"required":["path"]}`, `{"pathname":"/","headers":{"PATH":"/"}}`,
			reducer.CalledTool{Arguments: json.RawMessage(`{"headers":{"PATH":"/"},"pathname":"/"}`), Client: true}},
	} {
		t.Run(name, func(t *testing.T) {
			model := &caller{answer: activities.Answer{FinishReason: "tool_calls", Calls: []reducer.ToolCall{{Name: "remove", Arguments: test.arguments}}}}
			result, err := answered(t, nil, model, event.SetTools{
				Tools: event.ToolList{test.tool}, Approve: event.ApprovalRules{{Tool: "remove", When: event.Object(test.when)}},
			})
			require.NoError(t, err)
			test.want.Name = "remove"
			require.Equal(t, []reducer.CalledTool{test.want}, result.Calls)
		})
	}
}

func TestARuleMayNameAToolAsTheLogDoes(t *testing.T) {
	for pattern, want := range map[string]bool{
		"mcp:files/read": true, "files_read": true, "files_*": true, "read": false,
	} {
		model := &caller{answer: activities.Answer{FinishReason: "tool_calls", Calls: []reducer.ToolCall{{Name: "files_read"}}}}
		result, err := answered(t, toolbox{offer: offers}, model, event.SetTools{
			Tools: event.ToolList{{Pattern: "mcp:files/*"}}, Approve: event.ApprovalRules{{Tool: pattern}},
		})
		require.NoError(t, err)
		require.Len(t, result.Calls, 1)
		require.Equal(t, want, result.Calls[0].Approve, pattern)
	}
}

// Those who may write also set the rules of a context, and the operator's hold for them, too.
func TestRulesOfTheWorkerHoldWhateverTheContextSays(t *testing.T) {
	always := event.ApprovalRules{{Tool: "mcp:files/*"}, {Tool: "ask"}, {Tool: "weather", When: event.Object(`{"properties":{"city":{"const":"Rome"}}}`)}}
	for call, want := range map[reducer.ToolCall]bool{
		{Name: "files_read"}:                             true,
		{Name: "weather", Arguments: `{"city":"Rome"}`}:  true,
		{Name: "weather", Arguments: `{"city":"Paris"}`}: false,
		{Name: "ask"}: false, // a client executes it
	} {
		model := &caller{answer: activities.Answer{FinishReason: "tool_calls", Calls: []reducer.ToolCall{call}}}
		result, err := answeredWith(t, activities.Options{Models: model, Tools: toolbox{offer: offers}, Approve: always}, event.SetTools{Tools: event.ToolList{{Pattern: "*"}, ask}})
		require.NoError(t, err)
		require.Empty(t, result.Calls[0].Error)
		require.Equal(t, want, result.Calls[0].Approve, call)
	}
}

func TestTheCallsOfAnAnswerAreBounded(t *testing.T) {
	many := make([]reducer.ToolCall, reducer.MaxCalls+1)
	for i := range many {
		many[i] = reducer.ToolCall{ID: fmt.Sprint(i), Name: "files_read", Arguments: `{"text":"` + strings.Repeat("x", 200<<10) + `"}`}
	}
	state := &event.ProviderState{ProviderID: "openai", Model: "m", BaseURL: "https://example.com/v1", Data: json.RawMessage(`{"a":1}`)}
	result, err := answered(t, toolbox{offer: offers}, &caller{answer: activities.Answer{FinishReason: "tool_calls", Calls: many, State: state}},
		event.SetTools{Tools: event.ToolList{{Pattern: "*"}}})
	require.NoError(t, err)
	require.Len(t, result.Calls, reducer.MaxCalls)
	require.Nil(t, result.ProviderState, "it belongs to all calls")
	size := 0
	for _, call := range result.Calls {
		size += len(call.Arguments)
	}
	require.Less(t, size, event.MaxAnswerBytes+len(many)*2)
}
