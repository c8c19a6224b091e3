package openai

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
)

// turn folds the log from the trigger of a response on, and the deltas, into the response and its stream of events. It
// depends on the log and on offsets in the text only, so that every gateway numbers the events alike, see [number].
type turn struct {
	response response
	trigger  int             // counter of the event that the model answers
	isClient map[string]bool // the tools that clients execute
	after    int64           // events up to this number are not emitted
	emit     func(kind string, fields map[string]any)

	last      int    // counter of the newest event
	request   string // id of the request that answers; "": not known yet
	continues bool   // the trigger continues a request
	through   int    // counter of the newest event in the newest request
	attempt   int    // counter of the event that began the attempt
	sub       int    // of the next event of the newest recorded event
	answer    answer
	calls     []*call
	isStep    bool // an answer with calls has ended
	isDone    bool
	items     int // number of items in the stream
}

// answer is what was streamed of an attempt.
type answer struct {
	reasoning, text stretch
}

// stretch is a text that is streamed as an item.
type stretch struct {
	index   int  // of the item
	isBegun bool // the item was opened
	isOpen  bool
	text    []byte
}

type call struct {
	event.ToolCall
	index      int
	id         string
	isWaiting  bool // for an approval
	isAnswered bool
	isEarlier  bool // of an earlier response
}

// Events of the stream have the number of the recorded event that they are about, counted from the trigger, and a number
// within it. Those of an answer that is not recorded yet belong to the event that began its attempt: first the reasoning,
// then the text, each delta with the offset of its end. Numbers increase and have gaps.
const (
	subBits        = 22
	reasoningBegin = 1 << 4 // after the begin of the request
	reasoningEnd   = 1 << 21
	textBegin      = reasoningEnd + 1<<4
	headerEvents   = 2 // before the first delta
	maxSub         = 1<<subBits - 1
)

func (t *turn) number(counter, sub int) int64 {
	return int64(counter-t.trigger)<<subBits + int64(min(sub, maxSub))
}

func (t *turn) send(counter, sub int, kind string, fields map[string]any) {
	n := t.number(counter, sub)
	if t.emit == nil || n <= t.after {
		return
	}
	fields["type"], fields["sequence_number"] = kind, n
	t.emit(kind, fields)
}

// next sends an event about the newest recorded event.
func (t *turn) next(kind string, fields map[string]any) {
	t.send(t.last, t.sub, kind, fields)
	t.sub++
}

func (t *turn) sendResponse(kind string) {
	t.next(kind, map[string]any{"response": t.response})
}

// add folds the next item of the context.
func (t *turn) add(in gateway.Item) {
	e := in.Event
	if n := event.Counter(e.ID); n > 0 {
		t.last, t.sub = n, 0
	}
	if t.last < t.trigger {
		t.precede(e)
		return
	}
	if t.last == t.trigger && e.ID != "" {
		t.begin(e)
	}
	switch body := e.Body.(type) {
	case event.LLMRequestStarted:
		t.started(body)
	case event.ReasoningDelta:
		t.delta(event.TextDelta(body), &t.answer.reasoning, in.Offset)
	case event.TextDelta:
		t.delta(body, &t.answer.text, in.Offset)
	case event.AssistantMessage:
		if body.RequestID == t.request && t.request != "" {
			t.answered(body)
		}
	case event.ToolCall:
		if body.RequestID == t.request && t.request != "" {
			t.called(body)
		}
	case event.ApprovalRequested:
		t.approvalRequested(body)
	case event.ApprovalDecided:
		t.approvalDecided(body)
	case event.ToolResult:
		t.result(body)
	case event.LLMAttemptEnded:
		t.attemptEnded(body)
	case event.LLMRequestFellBack:
		if body.RequestID == t.request {
			t.count(body.Usage)
			t.abandon(body.Usage)
		}
	case event.RequestEnd:
		t.ended(e)
	case event.SessionEnded:
		t.end(statusCancelled)
	case event.SessionStarted:
		if body.PreviousRunID != "" && t.last > t.trigger {
			t.response.Error = &responseError{"server_error", "the run was terminated before it answered"}
			t.end(statusFailed)
		}
	}
	if t.isStep {
		t.checkClients()
	}
}

// precede notes the calls of the response before, which the trigger may continue.
func (t *turn) precede(e event.Event) {
	switch body := e.Body.(type) {
	case event.ToolCall:
		t.calls = append(t.calls, &call{ToolCall: body, isEarlier: true})
	case event.ToolResult:
		if c := t.find(body.ToolCallID); c != nil {
			c.isAnswered = true
		}
	case event.ApprovalRequested:
		if c := t.find(body.ToolCallID); c != nil {
			c.isWaiting = true
		}
	case event.ApprovalDecided:
		t.approvalDecided(body)
	}
}

// find returns the call without a result; nil: there is none.
func (t *turn) find(toolCallID string) *call {
	for _, c := range t.calls {
		if c.ToolCallID == toolCallID && !c.isAnswered {
			return c
		}
	}
	return nil
}

func (t *turn) approvalDecided(body event.ApprovalDecided) {
	for _, c := range t.calls {
		if body.ToolCallID == "" || body.ToolCallID == c.ToolCallID {
			c.isWaiting = false
		}
	}
}

func (t *turn) begin(e event.Event) {
	if t.continues = !event.RequiresAnswer(e.Body); !t.continues {
		t.calls = nil
	}
	t.isStep = t.continues
	t.response.CreatedAt = e.Timestamp.Unix()
	t.response.Status = statusQueued
	t.sendResponse("response.created")
}

func (t *turn) started(body event.LLMRequestStarted) {
	t.through = event.Counter(body.ThroughEventID)
	if t.request == "" && (t.continues || t.through >= t.trigger) {
		t.request = body.RequestID
		t.response.Status, t.response.Model = statusInProgress, modelName(body.ProviderID, body.Model)
		t.sendResponse("response.in_progress")
	}
	if body.RequestID != t.request {
		return
	}
	if t.attempt, t.answer = 0, (answer{}); body.Purpose == "" {
		t.response.Model = modelName(body.ProviderID, body.Model)
		t.attempt = t.last
	}
}

// delta streams a piece of the running answer. Reasoning after the begin of the text is not streamed.
func (t *turn) delta(d event.TextDelta, s *stretch, offset int) {
	isReasoning := s == &t.answer.reasoning
	isLate := isReasoning && t.answer.text.isBegun
	if d.RequestID != t.request || t.request == "" || t.attempt == 0 || d.Delta == "" || isLate || offset > len(s.text) {
		return
	}
	known := min(len(s.text)-offset, len(d.Delta))
	if string(s.text[offset:offset+known]) != d.Delta[:known] {
		return // the attempt started over: the answer comes with its record
	}
	if d.Delta = d.Delta[known:]; d.Delta != "" {
		t.grow(s, d.Delta)
	}
}

// grow adds text to a stretch, and opens its item.
func (t *turn) grow(s *stretch, text string) {
	begin, kind := textBegin, "response.output_text.delta"
	if s == &t.answer.reasoning {
		begin, kind = reasoningBegin, "response.reasoning_summary_text.delta"
	}
	t.open(s)
	first := begin + headerEvents + len(s.text) // number of the delta that would end here
	s.text = append(s.text, text...)
	if sent := int(t.after - t.number(t.attempt, first)); sent > 0 {
		for sent = min(sent, len(text)); sent < len(text) && !utf8.RuneStart(text[sent]); {
			sent++
		}
		text = text[sent:]
	}
	if text == "" {
		return
	}
	fields := t.of(s, "delta", text)
	if s == &t.answer.text {
		fields["logprobs"] = []any{}
	}
	t.send(t.attempt, begin+headerEvents+len(s.text), kind, fields)
}

func (t *turn) open(s *stretch) {
	if s.isBegun {
		return
	}
	s.isBegun, s.isOpen = true, true
	if s == &t.answer.reasoning {
		s.index = t.newIndex()
		t.send(t.attempt, reasoningBegin, "response.output_item.added", map[string]any{"output_index": s.index, "item": t.reasoningItem("", statusInProgress)})
		t.send(t.attempt, reasoningBegin+1, "response.reasoning_summary_part.added", t.of(s, "part", summary("")))
		return
	}
	t.closeReasoning(statusCompleted)
	s.index = t.newIndex()
	t.send(t.attempt, textBegin, "response.output_item.added", map[string]any{"output_index": s.index, "item": t.messageItem(nil, statusInProgress)})
	t.send(t.attempt, textBegin+1, "response.content_part.added", t.of(s, "part", outputText("")))
}

func (t *turn) newIndex() int { t.items++; return t.items - 1 }

// of returns the fields of an event about a stretch.
func (t *turn) of(s *stretch, name string, value any) map[string]any {
	fields := map[string]any{"output_index": s.index, name: value}
	if s == &t.answer.reasoning {
		fields["item_id"], fields["summary_index"] = t.itemID("rs"), 0
	} else {
		fields["item_id"], fields["content_index"] = t.itemID("msg"), 0
	}
	return fields
}

func (t *turn) itemID(prefix string) string { return formatID(prefix, t.response.name, t.attempt) }

func (t *turn) reasoningItem(text, status string) item {
	i := item{Type: "reasoning", ID: t.itemID("rs"), Status: status, Summary: &[]part{}}
	if text != "" {
		i.Summary = &[]part{summary(text)}
	}
	return i
}

func (t *turn) messageItem(text *string, status string) item {
	i := item{Type: "message", ID: t.itemID("msg"), Role: "assistant", Status: status, Content: &[]part{}}
	if text != nil {
		i.Content = &[]part{outputText(*text)}
	}
	return i
}

func (t *turn) closeReasoning(status string) {
	s := &t.answer.reasoning
	if !s.isOpen {
		return
	}
	s.isOpen = false
	text := string(s.text)
	at := reasoningEnd
	t.send(t.attempt, at, "response.reasoning_summary_text.done", t.of(s, "text", text))
	t.send(t.attempt, at+1, "response.reasoning_summary_part.done", t.of(s, "part", summary(text)))
	t.send(t.attempt, at+2, "response.output_item.done", map[string]any{"output_index": s.index, "item": t.reasoningItem(text, status)})
}

func (t *turn) closeText(text, status string) {
	s := &t.answer.text
	if !s.isOpen {
		return
	}
	s.isOpen = false
	fields := t.of(s, "text", text)
	fields["logprobs"] = []any{}
	t.next("response.output_text.done", fields)
	t.next("response.content_part.done", t.of(s, "part", outputText(text)))
	t.next("response.output_item.done", map[string]any{"output_index": s.index, "item": t.messageItem(&text, status)})
}

// answered closes the items of an answer that is recorded.
func (t *turn) answered(body event.AssistantMessage) {
	status := statusCompleted
	if body.Partial {
		status = statusIncomplete
	}
	if rest, ok := strings.CutPrefix(body.Reasoning, string(t.answer.reasoning.text)); ok && rest != "" && !t.answer.text.isBegun {
		t.grow(&t.answer.reasoning, rest)
	}
	if rest, ok := strings.CutPrefix(body.Content, string(t.answer.text.text)); ok && rest != "" {
		t.grow(&t.answer.text, rest)
	}
	t.closeReasoning(status)
	t.closeText(body.Content, status)
	if body.Reasoning != "" {
		t.response.Output = append(t.response.Output, t.reasoningItem(body.Reasoning, status))
	}
	if body.Content != "" {
		t.response.Output = append(t.response.Output, t.messageItem(&body.Content, status))
	}
}

// abandon closes the items of an attempt that ended without an answer. The response does not contain them, but each reader
// counts them alike.
func (t *turn) abandon(u event.Usage) {
	if t.attempt == 0 {
		return
	}
	if u.ReasoningTokens > 0 {
		t.open(&t.answer.reasoning)
	}
	if u.OutputTokens > u.ReasoningTokens || t.after >= t.number(t.attempt, textBegin) && t.after <= t.number(t.attempt, maxSub) {
		t.open(&t.answer.text)
	}
	t.closeReasoning(statusIncomplete)
	t.closeText(string(t.answer.text.text), statusIncomplete)
	t.attempt, t.answer = 0, answer{}
}

func (t *turn) called(body event.ToolCall) {
	c := &call{ToolCall: body, index: t.newIndex(), id: formatID("fc", t.response.name, t.last)}
	arguments := gateway.Arguments(body)
	prefix := "response.function_call_arguments"
	if !t.isClient[body.ToolName] {
		c.id, prefix = formatID("mcp", t.response.name, t.last), "response.mcp_call_arguments"
	}
	t.calls = append(t.calls, c)
	about := func(name, value string) map[string]any {
		fields := map[string]any{"output_index": c.index, "item_id": c.id, name: value}
		return fields
	}
	added := t.callItem(c, statusInProgress)
	added.Arguments = new("")
	t.next("response.output_item.added", map[string]any{"output_index": c.index, "item": added})
	t.next(prefix+".delta", about("delta", arguments))
	t.next(prefix+".done", about("arguments", arguments))
	if t.isClient[body.ToolName] {
		done := t.callItem(c, statusCompleted)
		t.next("response.output_item.done", map[string]any{"output_index": c.index, "item": done})
		t.response.Output = append(t.response.Output, done)
		return
	}
	t.next("response.mcp_call.in_progress", map[string]any{"output_index": c.index, "item_id": c.id})
	t.response.Output = append(t.response.Output, t.callItem(c, statusInProgress))
}

func (t *turn) callItem(c *call, status string) item {
	i := item{Type: "function_call", ID: c.id, CallID: c.ToolCallID, Name: c.ToolName, Arguments: new(gateway.Arguments(c.ToolCall)), Status: status}
	if !t.isClient[c.ToolName] {
		i.Type, i.CallID = "mcp_call", ""
		i.ServerLabel, i.Name = serverOf(c.ToolName)
	}
	return i
}

func (t *turn) result(body event.ToolResult) {
	c := t.find(body.ToolCallID)
	if c == nil {
		return
	}
	c.isAnswered, c.isWaiting = true, false
	if t.isClient[c.ToolName] || c.isEarlier && t.last == t.trigger {
		return
	}
	if c.isEarlier { // it was approved
		c.id, c.index = formatID("mcp", t.response.name, t.last), t.newIndex()
		t.next("response.output_item.added", map[string]any{"output_index": c.index, "item": t.callItem(c, statusInProgress)})
		t.response.Output = append(t.response.Output, t.callItem(c, statusInProgress))
	}
	t.endCall(c, &body)
}

// endCall closes the item of a call of the worker; without a result, as incomplete.
func (t *turn) endCall(c *call, body *event.ToolResult) {
	done := t.callItem(c, statusIncomplete)
	about := map[string]any{"output_index": c.index, "item_id": c.id}
	switch {
	case body == nil:
	case body.IsError || len(body.Value) == 0:
		done.Status, done.Error = "failed", new(gateway.PlainText(slices.Concat(body.Error, body.Value)))
		t.next("response.mcp_call.failed", about)
	default:
		done.Status, done.Output = statusCompleted, new(gateway.PlainText(body.Value))
		t.next("response.mcp_call.completed", about)
	}
	t.next("response.output_item.done", map[string]any{"output_index": c.index, "item": done})
	for i := range t.response.Output {
		if t.response.Output[i].ID == c.id {
			t.response.Output[i] = done
		}
	}
}

func (t *turn) approvalRequested(body event.ApprovalRequested) {
	c := t.find(body.ToolCallID)
	if c == nil {
		return
	}
	c.isWaiting = true
	asked := item{Type: "mcp_approval_request", ID: formatID(approvalPrefix, t.response.name, t.last), Arguments: new(gateway.Arguments(c.ToolCall))}
	asked.ServerLabel, asked.Name = serverOf(c.ToolName)
	index := t.newIndex()
	t.next("response.output_item.added", map[string]any{"output_index": index, "item": asked})
	t.next("response.output_item.done", map[string]any{"output_index": index, "item": asked})
	t.response.Output = append(t.response.Output, asked)
}

func (t *turn) attemptEnded(body event.LLMAttemptEnded) {
	if body.RequestID != t.request || t.request == "" {
		return
	}
	t.count(body.Usage)
	switch body.Outcome {
	case event.AttemptToolCalls:
		t.isStep = true
	case event.AttemptCompacted:
	default:
		t.abandon(body.Usage)
	}
}

// checkClients ends the response if only clients can continue the request.
func (t *turn) checkClients() {
	isPending := false
	for _, c := range t.calls {
		if c.isAnswered {
			continue
		}
		if !t.isClient[c.ToolName] && !c.isWaiting {
			return // a worker executes it
		}
		isPending = true
	}
	if isPending {
		t.end(statusCompleted)
		return
	}
	t.isStep = false // the next attempt follows
}

func (t *turn) ended(e event.Event) {
	through := t.through
	if n := event.Counter(e.Body.(event.RequestEnd).Unanswered()); n > 0 {
		through = n
	}
	if event.RequestOf(e.Body) != t.request && through < t.trigger {
		return
	}
	switch body := e.Body.(type) {
	case event.LLMRequestCompleted:
		if body.RequestID != t.request {
			t.end(statusCancelled)
			return
		}
		t.count(body.Usage)
		reason := map[string]string{"length": "max_output_tokens", "content_filter": "content_filter"}[body.FinishReason]
		if reason != "" {
			t.response.IncompleteDetails = &incompleteDetails{reason}
			t.end(statusIncomplete)
			return
		}
		t.end(statusCompleted)
	case event.LLMRequestInterrupted:
		t.count(body.Usage)
		switch body.Reason {
		case event.ReasonNewUserInput:
			t.response.IncompleteDetails = &incompleteDetails{"steered"}
			t.end(statusIncomplete)
		case event.ReasonTimeout:
			t.response.Error = &responseError{"server_error", "the answer timed out"}
			t.end(statusFailed)
		default:
			t.end(statusCancelled)
		}
	case event.LLMRequestFailed:
		t.count(body.Usage)
		code := "server_error"
		switch body.Kind {
		case event.FailureRateLimited, event.FailureQuota:
			code = "rate_limit_exceeded"
		case event.FailureBadRequest, event.FailureContextTooLong, event.FailureContentFilter, event.FailureRefusedByHook:
			code = "invalid_prompt"
		}
		t.response.Error = &responseError{code, body.Error}
		t.end(statusFailed)
	}
}

func (t *turn) end(status string) {
	if t.isDone || t.response.Status == "" {
		return
	}
	t.isDone = true
	if t.attempt > 0 {
		t.closeReasoning(statusIncomplete)
		t.closeText(string(t.answer.text.text), statusIncomplete)
	}
	for _, c := range t.calls {
		if !c.isAnswered && !c.isWaiting && !c.isEarlier && !t.isClient[c.ToolName] {
			t.endCall(c, nil)
		}
	}
	t.response.Status = status
	kind := "response." + status
	if status == statusCancelled {
		kind = "response.incomplete" // the protocol has no event of its own for it
	}
	t.sendResponse(kind)
}

func (t *turn) count(u event.Usage) {
	sum := &t.response.usage
	sum.InputTokens += u.InputTokens
	sum.CachedTokens += u.CachedTokens
	sum.OutputTokens += u.OutputTokens
	sum.ReasoningTokens += u.ReasoningTokens
	t.response.Usage = usageOf(*sum)
}

// serverOf splits the name of a tool of the worker: mcp:files/read, or a tool of the worker itself.
func serverOf(tool string) (server, name string) {
	if rest, ok := strings.CutPrefix(tool, "mcp:"); ok {
		if server, name, ok = strings.Cut(rest, "/"); ok {
			return server, name
		}
	}
	return "worker", tool
}
