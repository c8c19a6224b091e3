package llm_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/internal/ordering"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// conversation is a context, with its worker and its clients.
type conversation struct {
	*rapid.T
	session reducer.Session
	log     []event.Event
	now     time.Time
	adapter *llm.Adapter
	peer    *peer
	seen    map[string]int // what occurred, to check the coverage

	running *attempt
	calls   []reducer.CallTool // those that may still end
	marks   int                // of calls of the exact server
	wake    time.Time
}

// attempt is an attempt at a worker.
type attempt struct {
	reducer.StartAttempt
	session           reducer.Session // of the step that started it
	stop              event.Reason
	isSent            bool
	providerID, model string // set when it is sent
	result            llm.Result
	failed            *llm.Error // nil: none
}

func newConversation(t *rapid.T, seen map[string]int) *conversation {
	p := &peer{}
	return &conversation{
		T: t, session: reducer.NewSession("demo"), now: eventtest.Epoch, peer: p, seen: seen,
		adapter: llm.New(llm.Options{
			HTTPClient: &http.Client{Transport: p}, AllowLoopback: true, Getenv: func(string) string { return testKey },
		}),
	}
}

// in makes further draws from t.
func (c *conversation) in(t *rapid.T) {
	c.T = t
	c.now = c.now.Add(time.Millisecond)
}

func (c *conversation) pick(what string, of ...string) string {
	return rapid.SampledFrom(of).Draw(c.T, what)
}

func (c *conversation) chance(what string, oneIn int) bool {
	return rapid.IntRange(1, oneIn).Draw(c.T, what) == 1
}

// step applies an input and performs the effects.
func (c *conversation) step(in reducer.Input) {
	next, effects := reducer.Step(c.session, in)
	c.session = next
	for _, effect := range effects {
		switch effect := effect.(type) {
		case reducer.Record:
			for _, e := range effect.Events {
				c.log = append(c.log, e)
				switch body := e.Body.(type) {
				case event.ApprovalRequested:
					c.seen["approvals"]++
				case event.LLMRequestFellBack:
					c.seen["fallbacks"]++
				case event.Compacted:
					c.seen[string(body.Strategy)]++
				case event.ContentRefused:
					require.NoError(c, e.Validate())
					c.seen["refused "+string(body.Content)]++
				}
			}
		case reducer.StartAttempt:
			c.running = &attempt{StartAttempt: effect, session: next}
		case reducer.StopAttempt:
			if r := c.running; r != nil && !(effect.Unsent && r.isSent) {
				r.stop = effect.Reason
			}
		case reducer.CallTool:
			c.calls = append(c.calls, effect)
		case reducer.WakeAt:
			c.wake = effect.At
		}
	}
	if c.session.Request == nil {
		c.running = nil
	}
}

func (c *conversation) input(bodies ...event.Body) {
	var events []event.Event
	for _, body := range bodies {
		e := event.New(body)
		require.NoError(c, e.Validate())
		events = append(events, e)
	}
	c.step(reducer.Received{At: c.now, Events: events})
}

func (c *conversation) text() string { return c.pick("text", "alpha", "beta", "gamma", "", " ") }

func (c *conversation) message() {
	var bodies []event.Body
	if c.chance("attachment", 4) {
		bodies = append(bodies, rapid.SampledFrom([]event.FileAttachment{
			{Source: event.Source{Type: event.SourceBlob, Data: []byte("png")}, MediaType: "image/png", Size: 3},
			{Source: event.Source{Type: event.SourceBlob, Data: []byte("text")}, MediaType: "text/plain", Size: 4},
			{Source: event.Source{Type: event.SourceBlob, Data: []byte("pdf")}, MediaType: "application/pdf", Size: 3},
			{Source: event.Source{Type: event.SourceBlob, Data: []byte("wav")}, MediaType: "audio/wav", Size: 3},
		}).Draw(c.T, "file"))
	}
	m := event.UserMessage{Content: c.text()}
	if c.chance("silent", 6) {
		m.TriggersTurn = new(false)
	}
	c.input(append(bodies, m)...)
}

// callIDs are ids as providers and clients send them.
var callIDs = []string{"", "c1", "c2", "call_0", "AbCdEfGh1", "functions.run:0", strings.Repeat("long", 12)}

// presetIDs are those of presets, which have up to 40 characters.
var presetIDs = slices.DeleteFunc(slices.Clone(callIDs), func(id string) bool { return len(id) > 40 })

// clientInput sends events that belong to no request.
func (c *conversation) clientInput() {
	id := c.pick("call", callIDs[1:]...)
	if ids := c.session.OpenToolCalls; len(ids) > 0 && c.chance("open call", 2) {
		id = c.pick("open", ids...)
	}
	switch c.pick("event", "prompt", "answer", "call", "result", "call and result", "policy") {
	case "prompt":
		c.input(event.SystemPrompt{Content: c.text()})
	case "answer":
		c.input(event.AssistantMessage{Content: c.text(), Partial: c.chance("partial", 3)})
	case "call":
		c.input(event.ToolCall{ToolCallID: id, ToolName: c.pick("name", "run", "9-lives", "a/b"), Parameters: json.RawMessage(`{"a":1}`)})
	case "result":
		c.input(event.ToolResult{ToolCallID: id, Value: json.RawMessage(`"from a client"`)})
	case "call and result":
		c.input(event.ToolCall{ToolCallID: id, ToolName: "run", Parameters: json.RawMessage(`[1]`)}, event.ToolResult{ToolCallID: id, Value: json.RawMessage(`""`)})
	case "policy":
		c.input(event.SetDeliveryPolicy{Policy: rapid.SampledFrom(event.Policy("").Values()).Draw(c.T, "policy")})
	}
}

func (c *conversation) setProvider() {
	to := rapid.SampledFrom(destinations()).Draw(c.T, "provider")
	if c.chance("stateful", 2) {
		to.ProviderID = c.pick("id", "gemini", "openrouter", "deepseek", "mistral")
		to.Model = append(models[to.ProviderID], "m")[0]
	}
	c.input(event.SetProviderConfig{ProviderID: to.ProviderID, Model: to.Model, AsFallback: c.chance("fallback", 2)})
}

func (c *conversation) setSettings() {
	s := event.SetRequestSettings{}
	switch c.pick("choice", "", "auto", "none", "required", "run") {
	case "":
	case "run":
		s.ToolChoice = &event.ToolChoice{Name: "run"}
	case "auto":
		s.ToolChoice = &event.ToolChoice{Mode: "auto"}
	case "none":
		s.ToolChoice = &event.ToolChoice{Mode: "none"}
	case "required":
		s.ToolChoice = &event.ToolChoice{Mode: "required"}
	}
	if c.chance("parallel", 2) {
		s.ParallelToolCalls = new(false)
	}
	c.input(s)
}

// offered are the tools of requests.
var offered = []llm.Tool{
	{Name: "run", Parameters: event.Object(`{"type":"object","additionalProperties":false,"properties":{"a":{"type":["integer","null"]},"b":{"type":"array"}},"required":["a"]}`)},
	{Name: "9-lives", Description: strings.Repeat("x", 2000)},
	{Name: "any", Parameters: event.Object(`{"oneOf":[{"properties":{"a":{"const":1}}},{"$ref":"#/$defs/b"}],"$defs":{"b":{"properties":{"b":{"$ref":"#/$defs/b"}}}}}`)},
}

// send sends the running attempt to its provider, which answers.
func (c *conversation) send() {
	r := c.running
	if r == nil || r.isSent {
		return
	}
	config := r.session.Reduced.Config.Primary
	if fallback := r.session.Reduced.Config.Fallback; r.Fallback && fallback != nil {
		config = *fallback
	}
	target, err := c.adapter.Resolve(config)
	require.NoError(c, err)
	target.Settings = reducer.SettingsOf(r.session)
	if r.session.Reduced.Config.Tools != nil {
		target.Tools = offered
	}
	messages := r.session.Reduced.ForModel(messagesOf(r.session), target.ProviderID, target.Model)
	target.Tools = slices.DeleteFunc(slices.Clone(target.Tools), func(tool llm.Tool) bool {
		isOffered, _ := r.session.Reduced.ToolFor(tool.Name, target.ProviderID, target.Model)
		if choice := target.Settings.ToolChoice; !isOffered && choice != nil && choice.Name == tool.Name {
			target.Settings.ToolChoice = nil
		}
		return !isOffered
	})
	if r.Compaction != nil {
		c.seen["requests for a summary"]++
	}
	c.peer.answer = c.answer(target.ProviderID, len(target.Tools) > 0)
	r.isSent, r.providerID, r.model = true, target.ProviderID, target.Model
	before := len(c.peer.bodies)
	r.result, err = target.Stream(c.Context(), messages, nil)
	errors.As(err, &r.failed)
	if len(c.peer.bodies) == before {
		require.ErrorContains(c, err, "the conversation has no message")
	}
	c.requireAccepted(target, before)
	if r.result.State != nil {
		c.seen["states"]++
	}
}

// messagesOf returns the messages of an attempt. Those for a summary end with its instructions.
func messagesOf(s reducer.Session) []reducer.Message {
	messages := reducer.MessagesOf(s)
	if r := s.Request; r != nil && r.Compaction != nil {
		messages = append(slices.Clip(messages), reducer.Message{Role: reducer.RoleUser, Content: "Summarise this."})
	}
	return messages
}

// answer returns the stream of an answer of a provider with its kind of reasoning.
func (c *conversation) answer(providerID string, hasTools bool) string {
	text, thought := c.text(), c.pick("thought", "", "Hm")
	var deltas []string
	switch {
	case providerID == "exact":
		deltas = append(deltas, fmt.Sprintf(`{"reasoning_content":%q}`, exactThought))
	case thought == "":
	case providerID == "mistral":
		deltas = append(deltas, `{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm"}]}]}`)
	case providerID == "openrouter":
		deltas = append(deltas, `{"reasoning":"Hm","reasoning_details":[{"type":"reasoning.encrypted","data":"state of openrouter"}]}`)
	default:
		deltas = append(deltas, `{"reasoning_content":"Hm"}`)
	}
	deltas = append(deltas, fmt.Sprintf(`{"content":%q}`, text))
	calls := 0
	if hasTools {
		calls = rapid.IntRange(0, 3).Draw(c.T, "calls")
	}
	for i := range calls {
		c.seen["calls"]++
		if providerID == "exact" {
			deltas = append(deltas, c.exactCall(i))
			continue
		}
		signature := ""
		if providerID == "gemini" && i == 0 {
			signature = `,"extra_content":{"google":{"thought_signature":"state of gemini"}}`
		}
		arguments, _ := json.Marshal(c.pick("arguments", "{}", `{"a":1}`, `{"a":2}`, "", "[1]", "{broken"))
		deltas = append(deltas, fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":%s}%s}]}`,
			i, c.pick("id", presetIDs...), c.pick("name", "run", "any", "9-lives", "_9-lives", "no such tool"), arguments, signature))
	}
	if text == "" && calls == 0 {
		deltas = append(deltas, `{"content":"Yes"}`)
	}
	stream := ""
	for _, delta := range deltas {
		stream += llmtest.Chunk(delta, "")
	}
	return stream + llmtest.Chunk(`{}`, c.pick("finish", "stop", "tool_calls", "tool_calls", "length"))
}

// exactCall returns a call of the server that demands its ids and its reasoning.
func (c *conversation) exactCall(i int) string {
	c.marks++
	mark := fmt.Sprintf("mark-%d.", c.marks)
	id := c.pick("exact id", "run:0", "functions.run:"+fmt.Sprint(c.marks), strings.Repeat("long", 60)+fmt.Sprint(c.marks), fmt.Sprint("plain_", c.marks))
	if i > 0 {
		id += "+" + fmt.Sprint(i) // unique in the answer
	}
	c.peer.memory.Call(mark, id, exactThought)
	return fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":"any","arguments":"{\"b\":\"%s\"}"}}]}`, i, id, mark)
}

const exactThought = "I should look."

// stubborn asks one of the servers that refuse content. They answer in the end.
func (c *conversation) stubborn(id string) {
	host := map[string]string{"exact": exactHost, "blind": blindHost}
	if p := c.session.Reduced.Config.Primary; p.ProviderID != id {
		c.input(event.SetProviderConfig{ProviderID: id, Model: "m", BaseURL: "http://" + host[id] + "/v1"})
	}
	if c.running != nil || c.session.Request != nil {
		return // the next request is for the server
	}
	c.peer.vague = c.chance("vague", 2)
	defer func() { c.peer.vague = false }()
	c.message()
	refusals, steps := 0, 0
	for c.running != nil && steps < 3 {
		require.LessOrEqual(c, refusals, reducer.MaxRefusals, "the server never answers")
		c.send()
		r := c.running
		if r.failed != nil && r.failed.Status != 400 {
			return // there is no message to send
		}
		c.end("answered")
		if r.failed != nil {
			require.NotNil(c, c.running, "the request fails: %v", r.failed)
			refusals++
			continue
		}
		if id == "exact" && strings.Contains(c.peer.newest, "mark-") {
			c.seen["exact ids"]++
		}
		refusals, steps = 0, steps+1
		for _, call := range c.calls {
			c.step(reducer.ToolEnded{At: c.now, RequestID: call.RequestID, CallID: call.Call.ID, Outcome: reducer.CallReturned, Value: longResult})
		}
		c.calls = nil
	}
}

// end ends the running attempt.
func (c *conversation) end(way string) {
	r := c.running
	if r == nil {
		return
	}
	in := reducer.AttemptEnded{
		At: c.now, RequestID: r.RequestID, Attempt: r.Attempt, ProviderID: r.providerID, Model: r.model,
		Text: r.result.Text, Reasoning: r.result.Reasoning,
	}
	switch {
	case way == "answered" && r.result.FinishReason == "":
		in.Outcome, in.Kind, in.Text = reducer.Failed, event.FailureBadResponse, ""
		if r.failed != nil {
			in.Kind, in.Error, in.Suspects = r.failed.Kind.Failure(), r.failed.Error(), r.failed.Suspects
		}
	case way == "answered":
		in.Outcome, in.FinishReason, in.ProviderState = reducer.Completed, r.result.FinishReason, r.result.State
		for _, call := range r.result.Calls {
			in.Outcome = reducer.Called
			in.Calls = append(in.Calls, c.called(call))
		}
	case way == "interrupted" && !r.isSent:
		in.Outcome, in.Reason = reducer.Withdrawn, r.stop
	case way == "interrupted":
		in.Outcome, in.Reason = reducer.Interrupted, r.stop
		if in.Reason == "" {
			in.Reason = event.ReasonTimeout
		}
	case way == "failed":
		in.Outcome, in.Kind, in.Text = reducer.Failed, event.FailureUnavailable, ""
		if in.Retryable = c.chance("retryable", 2); in.Retryable {
			c.seen["retries"]++
		}
	case way == "too long":
		in.Outcome, in.Text = reducer.TooLong, ""
		if r.isSent {
			in.Outcome, in.Kind = reducer.Failed, event.FailureContextTooLong
		}
		in.Overflow = &reducer.Overflow{Tokens: rapid.IntRange(100, 300).Draw(c.T, "tokens"), Window: rapid.IntRange(100, 200).Draw(c.T, "window")}
	case way == "handed back":
		in.Outcome, in.Text = reducer.HandedBack, ""
	case way == "lost":
		in.Outcome, in.Text = reducer.Lost, ""
	}
	c.running = nil
	c.step(in)
}

// tooLong ends an attempt that is too long, before or after it is sent, and mostly completes its summary.
func (c *conversation) tooLong() {
	if c.running == nil {
		return
	}
	if !c.running.MayCompact || c.chance("refused", 2) {
		c.send()
	}
	if c.end("too long"); c.running != nil && c.running.Compaction != nil && !c.chance("left", 4) {
		c.send()
		c.end("answered")
	}
}

// longTurn makes a few steps with long results, then an attempt that is too long, so that the strategy is
// applied.
func (c *conversation) longTurn(strategy event.Strategy) {
	c.input(event.SetCompaction{Strategies: []event.Strategy{strategy}})
	c.message()
	for range 4 {
		c.send()
		c.end("answered")
		c.decide()
		for _, call := range c.calls {
			c.step(reducer.ToolEnded{
				At: c.now, RequestID: call.RequestID, CallID: call.Call.ID, Outcome: reducer.CallReturned, Value: longResult,
			})
		}
		c.calls = nil
	}
	c.message()
	c.tooLong()
}

// longResult is longer than [event.DroppedResult], so compaction drops it.
var longResult = json.RawMessage(`"` + strings.Repeat("long ", 200) + `"`)

func (c *conversation) interrupt() { c.step(reducer.InterruptAsked{At: c.now}) }

func (c *conversation) endSomehow() {
	switch r := c.running; {
	case r == nil:
	case r.isSent:
		c.end(c.pick("way", "answered", "answered", "interrupted", "failed", "handed back", "lost"))
	case r.stop != "":
		c.seen["withdrawn attempts"]++
		c.end("interrupted")
	default:
		c.end(c.pick("way", "failed", "handed back", "lost"))
	}
}

// called resolves a call as the worker does.
func (c *conversation) called(call reducer.ToolCall) reducer.CalledTool {
	resolved := reducer.CalledTool{ID: call.ID, Name: call.Name, Arguments: json.RawMessage(call.Arguments)}
	isOffered := slices.ContainsFunc(offered, func(tool llm.Tool) bool { return tool.Name == call.Name })
	if event.Object(call.Arguments).Fields() == nil || !isOffered {
		resolved.Arguments, resolved.Error = json.RawMessage("{}"), "invalid"
		return resolved
	}
	switch c.pick("kind", "plain", "approve", "client", "idempotent") {
	case "approve":
		resolved.Approve = true
	case "client":
		resolved.Client = true
	case "idempotent":
		resolved.Idempotent = true
	}
	return resolved
}

// endTool ends a call that was started, possibly long ago or again.
func (c *conversation) endTool() {
	if len(c.calls) == 0 {
		return
	}
	i := rapid.IntRange(0, len(c.calls)-1).Draw(c.T, "call")
	call := c.calls[i]
	if !c.chance("repeated", 5) {
		c.calls = slices.Delete(c.calls, i, i+1)
	}
	if c.session.Request == nil || c.session.Request.ID != call.RequestID {
		c.seen["late results"]++
	}
	in := reducer.ToolEnded{At: c.now, RequestID: call.RequestID, CallID: call.Call.ID, Outcome: reducer.CallReturned}
	switch c.pick("outcome", "value", "value", "empty", "error", "lost", "cancelled") {
	case "value":
		in.Value = json.RawMessage(c.pick("result", `{"result":1}`, string(longResult)))
	case "empty":
		in.Value = json.RawMessage(`""`)
	case "error":
		in.Error, in.IsError = json.RawMessage(`"it failed"`), true
	case "lost":
		in.Outcome = reducer.CallLost
	case "cancelled":
		in.Outcome = reducer.CallCancelled
	}
	c.step(in)
}

func (c *conversation) decide() {
	d := event.ApprovalDecided{Decision: rapid.SampledFrom([]event.Decision{event.Approve, event.Deny}).Draw(c.T, "decision")}
	if r := c.session.Request; r != nil && len(r.Calls) > 0 && c.chance("one call", 2) {
		d.ToolCallID = r.Calls[rapid.IntRange(0, len(r.Calls)-1).Draw(c.T, "call")].ID
		if d.Decision == event.Approve && c.chance("edited", 2) {
			d.Parameters = json.RawMessage(`{"edited":true}`)
		}
	}
	c.input(d)
}

func (c *conversation) wakeUp() {
	if c.wake.IsZero() {
		return
	}
	c.now = c.wake
	c.step(reducer.Woken{At: c.now})
}

// continueAsNew continues in another run, which loses the attempt and the running calls.
func (c *conversation) continueAsNew() {
	data, err := json.Marshal(c.session)
	require.NoError(c, err)
	c.session = reducer.Session{}
	require.NoError(c, json.Unmarshal(data, &c.session))
	in := reducer.Continued{At: c.now, Scheduled: c.running != nil && c.chance("scheduled", 2)}
	c.running = nil
	c.step(in)
}

// terminate loads the session from its log.
func (c *conversation) terminate() {
	data, err := json.Marshal(c.log)
	require.NoError(c, err)
	var log []event.Event
	require.NoError(c, json.Unmarshal(data, &log))
	c.session, c.running, c.wake = reducer.Load("demo", reducer.Reduce, log...), nil, time.Time{}
	c.step(reducer.Opened{At: c.now})
}

// check renders the messages for every provider, whatever the session does.
func (c *conversation) check() {
	messages := messagesOf(c.session)
	hasTools, refuses := rapid.Bool().Draw(c.T, "has tools"), c.chance("refuses", 3)
	for _, config := range destinations() {
		target, err := c.adapter.Resolve(config)
		require.NoError(c, err)
		target.Settings = reducer.SettingsOf(c.session)
		if hasTools {
			target.Tools = offered
		} else {
			c.seen["requests without tools"]++
		}
		c.peer.answer = ""
		before := len(c.peer.bodies)
		sent := messages
		if refuses {
			sent = refused(target).ForModel(messages, target.ProviderID, target.Model)
		}
		_, err = target.Stream(c.Context(), sent, nil)
		require.Error(c, err)
		if len(c.peer.bodies) == before {
			require.ErrorContains(c, err, "the conversation has no message")
		}
		c.requireAccepted(target, before)
	}
}

// refused refuses all content of messages.
func refused(target *llm.Target) (c reducer.ReducedContext) {
	for _, content := range event.Content("").Values() {
		if !content.OfTools() {
			c.Refused = append(c.Refused, event.ContentRefused{
				ProviderID: target.ProviderID, Model: target.Model, Content: content, ThroughEventID: "demo:999999", Error: "no",
			})
		}
	}
	return c
}

// requireAccepted requires that a provider accepts the requests since a point.
func (c *conversation) requireAccepted(target *llm.Target, since int) {
	for _, body := range c.peer.bodies[since:] {
		c.peer.newest = body
		if target.ProviderID == "exact" || target.ProviderID == "blind" {
			continue // they have answered
		}
		violations := ordering.Check(target.ProviderID, []byte(body))
		if strings.HasPrefix(target.Model, "gemma") {
			violations = append(violations, ordering.Check("vllm", []byte(body))...)
		}
		if len(violations) > 0 {
			require.Fail(c, "a provider rejects the request", "%s %s: %v\n%s", target.ProviderID, target.Model, violations, body)
		}
		if strings.Contains(body, "state of") {
			c.seen["requests with state"]++
			require.Contains(c, body, "state of "+target.ProviderID)
		}
	}
	c.peer.bodies = c.peer.bodies[:since]
}
