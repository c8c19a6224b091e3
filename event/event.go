package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"time"
	"unicode/utf8"
)

// Event is a fact in a context: a [Body], and an envelope that the session assigns. In JSON:
//
//	{"_tag":"UserMessageEvent","id":"demo:0002","timestamp":"2026-01-02T15:04:05Z",
//	 "contextName":"demo","parentEventId":"demo:0001","content":"Hello"}
type Event struct {
	ID          string    // "{context}:{counter}" ([FormatID]); empty on input
	Timestamp   time.Time // of recording, in UTC; zero on input
	ContextName string    // optional on input
	ParentID    string    // ID of the preceding event; empty for the first
	// ClientEventID is an optional idempotency key of up to [MaxClientEventID] bytes. It is recorded.
	ClientEventID string
	Body          Body // never nil in a valid event
	// Extra holds unknown JSON fields, so that they survive a round trip. It must not be modified.
	Extra map[string]json.RawMessage
}

// New returns an input event: the body with an empty envelope.
func New(body Body) Event { return Event{Body: body} }

// Tag returns the tag of the body; "" without a body.
func (e Event) Tag() Tag {
	if e.Body == nil {
		return ""
	}
	return e.Body.Tag()
}

// Validate checks the body, the client id and the extra fields, but not the rest of the envelope.
// Errors are of type [*FieldError].
func (e Event) Validate() error {
	if e.Body == nil {
		return &FieldError{Field: "_tag", Problem: "missing: want one of " + tagList()}
	}
	err := e.Body.validate()
	if err == nil && len(e.ClientEventID) > MaxClientEventID {
		err = fieldf("clientEventId", "%d bytes (at most %d)", len(e.ClientEventID), MaxClientEventID)
	}
	if err == nil {
		err = RejectKeys(e.Extra)
	}
	return tagged(e.Tag(), err)
}

// MaxInputEvents is the maximum number of events in one input.
const MaxInputEvents = 1000

// MaxDepth is the maximum depth of objects and arrays in an input. It leaves room for the levels that
// a log adds: encoding/json decodes only 10,000.
const MaxDepth = 9_000

// MaxClientEventID is the maximum length of a ClientEventID in bytes.
const MaxClientEventID = 128

var _, envelopeNames = fieldsOf(reflect.TypeFor[envelope]()) // "_tag" and "id" first

type envelope struct {
	Tag           Tag        `json:"_tag"`
	ID            string     `json:"id,omitempty" schema:"is=EventID"`
	Timestamp     *time.Time `json:"timestamp,omitempty"` // when the event was recorded, in UTC
	ContextName   string     `json:"contextName,omitempty"`
	ParentID      string     `json:"parentEventId,omitempty" schema:"is=EventID"` // the previous event; absent for the first event
	ClientEventID string     `json:"clientEventId,omitempty" schema:"is=ClientEventID"`
}

// MarshalJSON writes the envelope, the body, then extra fields sorted by name.
func (e Event) MarshalJSON() ([]byte, error) {
	if e.Body == nil {
		return nil, &FieldError{Field: "_tag", Problem: "missing: the event has no body"}
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

// UnmarshalJSON decodes and validates an event. A null counts as a missing field.
func (e *Event) UnmarshalJSON(data []byte) error {
	out, err := decode(data, false)
	if err != nil {
		return err
	}
	*e = out
	return nil
}

// decode applies the rules of [DecodeInput] for unknown fields if isInput is true.
func decode(data []byte, isInput bool) (Event, error) {
	var fields map[string]json.RawMessage
	// encoding/json accepts invalid UTF-8; RFC 8259, section 8.1, does not.
	if err := json.Unmarshal(data, &fields); err != nil || fields == nil || !utf8.Valid(data) {
		return Event{}, &FieldError{Problem: "want a JSON object like " +
			`{"_tag":"UserMessageEvent","content":"Hello"}, got ` + describe(data)}
	}
	var tag Tag
	if err := takeField(fields, "_tag", &tag, true); err != nil {
		return Event{}, err
	}
	kind := lookup(tag)
	if kind.body == nil {
		return Event{}, &FieldError{Field: "_tag", Problem: fmt.Sprintf("unknown tag %s (want one of %s)", quote(string(tag)), tagList())}
	}
	var check func() error
	if isInput {
		check = func() error { return kind.checkInput(data) }
	}
	var out Event
	if err := out.fill(fields, kind, check); err != nil {
		return Event{}, tagged(kind.tag, err)
	}
	return out, out.Validate()
}

// fill calls check, which may be nil, before it decodes the body, so that a misspelt field is not reported as missing.
func (e *Event) fill(fields map[string]json.RawMessage, kind kind, check func() error) error {
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
	// RejectKeys comes first, so that a raw API key is reported as such.
	if err := RejectKeys(fields); err != nil {
		return err
	}
	if check != nil {
		if err := check(); err != nil {
			return err
		}
	}
	body, err := decodeBody(fields, reflect.TypeOf(kind.body))
	if err != nil {
		return err
	}
	e.Timestamp = e.Timestamp.UTC()
	if year := e.Timestamp.Year(); year < 0 || year > 9999 {
		return fieldf("timestamp", "year %d in UTC is out of range (0 to 9999)", year)
	}
	e.Body = body
	if len(fields) == 0 {
		return nil
	}
	e.Extra = fields
	for _, name := range sortedNames(fields) {
		if fields[name], err = canonical(fields[name]); err != nil {
			return fieldf(name, "invalid JSON")
		}
	}
	return nil
}
