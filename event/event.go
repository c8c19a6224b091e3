package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"
)

// Event is one fact of a context: an envelope, shared by all events, and a
// body, which says what happened.
//
// In JSON the two are flat, with the body's tag as "_tag":
//
//	{"_tag":"UserMessageEvent","id":"demo:0002","timestamp":"2026-01-02T15:04:05Z",
//	 "contextName":"demo","parentEventId":"demo:0001","content":"Hello"}
//
// A recorded event has every field of the envelope set, but for the first
// event of a context, which has no parent. An input event, sent by a client,
// needs none of them: the session assigns id, time, context and parent.
type Event struct {
	// ID is "{context}:{counter}", see [FormatID]. Empty on input.
	ID string
	// Timestamp is when the session recorded the event, in UTC. Zero on input.
	Timestamp time.Time
	// ContextName is the context the event belongs to. On input it may be
	// empty; when it is not, it must be the name of the receiving context.
	ContextName string
	// ParentID is the ID of the event before this one; empty for the first.
	ParentID string
	// ClientEventID is the sender's own id for the event, up to
	// [MaxClientEventID] bytes. It is stored and never interpreted; a sender
	// finds its event in the log by it. Empty when the sender set none.
	ClientEventID string
	// Body is what happened. It is never nil in a valid event.
	Body Body
	// Extra holds the JSON fields that this version does not know, so that
	// they survive a round trip. Nil when there are none. Treat it as
	// immutable.
	Extra map[string]json.RawMessage
}

// Body is the part of an event that depends on its tag. The bodies are the
// struct types of this package; the set is closed.
type Body interface {
	// Tag is the value of "_tag" that stands for the type.
	Tag() Tag
	// validate reports the first field with a value that cannot be meant.
	validate() error
}

// New returns an event with the body and an empty envelope: an input event.
func New(body Body) Event { return Event{Body: body} }

// Tag is the tag of the body, or "" for an event without one.
func (e Event) Tag() Tag {
	if e.Body == nil {
		return ""
	}
	return e.Body.Tag()
}

// Validate reports what is wrong with the event's body or its client id, as a
// [*FieldError]; nil when nothing is. The rest of the envelope is not checked.
func (e Event) Validate() error {
	if e.Body == nil {
		return &FieldError{Field: "_tag", Problem: "missing: want one of " + tagList()}
	}
	err := e.Body.validate()
	if err == nil && len(e.ClientEventID) > MaxClientEventID {
		err = fieldf("clientEventId", "%d bytes, at most %d are kept", len(e.ClientEventID), MaxClientEventID)
	}
	if err == nil {
		err = RefuseKeys(e.Extra)
	}
	return tagged(e.Tag(), err)
}

// MaxInputEvents is how many events may be one input.
const MaxInputEvents = 1000

// MaxClientEventID is the longest ClientEventID in bytes.
const MaxClientEventID = 128

// envelope is the JSON of the fields that all events share.
type envelope struct {
	Tag           Tag        `json:"_tag"`
	ID            string     `json:"id,omitempty"`
	Timestamp     *time.Time `json:"timestamp,omitempty"`
	ContextName   string     `json:"contextName,omitempty"`
	ParentID      string     `json:"parentEventId,omitempty"`
	ClientEventID string     `json:"clientEventId,omitempty"`
}

// MarshalJSON writes the flat form: envelope, body, then the extra fields in
// the order of their names. The same event always gives the same bytes.
func (e Event) MarshalJSON() ([]byte, error) {
	if e.Body == nil {
		return nil, &FieldError{Field: "_tag", Problem: "missing: an event without a body has no JSON"}
	}
	head := envelope{
		Tag:           e.Body.Tag(),
		ID:            e.ID,
		ContextName:   e.ContextName,
		ParentID:      e.ParentID,
		ClientEventID: e.ClientEventID,
	}
	if !e.Timestamp.IsZero() {
		utc := e.Timestamp.UTC()
		head.Timestamp = &utc
	}
	var buf bytes.Buffer
	for _, part := range []any{head, e.Body} {
		if err := appendFields(&buf, part); err != nil {
			return nil, fmt.Errorf("%s: %w", head.Tag, err)
		}
	}
	for _, name := range sortedNames(e.Extra) {
		if err := appendFields(&buf, map[string]json.RawMessage{name: e.Extra[name]}); err != nil {
			return nil, fmt.Errorf("%s.%s: %w", head.Tag, name, err)
		}
	}
	buf.WriteByte('}')
	return buf.Bytes(), nil
}

// appendFields appends the fields of a JSON object to an object being built,
// leaving it open.
func appendFields(buf *bytes.Buffer, object any) error {
	start := buf.Len()
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(object); err != nil {
		return err
	}
	buf.Truncate(buf.Len() - len("}\n"))
	switch empty := buf.Len() == start+1; {
	case start == 0:
	case empty:
		buf.Truncate(start)
	default:
		buf.Bytes()[start] = ','
	}
	return nil
}

// UnmarshalJSON reads the flat form and validates it. Errors are of type
// [*FieldError] and name the field. A "null" counts as a missing field.
func (e *Event) UnmarshalJSON(data []byte) error {
	var fields map[string]json.RawMessage
	// Invalid UTF-8 is no JSON (RFC 8259, section 8.1), though encoding/json
	// takes it and puts something else in its place.
	if err := json.Unmarshal(data, &fields); err != nil || fields == nil || !utf8.Valid(data) {
		return &FieldError{Problem: "want a JSON object like " +
			`{"_tag":"UserMessageEvent","content":"Hello"}, got ` + describe(data)}
	}
	var tag Tag
	if err := takeField(fields, "_tag", &tag, true); err != nil {
		return err
	}
	tag, decode := lookup(tag)
	if decode == nil {
		return &FieldError{Field: "_tag", Problem: fmt.Sprintf("unknown: %s; want one of %s", quote(string(tag)), tagList())}
	}
	var out Event
	if err := out.fill(fields, decode); err != nil {
		return tagged(tag, err)
	}
	if err := out.Validate(); err != nil {
		return err
	}
	*e = out
	return nil
}

func (e *Event) fill(fields map[string]json.RawMessage, decode bodyDecoder) error {
	for _, f := range []struct {
		name string
		into any
	}{
		{"id", &e.ID},
		{"timestamp", &e.Timestamp},
		{"contextName", &e.ContextName},
		{"parentEventId", &e.ParentID},
		{"clientEventId", &e.ClientEventID},
	} {
		if err := takeField(fields, f.name, f.into, false); err != nil {
			return err
		}
	}
	// Before the body, so that a raw key is named as such and not as a field
	// of the wrong type.
	if err := RefuseKeys(fields); err != nil {
		return err
	}
	body, err := decode(fields)
	if err != nil {
		return err
	}
	e.Timestamp = e.Timestamp.UTC()
	if year := e.Timestamp.Year(); year < 0 || year > 9999 {
		return fieldf("timestamp", "is in the year %d of UTC, which RFC 3339 cannot say", year)
	}
	e.Body = body
	if len(fields) == 0 {
		return nil
	}
	e.Extra = fields
	for _, name := range sortedNames(fields) {
		if fields[name], err = canonical(fields[name]); err != nil {
			return fieldf(name, "is not JSON")
		}
	}
	return nil
}

// DecodeInput decodes the payload of an input: one event object, or an array
// of them that is accepted or refused as a whole. Only tags that a client may
// send are taken, see [Tag.IsInput]. In an array the error says which element
// it is about, counted from 1.
func DecodeInput(data []byte) ([]Event, error) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 || data[0] != '[' {
		e, err := decodeOneInput(data)
		if err != nil {
			return nil, err
		}
		return []Event{e}, nil
	}
	var elements []json.RawMessage
	if err := json.Unmarshal(data, &elements); err != nil {
		return nil, &FieldError{Problem: "want a JSON array of events, got " + describe(data)}
	}
	if len(elements) == 0 {
		return nil, &FieldError{Problem: "an empty array holds no event"}
	}
	if len(elements) > MaxInputEvents {
		return nil, &FieldError{Problem: fmt.Sprintf("an array of %d events, at most %d are one input", len(elements), MaxInputEvents)}
	}
	events := make([]Event, 0, len(elements))
	for i, element := range elements {
		e, err := decodeOneInput(element)
		if err != nil {
			return nil, fmt.Errorf("event %d of %d: %w", i+1, len(elements), err)
		}
		events = append(events, e)
	}
	return events, nil
}

func decodeOneInput(data []byte) (Event, error) {
	var e Event
	// Called directly: json.Unmarshal would report a syntax error before the
	// event could say what it wants.
	if err := e.UnmarshalJSON(data); err != nil {
		return Event{}, err
	}
	if !e.Tag().IsInput() {
		return Event{}, &FieldError{Tag: e.Tag(), Field: "_tag",
			Problem: "is written by the session itself and cannot be sent"}
	}
	return e, nil
}
