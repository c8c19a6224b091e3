package llm

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Delta is a piece of the text of an answer, or of the model's reasoning. It is never empty.
type Delta struct {
	Text        string
	IsReasoning bool
}

// contentPart is a content part in Mistral's format.
type contentPart struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Thinking []struct {
		Text string `json:"text"`
	} `json:"thinking"`
}

// encode returns the JSON of a value, without HTML escapes.
func encode(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// encoded is encode for a value that always encodes.
func encoded(value any) json.RawMessage {
	data, _ := encode(value)
	return data
}

// thinkTags separates reasoning in <think> tags at the start of an answer from its text.
type thinkTags struct {
	phase thinkPhase
	held  string // may be the beginning of a tag
}

type thinkPhase int

const (
	beforeThinking thinkPhase = iota
	inThinking
	afterThinking // skips blank lines before the text
	unopened      // text that becomes reasoning if an end tag follows
	noThinking
)

const (
	thinkBegin = "<think>"
	thinkEnd   = "</think>"
)

// split yields the parts of a piece. Chat templates can open the tag in the prompt, and then the answer has only the
// end tag: split calls relabel at such a tag, and what it yielded as text before is reasoning.
func (s *thinkTags) split(text string, yield func(Delta), relabel func()) {
	text = s.held + text
	s.held = ""
	if s.phase == beforeThinking {
		begin := strings.TrimLeft(text, " \r\n\t")
		switch {
		case strings.HasPrefix(begin, thinkBegin):
			s.phase, text = inThinking, begin[len(thinkBegin):]
		case strings.HasPrefix(thinkBegin, begin):
			s.held = text
			return
		default:
			s.phase = unopened
		}
	}
	if s.phase == inThinking || s.phase == unopened {
		isReasoning := s.phase == inThinking
		before, rest, found := strings.Cut(text, thinkEnd)
		switch {
		case !isReasoning && strings.Contains(before, thinkBegin):
			s.phase, before, rest = noThinking, text, ""
		case found:
			s.phase = afterThinking
		default:
			before, s.held = cutPrefixOf(text, thinkEnd)
			if !isReasoning && s.held == "" {
				before, s.held = cutPrefixOf(text, thinkBegin)
			}
		}
		if before != "" {
			yield(Delta{before, isReasoning})
		}
		if s.phase != afterThinking {
			return
		}
		if !isReasoning {
			relabel()
		}
		text = rest
	}
	if s.phase == afterThinking {
		text = strings.TrimLeft(text, " \r\n\t")
		if text != "" {
			s.phase = noThinking
		}
	}
	if text != "" {
		yield(Delta{Text: text})
	}
}

func (s *thinkTags) flush(yield func(Delta)) {
	if s.held != "" {
		yield(Delta{s.held, s.phase == inThinking})
		s.held = ""
	}
}

// cutPrefixOf cuts off the end of a text if that end is the beginning of a tag.
func cutPrefixOf(text, tag string) (before, end string) {
	for n := min(len(text), len(tag)-1); n > 0; n-- {
		if strings.HasSuffix(text, tag[:n]) {
			return text[:len(text)-n], text[len(text)-n:]
		}
	}
	return text, ""
}

// stateReader collects the provider state of an answer, except for that of its calls, see [callReader].
type stateReader struct {
	rule    stateRule
	size    int             // of the collected state, in bytes
	details []*detail       // reasoning_details, or the thinking parts
	extra   json.RawMessage // extra_content of the message
}

// detail is an element of reasoning_details or a content part. Its text can arrive in pieces.
type detail struct {
	kind   string // type and index
	fields map[string]json.RawMessage
	field  string // name of the field that holds the text; "" for a detail that arrives whole
	text   strings.Builder
}

func (s *stateReader) read(c *choice) {
	if s.size > event.MaxProviderStateBytes {
		return
	}
	switch s.rule {
	case stateThinking:
		for _, part := range c.parts {
			s.addThinking(part)
		}
	case stateDetails:
		for _, detail := range c.details {
			s.addDetail(detail)
		}
	case stateSignatures:
		if c.extra.isObject() {
			s.extra = bytes.Clone(c.extra)
			s.size += len(c.extra)
		}
	}
}

// addDetail joins successive pieces of a text or a summary, which have the same type and index; the
// last piece can add a signature.
func (s *stateReader) addDetail(raw value) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return
	}
	d := detail{fields: fields}
	if fields["index"] != nil {
		d.kind = string(fields["type"]) + string(fields["index"])
		d.field = map[string]string{`"reasoning.text"`: "text", `"reasoning.summary"`: "summary"}[string(fields["type"])]
	}
	s.add(&d, raw.field(d.field).text(), len(raw))
}

func (s *stateReader) addThinking(raw value) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || raw.field("type").text() != "thinking" {
		return
	}
	var c choice
	s.add(&detail{kind: "thinking", fields: fields, field: "thinking"}, c.textOf(raw.field("thinking"), 0), len(raw))
}

func (s *stateReader) add(d *detail, piece string, size int) {
	s.size += size
	if n := len(s.details); d.field != "" && n > 0 && s.details[n-1].kind == d.kind {
		last := s.details[n-1]
		for name, value := range d.fields {
			if name != d.field && string(value) != "null" {
				last.fields[name] = value
			}
		}
		d = last
	} else {
		s.details = append(s.details, d)
	}
	d.text.WriteString(piece)
}

func (d *detail) json(rule stateRule) json.RawMessage {
	switch {
	case d.field == "":
	case rule == stateThinking:
		d.fields[d.field] = encoded([]map[string]string{{"type": "text", "text": repaired(d.text.String(), new(quirkSet))}})
	case d.text.Len() > 0 || string(d.fields[d.field]) != "null":
		d.fields[d.field] = encoded(repaired(d.text.String(), new(quirkSet)))
	}
	return encoded(d.fields)
}

// state returns nil if there is no state or it is too large. extras is the extra_content of the calls.
func (t *Target) state(s *stateReader, reasoning string, extras []value, isToolTurn bool) *event.ProviderState {
	size := s.size
	for _, extra := range extras {
		size += len(extra)
	}
	var data any
	switch {
	case size > event.MaxProviderStateBytes:
		return nil
	case t.quirks.state == stateReasoning && isToolTurn:
		data = map[string]string{"reasoning_content": reasoning}
	case len(s.details) > 0:
		elements := make([]json.RawMessage, len(s.details))
		for i, d := range s.details {
			elements[i] = d.json(s.rule)
		}
		name := map[stateRule]string{stateDetails: "reasoning_details", stateThinking: "thinking"}[s.rule]
		data = map[string]any{name: elements}
	case s.rule == stateSignatures:
		fields := map[string]any{}
		if s.extra != nil {
			fields["extra_content"] = s.extra
		}
		if signed := signatures(extras); signed != nil {
			fields["tool_calls"] = signed
		}
		if len(fields) == 0 {
			return nil
		}
		data = fields
	default:
		return nil
	}
	// json.Marshal adds HTML escapes, which encode omits. With them, a later json.Marshal of the state does not change its
	// bytes.
	escaped, err := json.Marshal(data)
	state := &event.ProviderState{ProviderID: t.ProviderID, Model: t.Model, BaseURL: t.BaseURL, Data: escaped}
	if err != nil || state.Validate() != nil {
		return nil
	}
	return state
}

// signatures returns the extra_content of each call, null for none; nil if no call has any.
func signatures(extras []value) (signed []json.RawMessage) {
	hasAny := false
	for _, extra := range extras {
		if !extra.isObject() {
			extra = value("null")
		}
		hasAny = hasAny || extra.isObject()
		signed = append(signed, json.RawMessage(extra))
	}
	if !hasAny {
		return nil
	}
	return signed
}
