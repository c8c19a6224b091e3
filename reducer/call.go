package reducer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Call is a tool call of the running request without a result. Its JSON is persisted.
type Call struct {
	// ID is unique in the context. It is the idempotency key of the call.
	ID string `json:"id"`
	// Name is the name of the tool as sent to models.
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	State     CallState       `json:"state"`
	// Client means that a client executes the call and sends its result.
	Client bool `json:"client,omitempty"`
	// Idempotent means that the call may be executed again. TimeoutMs and Attempts are the options
	// of the tool.
	Idempotent bool  `json:"idempotent,omitempty"`
	TimeoutMs  int64 `json:"timeoutMs,omitempty"`
	Attempts   int   `json:"attempts,omitempty"`
	// Deadline is when a call that waits for an approval or a client expires; zero otherwise.
	Deadline time.Time `json:"deadline,omitzero"`
	// Error is the error result of a call that is not executed; "" for none.
	Error string `json:"error,omitempty"`
}

// UnmarshalJSON brings the arguments into the form of [event.ToolValue].
func (c *Call) UnmarshalJSON(data []byte) error {
	type plain Call
	err := json.Unmarshal(data, (*plain)(c))
	c.Arguments = event.ToolValue(c.Arguments)
	return err
}

// CallState is what a [Call] waits for.
type CallState string

const (
	// CallQueued: for another call, because of the parallel limit.
	CallQueued CallState = "queued"
	// CallRunning: for the result of the worker.
	CallRunning CallState = "running"
	// CallApproval: for an [event.ApprovalDecided].
	CallApproval CallState = "approval"
	// CallClient: for an [event.ToolResult] of a client.
	CallClient CallState = "client"
)

// CalledTool is a tool call of an answer, after the worker has resolved the tool, validated the
// arguments and evaluated the approval rules.
type CalledTool struct {
	// ID is the id that the provider assigned; it may be empty or not unique.
	ID        string
	Name      string
	Arguments json.RawMessage
	// Error is the error result of a call that must not be executed; "" for none.
	Error string
	// Client means that a client executes the tool, Approve that the call requires an approval.
	Client, Approve bool
	Idempotent      bool
	TimeoutMs       int64
	Attempts        int
}

// CallOutcome is how the execution of a call ended.
type CallOutcome string

const (
	// CallReturned: the tool returned a value or an error.
	CallReturned CallOutcome = "returned"
	// CallLost: the worker died or did not report the result.
	CallLost CallOutcome = "lost"
	// CallCancelled: the call was cancelled before it returned.
	CallCancelled CallOutcome = "cancelled"
)

// MaxCalls bounds the tool calls of an answer. Further ones are dropped.
const MaxCalls = 128

// Bounds of what a worker reports, in bytes.
const (
	maxCallID     = 64
	maxCallError  = 4 << 10
	maxToolResult = 1 << 20
)

// called records an answer with tool calls and begins to execute them. It returns false if the turn
// has no step left, so that the request ends.
func (d *decision) called(in RequestEnded) (continues bool) {
	r := d.Request
	limit := d.Reduced.Config.Tools.Limits().MaxSteps
	continues = r.Steps < limit
	calls := d.newCalls(in.Calls)
	answerID := event.FormatID(d.ContextName, d.EventCount+1)
	events := []event.Event{event.New(d.answer(in, false))}
	for _, c := range calls {
		events = append(events, event.New(event.ToolCall{
			ToolCallID: c.ID, MessageID: answerID, ToolName: c.Name, Parameters: c.Arguments, RequestID: r.ID,
		}))
	}
	d.recordEvents(events...)
	r.Calls, r.Returns = calls, 0
	if continues {
		d.recordAttemptEnd(event.AttemptToolCalls, in.AttemptEnd)
		d.requestApprovals(in.Calls)
		d.advance()
		return true
	}
	for i := range r.Calls {
		r.Calls[i].Error = fmt.Sprintf("not executed: the turn has reached its limit of %d steps", limit)
	}
	d.recordErrors()
	d.recordCompletion(in)
	return false
}

// newCalls returns the calls of an answer. The events with them are valid.
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

// problemOf returns why a call must not be executed; "" if it may. before are the earlier calls of
// the same answer.
func (d *decision) problemOf(c Call, tool CalledTool, before []Call) string {
	if c.Name != tool.Name {
		return "not executed: no tool has this name"
	}
	if size := len(c.Arguments); size > event.MaxArgumentBytes {
		return fmt.Sprintf("not executed: the arguments have %d bytes (at most %d)", size, event.MaxArgumentBytes)
	}
	if err := event.RefuseKeys(map[string]json.RawMessage{"arguments": tool.Arguments}); err != nil {
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

// countCalls counts the identical calls in earlier steps of the request.
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

// newCallID returns an id that is unique in the context: the provider's id if it is unique.
func (d *decision) newCallID(id string, calls []Call) string {
	isVisible := func(r rune) bool { return r > ' ' && r <= '~' }
	if id == "" || len(id) > maxCallID || strings.ContainsFunc(id, func(r rune) bool { return !isVisible(r) }) {
		id = "call"
	}
	isTaken := func(id string) bool {
		return d.knowsToolCall(id) || slices.ContainsFunc(calls, func(c Call) bool { return c.ID == id })
	}
	unique := id
	for n := d.EventCount; unique == "call" || isTaken(unique); n++ {
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

// requestApprovals records which of the new calls wait for an approval.
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

// expiry returns the deadline of a call that begins to wait now.
func (d *decision) expiry() time.Time {
	return d.at.UTC().Add(d.Reduced.Config.Tools.Limits().Expiry)
}

// advance records the error results of calls that are not executed and starts queued calls. If all
// calls have a result, the request continues with the next step.
func (d *decision) advance() {
	d.recordErrors()
	r := d.Request
	if len(r.Calls) == 0 {
		r.Limit = ""
		if d.policy() == (PolicyRule{}) {
			r.Limit = r.Through
		}
		d.requeue(r.Attempt)
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
		case c.Client:
			c.State, c.Deadline = CallClient, d.expiry()
		case running < limit:
			running++
			c.State = CallRunning
			d.perform(CallTool{RequestID: r.ID, Call: *c})
		}
	}
}

// recordErrors records the results of the calls with an error.
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

// toolEnded records the result of a running call. The late result of an interrupted call replaces
// its placeholder.
func (d *decision) toolEnded(in ToolEnded) {
	r := d.Request
	if r != nil && r.ID == in.RequestID && slices.ContainsFunc(r.Calls, func(c Call) bool { return c.ID == in.CallID && c.State == CallRunning }) {
		d.record(in.result())
		d.advance()
		return
	}
	if in.Outcome == CallReturned && !d.Ended && d.hasPlaceholder(in.CallID) {
		d.record(in.result())
	}
}

// result returns the result of a call; it is a valid event.
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

// isSet reports whether a value is present; null counts as missing.
func isSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

func (d *decision) hasPlaceholder(callID string) bool {
	for _, m := range slices.Backward(d.Reduced.Messages) {
		if m.Role == RoleTool && m.ToolCallID == callID {
			return m.Content == event.OutcomeUnknown
		}
	}
	return false
}

// receivedWhileCalling continues after input during the tool calls of a step.
func (d *decision) receivedWhileCalling() {
	if d.isOutdated() && d.policy().Interrupts {
		d.interruptCalls(event.ReasonNewUserInput)
		return
	}
	d.advance()
}

// interruptCalls ends the request at once. Running calls are cancelled; their results may still
// arrive.
func (d *decision) interruptCalls(reason event.Reason) {
	r := d.Request
	r.Stop = reason
	isRunning := false
	for i := range r.Calls {
		switch c := &r.Calls[i]; c.State {
		case CallRunning:
			isRunning = true
		case CallQueued:
			c.Error = "not executed: interrupted before the call"
		}
	}
	d.recordEvents(r.interruptedResults()...)
	d.recordInterruption(RequestEnded{}, reason)
	d.next()
	if isRunning {
		d.perform(CancelTools{RequestID: r.ID})
	}
}

// interruptedResults returns the results of the calls of an interrupted request.
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

// continueCalls resumes the calls in the next run. The activities of the previous run are lost;
// only calls that did not start or are idempotent are executed again.
func (d *decision) continueCalls(notStarted []string) {
	r := d.Request
	for i := range r.Calls {
		if c := &r.Calls[i]; c.State == CallRunning && !c.Idempotent && !slices.Contains(notStarted, c.ID) {
			c.Error = event.OutcomeUnknown
		}
	}
	d.recordErrors()
	for _, c := range r.Calls {
		if c.State == CallRunning {
			d.perform(CallTool{RequestID: r.ID, Call: c})
		}
	}
	d.advance()
}

// followCall updates the session for a recorded call; [Load] restores it, except what the worker
// reported about the tool.
func (d *decision) followCall(body event.ToolCall) {
	r := d.Request
	if r == nil || body.RequestID != r.ID || d.Rules < Rules2 {
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
