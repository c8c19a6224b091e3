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
	noThinking
)

const (
	thinkBegin = "<think>"
	thinkEnd   = "</think>"
)

func (s *thinkTags) split(text string, yield func(Delta)) {
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
			s.phase = noThinking
		}
	}
	if s.phase == inThinking {
		thought, rest, found := strings.Cut(text, thinkEnd)
		if !found {
			thought, s.held = cutPrefixOf(text, thinkEnd)
		}
		if thought != "" {
			yield(Delta{thought, true})
		}
		if !found {
			return
		}
		s.phase, text = afterThinking, rest
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

// stateReader collects the provider state of an answer from the events of its stream.
type stateReader struct {
	rule         stateRule
	size         int               // of the collected state, in bytes
	details      []*detail         // reasoning_details, or the thinking parts
	extra        json.RawMessage   // extra_content of the message
	calls        []json.RawMessage // extra_content of the tool calls, null for none
	isCallSigned bool              // calls contains an object
	pieces       callReader        // finds the call that a piece belongs to, in the same way as for the answer
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
		s.addSignatures(c)
	}
}

func (s *stateReader) addSignatures(c *choice) {
	if c.extra.isObject() {
		s.extra = bytes.Clone(c.extra)
		s.size += len(c.extra)
	}
	for i, call := range c.Delta.ToolCalls {
		at := s.pieces.add(indexOf(call), call.ID, call.Function.Name, call.Function.Arguments, func(string) {})
		for len(s.calls) <= at {
			s.calls = append(s.calls, json.RawMessage("null"))
		}
		if extra := c.callExtra[i]; extra.isObject() {
			s.calls[at], s.isCallSigned = bytes.Clone(extra), true
			s.size += len(extra)
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
	s.add(&detail{kind: "thinking", fields: fields, field: "thinking"}, thinkingIn(raw), len(raw))
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
		d.fields[d.field] = encoded([]map[string]string{{"type": "text", "text": repaired(d.text.String())}})
	case d.text.Len() > 0 || string(d.fields[d.field]) != "null":
		d.fields[d.field] = encoded(repaired(d.text.String()))
	}
	return encoded(d.fields)
}

// state returns nil if there is no state or it is too large.
func (t *Target) state(s *stateReader, reasoning string, isToolTurn bool) *event.ProviderState {
	var data any
	switch {
	case s.size > event.MaxProviderStateBytes:
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
	case s.extra != nil || s.isCallSigned:
		fields := map[string]any{}
		if s.extra != nil {
			fields["extra_content"] = s.extra
		}
		if s.isCallSigned {
			fields["tool_calls"] = s.calls
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
