package llm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Delta is a piece of the text of an answer, or of the model's reasoning. It is never empty.
type Delta struct {
	Text        string
	IsReasoning bool
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
	size     int             // of the collected state, in bytes
	details  []*detail       // reasoning_details
	thinking []*detail       // thinking parts of the content
	extra    json.RawMessage // extra_content of the message
	named    string          // field of the reasoning, see choice
}

// detail is an element of reasoning_details or a content part. Its text can arrive in pieces.
type detail struct {
	kind   string // type and index
	fields map[string]json.RawMessage
	field  string // name of the field that holds the text; "" for a detail that arrives whole
	text   strings.Builder
}

func (s *stateReader) read(c *choice) {
	s.named = cmp.Or(s.named, c.named)
	if s.size > event.MaxProviderStateBytes {
		return
	}
	for _, part := range c.parts {
		s.addThinking(part)
	}
	for _, detail := range c.details {
		s.addDetail(detail)
	}
	if c.extra.isObject() {
		s.extra = bytes.Clone(c.extra)
		s.size += len(c.extra)
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
	s.details = joined(s.details, &d, raw.field(d.field).text())
	s.size += len(raw)
}

func (s *stateReader) addThinking(raw value) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || raw.field("type").text() != "thinking" {
		return
	}
	var c choice
	s.thinking = joined(s.thinking, &detail{kind: "thinking", fields: fields, field: "thinking"}, c.textOf(raw.field("thinking"), 0))
	s.size += len(raw)
}

func joined(details []*detail, d *detail, piece string) []*detail {
	if n := len(details); d.field != "" && n > 0 && details[n-1].kind == d.kind {
		last := details[n-1]
		for name, value := range d.fields {
			if name != d.field && string(value) != "null" {
				last.fields[name] = value
			}
		}
		last.text.WriteString(piece)
		return details
	}
	d.text.WriteString(piece)
	return append(details, d)
}

func encodedDetails(details []*detail) (elements []json.RawMessage) {
	for _, d := range details {
		switch text := repaired(d.text.String(), new(quirkSet)); {
		case d.field == "":
		case d.kind == "thinking":
			d.fields[d.field] = encoded([]map[string]string{{"type": "text", "text": text}})
		case text != "" || string(d.fields[d.field]) != "null":
			d.fields[d.field] = encoded(text)
		}
		elements = append(elements, encoded(d.fields))
	}
	return elements
}

// state returns what later requests contain of a complete answer besides its text and its calls: whatever the provider
// has sent of it, so that no list of providers is needed. Reasoning without a form of its own goes back only in a turn with
// calls, under its name:
//
//   - reasoning_details: https://openrouter.ai/docs/guides/best-practices/reasoning-tokens
//   - reasoning_content: https://api-docs.deepseek.com/guides/thinking_mode,
//     https://platform.moonshot.ai/docs/guide/use-kimi-k2-thinking-model
//   - extra_content, of the message and its calls: https://ai.google.dev/gemini-api/docs/thought-signatures
//   - thinking parts, before the text: https://docs.mistral.ai/studio-api/conversations/reasoning
//   - ids of calls. The reducer drops them if they are those of the events.
//
// It returns nil if there is nothing, or the state is too large.
func (t *Target) state(a *assembly, reasoning string, isToolTurn bool) *event.ProviderState {
	s, size := a.state, a.state.size
	for _, extra := range a.extras {
		size += len(extra)
	}
	fields := map[string]any{}
	if len(s.details) > 0 {
		fields["reasoning_details"] = encodedDetails(s.details)
	}
	if len(s.thinking) > 0 {
		fields["thinking"] = encodedDetails(s.thinking)
	}
	if s.extra != nil {
		fields["extra_content"] = s.extra
	}
	if signed := signatures(a.extras); signed != nil {
		fields["tool_calls"] = signed
	}
	name := s.named
	if t.quirks.needsReasoning {
		name = "reasoning_content"
	}
	if isToolTurn && len(s.details)+len(s.thinking) == 0 && slices.Contains(plainReasoning, name) {
		fields[name] = reasoning
	}
	state := &event.ProviderState{ProviderID: t.ProviderID, Model: t.Model, BaseURL: t.BaseURL, CallIDs: a.callIDs}
	if len(fields) > 0 && size <= event.MaxProviderStateBytes {
		// json.Marshal adds HTML escapes, which encode omits. With them, a later json.Marshal of the state does not change
		// its bytes.
		data, _ := json.Marshal(fields) // strings and JSON
		state.Data = json.RawMessage(t.scrub(string(data)))
	}
	if state.Validate() != nil {
		state.Data = nil
	}
	if state.Validate() != nil {
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
