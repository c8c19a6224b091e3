package reducer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Call is a tool call of the running request without a result. Its JSON is persisted.
type Call struct {
	ID        string          `json:"id"`   // unique in the context; the idempotency key of the call
	Name      string          `json:"name"` // as sent to models
	Arguments json.RawMessage `json:"arguments,omitempty"`
	State     CallState       `json:"state"`
	Client    bool            `json:"client,omitempty"` // a client executes the call and sends its result
	// Edited means that an approval replaced arguments of a client's call; they are not yet validated.
	Edited bool `json:"edited,omitempty"`
	// Idempotent calls may be executed again. TimeoutMs and Attempts are options of the tool.
	Idempotent bool      `json:"idempotent,omitempty"`
	TimeoutMs  int64     `json:"timeoutMs,omitempty"`
	Attempts   int       `json:"attempts,omitempty"`
	Deadline   time.Time `json:"deadline,omitzero"` // of a wait for an approval or a client; else zero
	Error      string    `json:"error,omitempty"`   // result of a call that is not executed; "" for none
}

// UnmarshalJSON normalizes the arguments by [event.ToolValue].
func (c *Call) UnmarshalJSON(data []byte) error {
	type plain Call
	err := json.Unmarshal(data, (*plain)(c))
	c.Arguments = event.ToolValue(c.Arguments)
	return err
}

// CallState is what a [Call] waits for.
type CallState string

// States of a [Call].
const (
	CallQueued   CallState = "queued"   // for another call, because of the parallel limit
	CallRunning  CallState = "running"  // for the result of the worker
	CallApproval CallState = "approval" // for an [event.ApprovalDecided]
	CallClient   CallState = "client"   // for an [event.ToolResult] of a client
	// CallChecking waits for a worker that validates edited arguments of a client's call.
	CallChecking CallState = "checking"
)

// CalledTool is a call of an answer, after the worker resolved its tool, validated the arguments
// and evaluated the approval rules.
type CalledTool struct {
	ID         string          `json:"id,omitempty"` // from the provider; may be empty or not unique
	Name       string          `json:"name"`
	Arguments  json.RawMessage `json:"arguments,omitempty"`
	Error      string          `json:"error,omitempty"`   // result of a call that must not be executed; "" for none
	Client     bool            `json:"client,omitempty"`  // executed by a client
	Approve    bool            `json:"approve,omitempty"` // requires an approval
	Idempotent bool            `json:"idempotent,omitempty"`
	TimeoutMs  int64           `json:"timeoutMs,omitempty"`
	Attempts   int             `json:"attempts,omitempty"`
}

// CallOutcome is how the execution of a call ended.
type CallOutcome string

// Outcomes of a [CallTool].
const (
	CallReturned  CallOutcome = "returned"  // a value or an error
	CallLost      CallOutcome = "lost"      // the worker died or did not report the result
	CallCancelled CallOutcome = "cancelled" // before it returned
)

// MaxCalls bounds the tool calls of an answer. Further ones are dropped.
const MaxCalls = 128

// Bounds of workers' reports, in bytes.
const (
	maxCallID     = 64
	maxCallError  = 4 << 10
	maxToolResult = 1 << 20
)

// called records an answer with calls and executes them, unless the turn has no step left and ends.
func (d *decision) called(in AttemptEnded) {
	r := d.Request
	limit := d.Reduced.Config.Tools.Limits().MaxSteps
	isLast := r.Steps >= limit
	calls := d.newCalls(in.Calls)
	in.ProviderState = withCallIDs(in.ProviderState, calls)
	answerID := event.FormatID(d.ContextName, d.EventCount+1)
	events := []event.Event{event.New(d.answer(in, false))}
	for _, c := range calls {
		events = append(events, event.New(event.ToolCall{
			ToolCallID: c.ID, MessageID: answerID, ToolName: c.Name, Parameters: c.Arguments, RequestID: r.ID,
		}))
	}
	d.recordEvents(events...)
	r.Calls, r.Returns, r.Compactions, r.Refusals = calls, 0, 0, 0
	if isLast {
		for i := range r.Calls {
			r.Calls[i].Error = fmt.Sprintf("not executed: the turn has reached its limit of %d steps", limit)
		}
		d.recordErrors()
		d.recordCompletion(in)
		d.next()
		return
	}
	d.recordAttemptEnd(event.AttemptToolCalls, in)
	d.requestApprovals(in.Calls)
	d.advance()
}

// withCallIDs drops the ids of the provider from a state if requests contain the same ones without them.
func withCallIDs(state *event.ProviderState, calls []Call) *event.ProviderState {
	if state == nil || state.CallIDs == nil {
		return state
	}
	isKept := false
	for i, c := range calls {
		isKept = isKept || len(calls) != len(state.CallIDs) || state.CallIDs[i] != c.ID || !plainID.MatchString(c.ID)
	}
	switch {
	case isKept && len(calls) == len(state.CallIDs):
		return state
	case len(state.Data) == 0:
		return nil
	}
	without := *state
	without.CallIDs = nil
	return &without
}

// plainID matches ids that every provider accepts.
var plainID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`)

func (d *decision) newCalls(tools []CalledTool) []Call {
	var calls []Call
	for _, tool := range tools[:min(len(tools), MaxCalls)] {
		c := Call{
			ID: d.newCallID(tool.ID, calls), Name: toolName(tool.Name), Arguments: event.ToolValue(tool.Arguments), State: CallQueued,
			Client: tool.Client, Idempotent: tool.Idempotent, TimeoutMs: tool.TimeoutMs, Attempts: tool.Attempts,
			Error: tool.Error,
		}
		if c.Error == "" {
			c.Error = d.problemOf(c, tool, calls)
		}
		if len(c.Arguments) > event.MaxArgumentBytes {
			c.Arguments = nil
		}
		if len(c.Error) > maxCallError {
			c.Error = c.Error[:maxCallError]
		}
		c.Error = strings.ToValidUTF8(c.Error, "")
		calls = append(calls, c)
	}
	return calls
}

func (d *decision) problemOf(c Call, tool CalledTool, before []Call) string {
	if c.Name != tool.Name {
		return "not executed: no tool has this name"
	}
	if size := len(c.Arguments); size > event.MaxArgumentBytes {
		return fmt.Sprintf("not executed: the arguments have %d bytes (at most %d)", size, event.MaxArgumentBytes)
	}
	if err := event.RejectKeys(map[string]json.RawMessage{"arguments": tool.Arguments}); err != nil {
		return "not executed: " + err.Error()
	}
	made := d.countCalls(c)
	for _, earlier := range before {
		if earlier.Name == c.Name && bytes.Equal(earlier.Arguments, c.Arguments) {
			made++
		}
	}
	if made+1 >= d.Reduced.Config.Tools.Limits().MaxRepeats {
		return fmt.Sprintf("not executed: the same call was made %d times in this turn", made)
	}
	return ""
}

func (d *decision) countCalls(c Call) (n int) {
	for _, m := range slices.Backward(d.Reduced.Messages) {
		if m.RequestID != d.Request.ID {
			continue
		}
		for _, made := range m.ToolCalls {
			if made.Name == c.Name && made.Arguments == string(c.Arguments) {
				n++
			}
		}
	}
	return n
}

// newCallID returns the provider's id if it is valid and unique in the context, else another one. After a
// compaction has removed messages, it always returns another one: the ids of their calls are unknown.
func (d *decision) newCallID(id string, calls []Call) string {
	isVisible := func(r rune) bool { return r > ' ' && r <= '~' }
	if id == "" || len(id) > maxCallID || strings.ContainsFunc(id, func(r rune) bool { return !isVisible(r) }) {
		id = "call"
	}
	isTaken := func(id string) bool {
		return d.knowsToolCall(id) || slices.ContainsFunc(calls, func(c Call) bool { return c.ID == id })
	}
	unique := id
	for n := d.EventCount; unique == "call" || unique == id && d.Removed || isTaken(unique); n++ {
		unique = fmt.Sprintf("%s-%d", id[:min(len(id), 24)], n)
	}
	return unique
}

// toolName returns a name that providers accept.
func toolName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
	return cmp.Or(name[:min(len(name), 64)], "unknown")
}

func (d *decision) requestApprovals(tools []CalledTool) {
	var events []event.Event
	for i, c := range d.Request.Calls {
		if tools[i].Approve && c.Error == "" {
			events = append(events, event.New(event.ApprovalRequested{
				ToolCallID: c.ID, RequestID: d.Request.ID, ExpiresAt: d.expiry(),
			}))
		}
	}
	d.recordEvents(events...)
}

func (d *decision) expiry() time.Time {
	return d.at.UTC().Add(d.Reduced.Config.Tools.Limits().Expiry)
}

// advance continues after a change of the calls. Once all have results, the next step begins.
func (d *decision) advance() {
	d.recordErrors()
	r := d.Request
	if len(r.Calls) == 0 {
		r.Limit = ""
		if d.policy() == (PolicyRule{}) {
			r.Limit = r.Through
		}
		d.requeue()
		return
	}
	running := 0
	for _, c := range r.Calls {
		if c.State == CallRunning {
			running++
		}
	}
	limit := d.Reduced.Config.Tools.Limits().Parallel
	for i := range r.Calls {
		switch c := &r.Calls[i]; {
		case c.State != CallQueued:
		case c.Edited && d.clientSchema(c.Name) != nil:
			c.State = CallChecking
			d.perform(CallTool{RequestID: r.ID, Call: *c, Schema: d.clientSchema(c.Name)})
		case c.Client:
			c.State, c.Deadline = CallClient, d.expiry()
		case running < limit:
			running++
			c.State = CallRunning
			d.perform(CallTool{RequestID: r.ID, Call: *c})
		}
	}
}

// clientSchema returns the schema of a client's tool; nil for none.
func (d *decision) clientSchema(name string) event.Object {
	if d.Reduced.Config.Tools == nil {
		return nil
	}
	for _, t := range d.Reduced.Config.Tools.Tools {
		if t.IsClient() && t.Name == name {
			return t.Parameters
		}
	}
	return nil
}

// checked continues a client's call after the validation of its edited arguments.
func (d *decision) checked(c *Call, in ToolEnded) {
	switch {
	case in.Outcome != CallReturned:
		c.Error = "not executed: the edited arguments could not be validated"
	case in.IsError || isSet(in.Error):
		d.record(in.result())
	default:
		c.State, c.Edited = CallQueued, false
	}
	d.advance()
}

func (d *decision) recordErrors() {
	var results []event.Event
	for _, c := range d.Request.Calls {
		if c.Error != "" {
			results = append(results, errorResult(c.ID, c.Error))
		}
	}
	d.recordEvents(results...)
}

func errorResult(callID, problem string) event.Event {
	text, _ := json.Marshal(problem) // every string can be encoded
	return event.New(event.ToolResult{ToolCallID: callID, Error: event.ToolValue(text), IsError: true})
}

// toolEnded records the result of a running call, or a late result instead of its placeholder.
func (d *decision) toolEnded(in ToolEnded) {
	r := d.Request
	if r != nil && r.ID == in.RequestID {
		if i := slices.IndexFunc(r.Calls, func(c Call) bool { return c.ID == in.CallID && c.State == CallChecking }); i >= 0 {
			d.checked(&r.Calls[i], in)
			return
		}
	}
	if r != nil && r.ID == in.RequestID && slices.ContainsFunc(r.Calls, func(c Call) bool { return c.ID == in.CallID && c.State == CallRunning }) {
		d.record(in.result())
		d.advance()
		return
	}
	if in.Outcome == CallReturned && !d.Ended && d.hasPlaceholder(in.CallID) {
		d.record(in.result())
	}
}

func (in ToolEnded) result() event.ToolResult {
	result := event.UnknownResult(in.CallID)
	result.DurationMs = max(0, in.Duration.Milliseconds())
	if in.Outcome != CallReturned {
		return result
	}
	result.IsError = in.IsError || isSet(in.Error)
	output, fallback := in.Value, `"(no output)"`
	if isSet(in.Error) {
		output = in.Error
	}
	output = event.ToolValue(output)
	switch {
	case len(output) > maxToolResult:
		result.IsError = true
		output, _ = json.Marshal(fmt.Sprintf("the result has %d bytes (at most %d)", len(output), maxToolResult))
	case !isSet(output):
		output = json.RawMessage(fallback)
	}
	result.Value, result.Error = output, nil
	if result.IsError {
		result.Value, result.Error = nil, output
	}
	return result
}

// isSet treats null as missing.
func isSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

func (d *decision) hasPlaceholder(callID string) bool {
	for _, m := range slices.Backward(d.Reduced.Messages) {
		if m.Role == RoleTool && m.ToolCallID == callID {
			return m.Content == event.OutcomeUnknown
		}
	}
	return false
}

func (d *decision) receivedWhileCalling() {
	if d.isOutdated() && d.policy().Interrupts {
		d.interruptCalls(event.ReasonNewUserInput)
		return
	}
	d.advance()
}

// interruptCalls ends the request at once. Results of running calls may still arrive.
func (d *decision) interruptCalls(reason event.Reason) {
	r := d.Request
	isRunning := false
	for i := range r.Calls {
		switch c := &r.Calls[i]; c.State {
		case CallChecking:
			isRunning = true
			c.Error = "not executed: interrupted before the call"
		case CallRunning:
			isRunning = true
		case CallQueued:
			c.Error = "not executed: interrupted before the call"
		}
	}
	d.recordEvents(r.interruptedResults()...)
	d.recordInterruption(AttemptEnded{}, reason)
	d.next()
	if isRunning {
		d.perform(CancelTools{RequestID: r.ID})
	}
}

func (r *Request) interruptedResults() (results []event.Event) {
	for _, c := range r.Calls {
		switch {
		case c.Error != "":
			results = append(results, errorResult(c.ID, c.Error))
		case c.State == CallApproval:
			results = append(results, errorResult(c.ID, "not executed: interrupted before it was approved"))
		default:
			results = append(results, event.New(event.UnknownResult(c.ID)))
		}
	}
	return results
}

// continueCalls resumes the calls in the next run, which has lost the activities of the previous
// one. Only calls that did not start or are idempotent are executed again.
func (d *decision) continueCalls(notStarted []string) {
	r := d.Request
	for i := range r.Calls {
		if c := &r.Calls[i]; c.State == CallRunning && !c.Idempotent && !slices.Contains(notStarted, c.ID) {
			c.Error = event.OutcomeUnknown
		}
	}
	d.recordErrors()
	for i := range r.Calls {
		switch c := &r.Calls[i]; c.State {
		case CallRunning:
			d.perform(CallTool{RequestID: r.ID, Call: *c})
		case CallChecking:
			c.State = CallQueued
		}
	}
	d.advance()
}

// followCall updates the session for a recorded call. After [Load], the call lacks the tool's options.
func (d *decision) followCall(body event.ToolCall) {
	r := d.Request
	if r == nil || body.RequestID != r.ID {
		return
	}
	if len(r.Calls) == 0 {
		r.Steps++
	}
	r.Calls = append(r.Calls, Call{ID: body.ToolCallID, Name: body.ToolName, Arguments: body.Parameters, State: CallQueued})
}

func (d *decision) followResult(body event.ToolResult) {
	if d.Request == nil || len(d.Request.Calls) == 0 {
		return
	}
	r := d.Request
	r.Calls = slices.DeleteFunc(r.Calls, func(c Call) bool { return c.ID == body.ToolCallID })
	if len(r.Calls) == 0 {
		r.Calls = nil
	}
}
