package thread

import (
	"cmp"
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
)

// Apply folds the next item, and returns what it changed. Items that no protocol shows change nothing.
func (t *Thread) Apply(in gateway.Item) []Change {
	e := in.Event
	t.changes = nil
	if n := event.Counter(e.ID); n > 0 {
		t.Last = n
		if event.RequiresAnswer(e.Body) {
			t.Asked = n
		}
	}
	switch body := e.Body.(type) {
	case event.SessionStarted, event.SessionEnded: // what no request has answered stays unanswered
		t.Asked = 0
	case event.SetTools:
		t.Clients = Clients(body)
	case event.FileAttachment:
		t.files = append(t.files, t.file(e, body))
	case event.UserMessage:
		u := &User{UserMessage: body, Event: e, Files: t.files}
		t.Entries, t.files = append(t.Entries, Entry{User: u}), nil
		t.add(Said{u})
	case event.LLMRequestStarted:
		t.begin(e, body)
	case event.ReasoningDelta:
		t.delta(event.TextDelta(body), true, in.Offset)
	case event.TextDelta:
		t.delta(body, false, in.Offset)
	case event.AssistantMessage:
		t.answer(e, body)
	case event.ToolCall:
		t.call(e, body)
	case event.ToolProgress:
		if c := t.calls[body.ToolCallID]; c != nil && c.Result == nil {
			c.Progress = body.Text
			t.add(Progressed{c})
		}
	case event.ApprovalRequested:
		if c := t.calls[body.ToolCallID]; c != nil {
			c.Approval, c.Decision = &body, nil
			t.add(Asked{c})
		}
	case event.ApprovalDecided:
		t.decide(body)
	case event.ToolResult:
		t.result(e, body)
	case event.LLMAttemptEnded:
		t.endAttempt(t.Request(body.RequestID), body.Usage)
	case event.LLMRequestFellBack:
		t.endAttempt(t.Request(body.RequestID), body.Usage)
	case event.LLMRequestCompleted:
		t.end(e, body, body.Usage)
	case event.LLMRequestInterrupted:
		t.end(e, body, body.Usage)
	case event.LLMRequestFailed:
		t.end(e, body, body.Usage)
	}
	return t.changes
}

func (t *Thread) file(e event.Event, body event.FileAttachment) File {
	url := body.Source.URL
	if body.Source.Type != event.SourceURL {
		url = t.Base + "/contexts/" + e.ContextName + "/events/" + e.ID + "/attachment"
	}
	return File{body, e, url}
}

func (t *Thread) add(c Change) { t.changes = append(t.changes, c) }

func (t *Thread) begin(e event.Event, body event.LLMRequestStarted) {
	isNew := t.Request(body.RequestID) == nil
	r := t.requestOf(e, body.RequestID)
	r.Through = event.Counter(body.ThroughEventID)
	t.Through = max(t.Through, r.Through)
	if s := r.newest(); s != nil && s.IsRunning && s.Text.Len()+s.Reasoning.Len() > 0 {
		t.abandon(s, event.Usage{})
	}
	var s *Step
	if isNew || body.Purpose == "" {
		r.ProviderID, r.Model = body.ProviderID, body.Model
	}
	if body.Purpose == "" {
		s = t.step(r, body.Attempt)
		s.IsRunning = true
	}
	t.add(Began{r, s})
}

// requestOf returns the request of an event, which may begin it; id "": a client recorded the event.
func (t *Thread) requestOf(e event.Event, id string) *Request {
	if r := t.Request(id); r != nil {
		return r
	}
	r := &Request{ID: cmp.Or(id, e.ID), IsEnded: id == "", Began: e.Timestamp}
	if t.requests == nil {
		t.requests = map[string]*Request{}
	}
	t.Requests, t.requests[r.ID] = append(t.Requests, r), r
	if !r.IsEnded {
		t.running = r
	}
	return r
}

// step adds a step instead of one that said nothing.
func (t *Thread) step(r *Request, attempt int) *Step {
	if s := r.newest(); s != nil && !s.IsRecorded() && len(s.Calls) == 0 {
		r.Steps = r.Steps[:len(r.Steps)-1]
		t.Entries = slices.DeleteFunc(t.Entries, func(in Entry) bool { return in.Step == s })
	}
	s := &Step{Request: r, Attempt: max(1, attempt), At: t.Last}
	r.Steps = append(r.Steps, s)
	place := len(t.Entries) // before the messages that the request does not contain
	for r.Through > 0 && place > 0 && t.Entries[place-1].User != nil && event.Counter(t.Entries[place-1].User.Event.ID) > r.Through {
		place--
	}
	t.Entries = slices.Insert(t.Entries, place, Entry{Step: s})
	return s
}

// delta ignores pieces of other attempts, and those after a gap.
func (t *Thread) delta(d event.TextDelta, isReasoning bool, offset int) {
	s := t.Request(d.RequestID).newest()
	if s == nil || !s.IsRunning || s.IsRecorded() || d.Delta == "" {
		return
	}
	b := s.builder(isReasoning)
	has := b.String()
	if offset > len(has) {
		return
	}
	if known := min(len(has)-offset, len(d.Delta)); has[offset:offset+known] == d.Delta[:known] {
		s.grow(t, isReasoning, d.Delta[known:])
		return
	}
	rest := has[:offset]
	b.Reset()
	if d.Reset {
		s.builder(!isReasoning).Reset()
	}
	t.add(Restarted{s})
	s.grow(t, isReasoning, rest+d.Delta)
}

func (s *Step) builder(isReasoning bool) *strings.Builder {
	if isReasoning {
		return &s.Reasoning
	}
	return &s.Text
}

func (s *Step) grow(t *Thread, isReasoning bool, delta string) {
	b := s.builder(isReasoning)
	if delta != "" {
		t.add(Grew{s, isReasoning, b.Len(), delta})
		b.WriteString(delta)
	}
}

// answer completes a step. Reasoning stays as it was streamed if the log has only its beginning.
func (t *Thread) answer(e event.Event, body event.AssistantMessage) {
	r := t.requestOf(e, body.RequestID)
	s := r.newest()
	if s == nil || s.IsRecorded() || s.IsAbandoned {
		s = t.step(r, 0)
	}
	s.Answer, s.Event = body, e
	isReplaced := false
	for _, of := range []struct {
		isReasoning bool
		text        string
	}{{true, body.Reasoning}, {false, body.Content}} {
		b := s.builder(of.isReasoning)
		rest, continues := strings.CutPrefix(of.text, b.String())
		switch {
		case continues:
			s.grow(t, of.isReasoning, rest)
		case of.isReasoning && of.text != "" && strings.HasPrefix(b.String(), of.text):
		default:
			isReplaced = isReplaced || of.text != "" || !of.isReasoning
			b.Reset()
			b.WriteString(of.text)
		}
	}
	t.add(Answered{s, isReplaced})
}

// call adds a call to the step of its request; one that a client recorded, to the newest step, unless its request runs.
func (t *Thread) call(e event.Event, body event.ToolCall) {
	s := t.Request(body.RequestID).newest()
	for i := len(t.Entries) - 1; i >= 0 && s == nil && body.RequestID == ""; i-- {
		s = t.Entries[i].Step
	}
	if s == nil || !s.Request.IsEnded && body.RequestID == "" {
		s = t.step(t.requestOf(e, body.RequestID), 0)
		s.Event = e
	}
	c := &Call{ToolCall: body, At: t.Last, Step: s, IsClient: body.RequestID != "" && slices.Contains(t.Clients, body.ToolName)}
	s.Calls = append(s.Calls, c)
	t.remember(c)
	t.add(Called{c})
}

func (t *Thread) remember(c *Call) {
	if t.calls == nil {
		t.calls = map[string]*Call{}
	}
	t.calls[c.ToolCallID] = c
}

func (t *Thread) decide(body event.ApprovalDecided) {
	for _, in := range t.Entries {
		if in.Step == nil {
			continue
		}
		for _, c := range in.Step.Calls {
			if c.IsAsked() && (body.ToolCallID == "" || body.ToolCallID == c.ToolCallID) {
				c.Decision = &body
				t.add(Decided{c})
			}
		}
	}
}

func (t *Thread) result(e event.Event, body event.ToolResult) {
	c := t.calls[body.ToolCallID]
	if c == nil {
		c = &Call{ToolCall: event.ToolCall{ToolCallID: body.ToolCallID}}
		t.remember(c)
	}
	isLate := c.Result != nil
	c.Result, c.ResultEvent = &body, e
	if !isLate {
		t.Entries = append(t.Entries, Entry{Result: c})
	}
	t.add(Returned{c, isLate})
}

func (t *Thread) endAttempt(r *Request, u event.Usage) {
	if r == nil {
		return
	}
	r.Usage = r.Usage.Add(u)
	t.add(Used{r, u})
	if s := r.newest(); s != nil && s.IsRunning {
		if s.IsRunning = false; !s.IsRecorded() {
			t.abandon(s, u)
		}
	}
}

func (t *Thread) abandon(s *Step, u event.Usage) {
	s.IsAbandoned = true
	t.add(Abandoned{s, u})
}

func (t *Thread) end(e event.Event, body event.RequestEnd, u event.Usage) {
	if n := event.Counter(body.Unanswered()); n > 0 {
		t.Through = n
	}
	r := t.requestOf(e, body.Request())
	t.endAttempt(r, u)
	if r.IsEnded, r.Ended, r.End = true, e.Timestamp, body; t.running == r {
		t.running = nil
	}
	t.add(Ended{r})
}
