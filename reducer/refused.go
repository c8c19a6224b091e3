package reducer

import (
	"cmp"
	"maps"
	"slices"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// MaxRefusals bounds the Refusals of a [Request]. After that, the request fails or falls back.
const MaxRefusals = 16

// Bounds of [ReducedContext].Refused.
const (
	maxRefused       = 64
	maxRefusedOfKind = 8 // of one kind of content of one model; more become one that covers all
)

// Suspect is content that a provider may have refused.
type Suspect struct {
	Content event.Content `json:"content"`
	Tool    string        `json:"tool,omitempty"` // as in [event.ContentRefused]
}

// refuse adds a refusal, in place of those that it includes.
func (f *fold) refuse(body event.ContentRefused) {
	isSameKind := func(r event.ContentRefused) bool {
		return r.ProviderID == body.ProviderID && r.Model == body.Model && r.Content == body.Content
	}
	ofKind := 0
	for _, r := range f.Refused {
		if isSameKind(r) && !includes(body, r) {
			ofKind++
		}
	}
	if ofKind >= maxRefusedOfKind {
		body.Tool, body.FromEventID = "", ""
		for _, r := range f.Refused {
			if isSameKind(r) && event.Counter(r.ThroughEventID) > event.Counter(body.ThroughEventID) {
				body.ThroughEventID = r.ThroughEventID
			}
		}
	}
	f.dropRefused(func(r event.ContentRefused) bool { return includes(body, r) })
	f.Refused = appendCopy(f.Refused[max(0, len(f.Refused)-maxRefused+1):], body)
}

// dropRefused removes refusals, so that the next request to their model contains the content again.
func (f *fold) dropRefused(isDropped func(event.ContentRefused) bool) {
	if !slices.ContainsFunc(f.Refused, isDropped) {
		return
	}
	f.Refused = slices.DeleteFunc(slices.Clone(f.Refused), isDropped)
	if len(f.Refused) == 0 {
		f.Refused = nil
	}
}

func (f *fold) dropRefusedBy(requestID string) {
	f.dropRefused(func(r event.ContentRefused) bool { return r.RequestID == requestID })
}

// withdrawRefusals removes those that an event shows to be wrong, or that it makes obsolete.
func (f *fold) withdrawRefusals(body event.Body) {
	switch body := body.(type) {
	case event.LLMRequestFailed:
		f.dropRefusedBy(body.RequestID)
	case event.LLMRequestFellBack:
		f.dropRefusedBy(body.RequestID)
	case event.LLMRequestInterrupted:
		if body.PartialResponse == "" {
			f.dropRefusedBy(body.RequestID) // nothing shows that the provider accepts the rest
		}
	case event.SetProviderConfig:
		f.dropRefused(func(r event.ContentRefused) bool {
			return body.UseDefault && !body.AsFallback || r.ProviderID == body.ProviderID && r.Model == body.Model
		})
	case event.SetTools:
		f.dropRefused(func(r event.ContentRefused) bool { return r.Content.OfTools() })
	}
}

// includes reports whether refusal a covers all content of refusal b.
func includes(a, b event.ContentRefused) bool {
	return a.ProviderID == b.ProviderID && a.Model == b.Model && a.Content == b.Content && (a.Tool == "" || a.Tool == b.Tool) &&
		event.Counter(a.FromEventID) <= event.Counter(b.FromEventID) && event.Counter(a.ThroughEventID) >= event.Counter(b.ThroughEventID)
}

// ForModel returns the messages as a model receives them: without the content that it refused. They must not be
// modified.
func (c ReducedContext) ForModel(messages []Message, providerID, model string) []Message {
	isCopy := false
	for _, r := range c.Refused {
		if r.ProviderID != providerID || r.Model != model || r.Content.OfTools() {
			continue
		}
		from, through := event.Counter(r.FromEventID), event.Counter(r.ThroughEventID)
		for i := range messages {
			m := messages[i]
			if !holds(m, r.Content, providerID, model) {
				continue
			}
			if at := event.Counter(m.EventID); at < from || at > through {
				continue
			}
			if !isCopy {
				messages, isCopy = slices.Clone(messages), true
			}
			m.Refused = maps.Clone(m.Refused)
			if m.Refused == nil {
				m.Refused = map[event.Content]string{}
			}
			m.Refused[r.Content] = cmp.Or(r.Error, "no reason given")
			if r.Content == event.ContentState {
				m.ProviderState = nil
			}
			messages[i] = m
		}
	}
	return messages
}

// ToolFor reports whether a model is offered a tool, and with which schema: its own, or one for any object.
func (c ReducedContext) ToolFor(tool, providerID, model string) (isOffered, hasSchema bool) {
	isRefused := func(content event.Content) bool {
		return slices.ContainsFunc(c.Refused, func(r event.ContentRefused) bool {
			return includes(r, event.ContentRefused{ProviderID: providerID, Model: model, Content: content, Tool: tool})
		})
	}
	return !isRefused(event.ContentTools), !isRefused(event.ContentSchemas)
}

// holds reports whether requests to the model contain such content of the message.
func holds(m Message, content event.Content, providerID, model string) bool {
	if _, isRefused := m.Refused[content]; isRefused {
		return false
	}
	switch content {
	case event.ContentCalls:
		return len(m.ToolCalls) > 0
	case event.ContentState:
		return m.ProviderState != nil && m.ProviderState.ProviderID == providerID && m.ProviderState.Model == model
	}
	return slices.ContainsFunc(m.Attachments, func(a Attachment) bool { return event.MediaOf(a.MediaType).Content() == content })
}

// replacesRefused continues a request without the content that the provider probably refused. It reports false if
// there is none.
func (d *decision) replacesRefused(in AttemptEnded) bool {
	r := d.Request
	if in.Outcome != Failed || r.Refusals >= MaxRefusals {
		return false
	}
	for _, suspect := range in.Suspects {
		if body, ok := d.refusalOf(suspect, in); ok {
			d.recordAttemptEnd(event.AttemptFailed, in)
			d.record(body)
			d.requeue()
			return true
		}
	}
	return false
}

// refusalOf returns false if requests no longer contain the content. Of messages, it returns those that no
// answer follows, and all if none of these has the content.
func (d *decision) refusalOf(s Suspect, in AttemptEnded) (event.ContentRefused, bool) {
	body := event.ContentRefused{
		RequestID: d.Request.ID, ProviderID: d.Request.ProviderID, Model: d.Request.Model,
		Content: s.Content, Tool: s.Tool, Error: event.Truncate(in.Error, event.MaxRefusalBytes-truncation),
	}
	if s.Content.OfTools() {
		isKnown := slices.ContainsFunc(d.Reduced.Refused, func(r event.ContentRefused) bool { return includes(r, body) })
		return body, !isKnown && event.New(body).Validate() == nil
	}
	messages := d.Reduced.ForModel(MessagesOf(d.Session), body.ProviderID, body.Model)
	for _, isAll := range []bool{false, true} {
		from := 0
		if !isAll {
			from = firstUnanswered(messages)
		}
		for _, m := range messages[from:] {
			at := event.Counter(m.EventID)
			if at == 0 || !holds(m, s.Content, body.ProviderID, body.Model) {
				continue
			}
			if !isAll && (body.FromEventID == "" || at < event.Counter(body.FromEventID)) {
				body.FromEventID = m.EventID
			}
			if at > event.Counter(body.ThroughEventID) {
				body.ThroughEventID = m.EventID
			}
		}
		if body.ThroughEventID != "" {
			break
		}
	}
	return body, body.ThroughEventID != "" && event.New(body).Validate() == nil
}

// firstUnanswered returns the index after the newest answer without tool calls.
func firstUnanswered(messages []Message) int {
	for i, m := range slices.Backward(messages) {
		if m.Role == RoleAssistant && len(m.ToolCalls) == 0 {
			return i + 1
		}
	}
	return 0
}
