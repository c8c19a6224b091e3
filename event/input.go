package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// DecodeInput decodes an event that clients may send ([Tag.IsInput]), or an array of up to
// [MaxInputEvents]. Errors in an array name the element, counted from 1.
//
// Unlike [Event.UnmarshalJSON], which reads recorded events, it rejects unknown fields of settings, of decisions
// and of nested objects, names that differ by case, and repeated names. Other events keep unknown fields
// ([Event.Extra]) unless these resemble one of theirs.
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
		return nil, &FieldError{Problem: "the array has no events"}
	}
	if len(elements) > MaxInputEvents {
		return nil, &FieldError{Problem: fmt.Sprintf("the array has %d events (at most %d)", len(elements), MaxInputEvents)}
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

// ValidateInput checks an event as [DecodeInput] does.
func (e Event) ValidateInput() error {
	if err := e.Validate(); err != nil {
		return err
	}
	kind := lookup(e.Tag())
	if kind.class != ClassInput {
		return reserved(e.Tag())
	}
	for _, name := range sortedNames(e.Extra) {
		if err := kind.checkExtra(name); err != nil {
			return tagged(e.Tag(), err)
		}
	}
	return nil
}

// DecodeSettings decodes JSON like that of a field of an input: [RequestSettings], a [Tool], or a body without its
// tag. It rejects the names that [DecodeInput] rejects. It does not validate the value.
func DecodeSettings(data []byte, into any) error {
	if !json.Valid(data) {
		return &FieldError{Problem: "invalid JSON"}
	}
	data = bytes.TrimSpace(data)
	if err := checkNames("", data, reflect.TypeOf(into).Elem()); err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return typeError("", data, reflect.TypeOf(into).Elem(), err)
	}
	return nil
}

func decodeOneInput(data []byte) (Event, error) {
	// For invalid JSON, decode returns a [*FieldError]; json.Unmarshal would return its syntax error.
	e, err := decode(data, true)
	var invalid *FieldError
	switch {
	case errors.As(err, &invalid) && invalid.Tag.Class() != 0 && !invalid.Tag.IsInput():
		return Event{}, reserved(invalid.Tag) // rather than a missing field
	case err != nil:
		return Event{}, err
	case !e.Tag().IsInput():
		return Event{}, reserved(e.Tag())
	case isTooDeep(data, MaxDepth):
		return Event{}, &FieldError{Tag: e.Tag(), Problem: fmt.Sprintf("JSON nested more than %d levels deep", MaxDepth)}
	}
	return e, nil
}

func reserved(tag Tag) error {
	return &FieldError{Tag: tag, Field: "_tag", Problem: "reserved for the session (clients cannot send it)"}
}

// isTooDeep expects valid JSON.
func isTooDeep(data []byte, maxDepth int) bool {
	if bytes.Count(data, []byte("{"))+bytes.Count(data, []byte("[")) <= maxDepth {
		return false
	}
	depth, inString := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// checkInput checks the names in the JSON of an event, at all levels that the types of this package define.
func (k kind) checkInput(data []byte) error {
	seen := map[string]bool{}
	for name, value := range members(data) {
		if seen[name] {
			return repeated("", name)
		}
		seen[name] = true
		field, isField := k.fields[name]
		switch {
		case isField:
			if err := checkNames(name, value, field); err != nil {
				return err
			}
		case !slices.Contains(envelopeNames, name):
			if err := k.checkExtra(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkExtra rejects an unknown field, unless the event keeps such fields and the name resembles none of its own.
func (k kind) checkExtra(name string) error {
	if k.keepsExtra && !slices.ContainsFunc(k.names, func(known string) bool { return resembles(name, known) }) {
		return nil
	}
	return unknown("", name, k.names)
}

// checkNames rejects unknown and repeated names in the JSON of a value. The decoder reports other errors.
func checkNames(path string, raw json.RawMessage, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if other, ok := reflect.Zero(t).Interface().(interface{ object() any }); ok {
		t = reflect.TypeOf(other.object())
	}
	switch {
	case t.Kind() == reflect.Struct && raw[0] == '{':
		fields, names := fieldsOf(t)
		seen := map[string]bool{}
		for name, value := range members(raw) {
			field, isField := fields[name]
			switch {
			case !isField:
				return unknown(path, name, names)
			case seen[name]:
				return repeated(path, name)
			}
			seen[name] = true
			if err := checkNames(join(path, name), value, field); err != nil {
				return err
			}
		}
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8 && raw[0] == '[':
		var elements []json.RawMessage
		if err := json.Unmarshal(raw, &elements); err != nil {
			return fieldf(path, "invalid JSON")
		}
		for i, element := range elements {
			if err := checkNames(join(path, strconv.Itoa(i)), element, t.Elem()); err != nil {
				return err
			}
		}
	}
	return nil
}

func join(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

func unknown(path, name string, known []string) error {
	return fieldf(path, "unknown field %s %s", quote(name), Suggest(name, known...))
}

func repeated(path, name string) error { return fieldf(path, "repeated field %s", quote(name)) }

// members yields the members of a valid JSON object, also those with a repeated name.
func members(object []byte) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		decoder := json.NewDecoder(bytes.NewReader(object))
		_, _ = decoder.Token() // the brace
		for decoder.More() {
			name, _ := decoder.Token()
			var value json.RawMessage
			if decoder.Decode(&value) != nil || !yield(name.(string), value) {
				return
			}
		}
	}
}

// fieldsOf returns the types of the JSON fields of a struct, and their names in order.
func fieldsOf(t reflect.Type) (fields map[string]reflect.Type, names []string) {
	fields = map[string]reflect.Type{}
	for _, field := range reflect.VisibleFields(t) {
		if field.Anonymous {
			continue // VisibleFields also lists its fields
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		fields[name] = field.Type
		names = append(names, name)
	}
	return fields, names
}
