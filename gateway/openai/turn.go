package openai

import (
	"strings"
	"unicode/utf8"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/thread"
)

// turn folds the log from the trigger of a response on, and the deltas, into the response and its stream of events. It
// depends on the log and on offsets in the text only, so that every gateway numbers the events alike, see [number].
type turn struct {
	h        *gateway.Handle
	from     string // id of the event after which a reader begins; "": at the first one
	response response
	trigger  int   // counter of the event that the model answers
	after    int64 // events up to this number are not emitted
	emit     func(kind string, fields map[string]any)
	offers   func(calls []string) (offered []string) // see [thread.Offers]; nil: the next event shows whether calls wait for clients

	thread    thread.Thread
	request   *thread.Request // that answers; nil: not known yet
	continues bool            // the trigger continues a request
	sub       int             // of the next event of the newest recorded event
	items     int             // number of items in the stream
	calls     map[*thread.Call]callState
	isPaused  bool // only clients continue the request, unless the next event shows otherwise
	isDone    bool

	step            *thread.Step // whose items are streamed; nil: none
	reasoning, text stretch
	isRestarted     bool // the streamed text differs from that of the step, which is sent when it is recorded
}

// stretch is a text that is streamed as an item.
type stretch struct {
	index   int  // of the item
	isBegun bool // the item was opened
	isOpen  bool
	text    string
}

// callState is a call in the stream.
type callState struct {
	index int
	id    string // of the item
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
	t.send(t.thread.Last, t.sub, kind, fields)
	t.sub++
}

func (t *turn) sendResponse(kind string) {
	t.next(kind, map[string]any{"response": t.response})
}

func (t *turn) nextItem(kind string, index int, i item) {
	t.next("response.output_item."+kind, map[string]any{"output_index": index, "item": i})
}

// add folds the next item of the context.
func (t *turn) add(in gateway.Item) {
	e := in.Event
	if t.isPaused && e.ID != "" && !settles(e) {
		t.end(statusCompleted)
		return
	}
	if e.ID != "" {
		t.sub = 0
	}
	changes := t.thread.Apply(in)
	if t.thread.Last < t.trigger {
		return
	}
	if event.Counter(e.ID) == t.trigger {
		t.begin(e)
	}
	for _, change := range changes {
		t.change(change)
	}
	switch body := e.Body.(type) {
	case event.SessionEnded:
		t.end(statusCancelled)
	case event.SessionStarted:
		if body.PreviousRunID != "" && t.thread.Last > t.trigger {
			t.response.Error = &responseError{"server_error", "the run was terminated before it answered"}
			t.end(statusFailed)
		}
	}
	if e.ID != "" {
		t.pause()
	}
}

// settles reports whether an event is what a context itself records about a call after the end of the attempt: that it
// requires an approval, or has invalid arguments.
func settles(e event.Event) bool {
	_, isAsked := e.Body.(event.ApprovalRequested)
	_, isResult := e.Body.(event.ToolResult)
	return isAsked || isResult && e.ClientEventID == ""
}

// pause ends a response that only clients can continue.
func (t *turn) pause() {
	results, decisions := t.request.Waiting()
	var ids []string
	for _, c := range results {
		ids = append(ids, c.ToolCallID)
	}
	t.isPaused = len(results) > 0
	if isOffered := t.isPaused && t.offers != nil && len(t.offers(ids)) == len(results); isOffered || !t.isPaused && len(decisions) > 0 {
		t.end(statusCompleted)
	}
}

func (t *turn) begin(e event.Event) {
	if t.continues = !event.RequiresAnswer(e.Body); t.continues {
		t.request = t.thread.Running()
	}
	t.response.CreatedAt = e.Timestamp.Unix()
	t.response.Status = statusQueued
	t.sendResponse("response.created")
}

// change is the table from changes of the context to the events of a stream.
func (t *turn) change(change thread.Change) {
	isOwn := func(r *thread.Request) bool { return r == t.request && r != nil }
	isCall := func(c *thread.Call) bool { return c.Step != nil && isOwn(c.Step.Request) }
	switch change := change.(type) {
	case thread.Began:
		t.began(change)
	case thread.Grew:
		if isOwn(change.Step.Request) {
			t.grow(change)
		}
	case thread.Restarted:
		t.isRestarted = t.isRestarted || change.Step == t.step
	case thread.Answered:
		if isOwn(change.Step.Request) {
			t.answered(change.Step)
		}
	case thread.Used:
		if isOwn(change.Request) {
			t.response.usage = t.response.usage.Add(change.Usage)
			t.response.Usage = usageOf(t.response.usage)
		}
	case thread.Abandoned:
		if change.Step == t.step && t.step != nil {
			t.abandon(change.Usage)
		}
	case thread.Called:
		if isCall(change.Call) {
			t.called(change.Call)
		}
	case thread.Asked:
		if isCall(change.Call) {
			asked, index := approvalItem(change.Call), t.newIndex()
			t.nextItem("added", index, asked)
			t.nextItem("done", index, asked)
			t.response.Output = append(t.response.Output, asked)
		}
	case thread.Returned:
		if isCall(change.Call) && !change.IsLate {
			t.returned(change.Call)
		}
	case thread.Ended:
		t.ended(change.Request)
	}
}

func (t *turn) began(of thread.Began) {
	if t.request == nil && (t.continues || of.Request.Through >= t.trigger) {
		t.request = of.Request
	}
	if of.Request != t.request {
		return
	}
	t.response.Model = modelName(of.Request.ProviderID, of.Request.Model)
	if t.response.Status == statusQueued {
		t.response.Status = statusInProgress
		t.sendResponse("response.in_progress")
	}
	t.step, t.reasoning, t.text, t.isRestarted = of.Step, stretch{}, stretch{}, false
}

// grow streams a piece of the running answer, and opens its item. Reasoning after the begin of the text is not streamed.
func (t *turn) grow(g thread.Grew) {
	s, begin, kind, text := &t.text, textBegin, "response.output_text.delta", g.Step.Text.String()
	if g.IsReasoning {
		s, begin, kind, text = &t.reasoning, reasoningBegin, "response.reasoning_summary_text.delta", g.Step.Reasoning.String()
	}
	if g.Step != t.step || t.isRestarted || g.IsReasoning && t.text.isBegun {
		return
	}
	t.open(s)
	s.text = text[:g.Offset+len(g.Delta)]
	first := begin + headerEvents + g.Offset // number of the delta that would end here
	if sent := int(t.after - t.number(t.step.At, first)); sent > 0 {
		for sent = min(sent, len(g.Delta)); sent < len(g.Delta) && !utf8.RuneStart(g.Delta[sent]); {
			sent++
		}
		g.Delta = g.Delta[sent:]
	}
	if g.Delta == "" {
		return
	}
	fields := t.of(s, "delta", g.Delta)
	if s == &t.text {
		fields["logprobs"] = []any{}
	}
	t.send(t.step.At, begin+headerEvents+len(s.text), kind, fields)
}

func (t *turn) open(s *stretch) {
	if s.isBegun {
		return
	}
	added, begin, kind, empty := reasoningItem(t.response.name, t.step, "", statusInProgress), reasoningBegin, "response.reasoning_summary_part.added", summary("")
	if s == &t.text {
		t.closeReasoning(statusCompleted)
		added, begin, kind, empty = messageItem(t.response.name, t.step, nil, statusInProgress), textBegin, "response.content_part.added", outputText("")
	}
	s.isBegun, s.isOpen, s.index = true, true, t.newIndex()
	t.send(t.step.At, begin, "response.output_item.added", map[string]any{"output_index": s.index, "item": added})
	t.send(t.step.At, begin+1, kind, t.of(s, "part", empty))
}

func (t *turn) newIndex() int { t.items++; return t.items - 1 }

// of returns the fields of an event about a stretch.
func (t *turn) of(s *stretch, name string, value any) map[string]any {
	fields := map[string]any{"output_index": s.index, name: value}
	if s == &t.reasoning {
		fields["item_id"], fields["summary_index"] = formatID("rs", t.response.name, t.step.At), 0
	} else {
		fields["item_id"], fields["content_index"] = formatID("msg", t.response.name, t.step.At), 0
	}
	return fields
}

func (t *turn) closeReasoning(status string) {
	s := &t.reasoning
	if !s.isOpen {
		return
	}
	s.isOpen = false
	done := reasoningItem(t.response.name, t.step, s.text, status)
	t.send(t.step.At, reasoningEnd, "response.reasoning_summary_text.done", t.of(s, "text", s.text))
	t.send(t.step.At, reasoningEnd+1, "response.reasoning_summary_part.done", t.of(s, "part", summary(s.text)))
	t.send(t.step.At, reasoningEnd+2, "response.output_item.done", map[string]any{"output_index": s.index, "item": done})
}

func (t *turn) closeText(text, status string) {
	s := &t.text
	if !s.isOpen {
		return
	}
	s.isOpen = false
	fields := t.of(s, "text", text)
	fields["logprobs"] = []any{}
	t.next("response.output_text.done", fields)
	t.next("response.content_part.done", t.of(s, "part", outputText(text)))
	t.nextItem("done", s.index, messageItem(t.response.name, t.step, &text, status))
}

// answered closes the items of an answer that is recorded.
func (t *turn) answered(s *thread.Step) {
	t.closeReasoning(statusOf(s))
	t.closeText(s.Answer.Content, statusOf(s))
	t.response.Output = append(t.response.Output, answerItems(t.response.name, s)...)
}

// abandon closes the items of an attempt that ended without an answer. The response does not contain them, but each reader
// counts them alike.
func (t *turn) abandon(u event.Usage) {
	if u.ReasoningTokens > 0 {
		t.open(&t.reasoning)
	}
	if u.OutputTokens > u.ReasoningTokens || t.after >= t.number(t.step.At, textBegin) && t.after <= t.number(t.step.At, maxSub) {
		t.open(&t.text)
	}
	t.closeReasoning(statusIncomplete)
	t.closeText(t.text.text, statusIncomplete)
	t.step = nil
}

func (t *turn) called(c *thread.Call) {
	i, arguments, prefix := callItem(t.response.name, c), gateway.Arguments(c.ToolCall), "response.mcp_call_arguments"
	if c.IsClient {
		prefix = "response.function_call_arguments"
	}
	added := i
	added.Status, added.Arguments = statusInProgress, new("")
	index := t.show(c, added)
	t.response.Output = append(t.response.Output, i)
	t.next(prefix+".delta", map[string]any{"output_index": index, "item_id": i.ID, "delta": arguments})
	t.next(prefix+".done", map[string]any{"output_index": index, "item_id": i.ID, "arguments": arguments})
	if c.IsClient {
		t.nextItem("done", index, i)
	} else {
		t.next("response.mcp_call.in_progress", map[string]any{"output_index": index, "item_id": i.ID})
	}
}

// show opens the item of a call.
func (t *turn) show(c *thread.Call, added item) (index int) {
	if t.calls == nil {
		t.calls = map[*thread.Call]callState{}
	}
	index = t.newIndex()
	t.calls[c] = callState{index, added.ID}
	t.nextItem("added", index, added)
	return index
}

func (t *turn) returned(c *thread.Call) {
	if c.IsClient || c.At < t.trigger && t.thread.Last == t.trigger {
		return
	}
	done := callItem(t.response.name, c)
	if _, isShown := t.calls[c]; !isShown { // it is of an earlier response, and was approved
		added := done
		added.ID, added.Status, added.Output, added.Error = formatID("mcp", t.response.name, t.thread.Last), statusInProgress, nil, nil
		t.show(c, added)
		t.response.Output = append(t.response.Output, added)
	}
	t.next("response.mcp_call."+done.Status, map[string]any{"output_index": t.calls[c].index, "item_id": t.calls[c].id})
	t.endCall(c, done)
}

// endCall closes the item of a call of the worker.
func (t *turn) endCall(c *thread.Call, done item) {
	done.ID = t.calls[c].id
	t.nextItem("done", t.calls[c].index, done)
	t.response.Output = replaced(t.response.Output, done)
}

func (t *turn) ended(r *thread.Request) {
	through := r.Through
	if n := event.Counter(r.End.Unanswered()); n > 0 {
		through = n
	}
	if r != t.request && through < t.trigger {
		return
	}
	switch body := r.End.(type) {
	case event.LLMRequestCompleted:
		reason := map[string]string{"length": "max_output_tokens", "content_filter": "content_filter"}[body.FinishReason]
		switch {
		case r != t.request:
			t.end(statusCancelled)
		case reason != "":
			t.response.IncompleteDetails = &incompleteDetails{reason}
			t.end(statusIncomplete)
		default:
			t.end(statusCompleted)
		}
	case event.LLMRequestInterrupted:
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
	if t.step != nil {
		t.closeReasoning(statusIncomplete)
		t.closeText(t.text.text, statusIncomplete)
	}
	for _, i := range t.response.Output {
		for c, state := range t.calls {
			if state.id == i.ID && !c.IsClient && c.Result == nil && !c.IsAsked() {
				i.Status = statusIncomplete
				t.endCall(c, i)
			}
		}
	}
	t.response.Status = status
	kind := "response." + status
	if status == statusCancelled {
		kind = "response.incomplete" // the protocol has no event of its own for it
	}
	t.sendResponse(kind)
}

// toolOf is the inverse of serverOf.
func toolOf(server, name string) string {
	if server == "worker" {
		return name
	}
	return "mcp:" + server + "/" + name
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
