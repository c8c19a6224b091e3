package event

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// FieldError reports an invalid field of an event. It repeats no value that could be a secret.
type FieldError struct {
	Tag     Tag    // empty if unknown
	Field   string // JSON name, dotted if nested; empty for the whole event
	Problem string // the invalid value, and the values allowed
	Range   *Range // the numbers in Problem, for some integers that are out of range; otherwise nil
}

// Range is an out-of-range integer and its limits.
type Range struct{ Got, Low, High int64 }

// Error returns "Tag.field: problem" without empty parts.
func (e *FieldError) Error() string {
	where := e.Field
	if e.Tag != "" {
		where = strings.TrimSuffix(string(e.Tag)+"."+e.Field, ".")
	}
	if where == "" {
		return e.Problem
	}
	return where + ": " + e.Problem
}

func fieldf(field, format string, args ...any) error {
	return &FieldError{Field: field, Problem: fmt.Sprintf(format, args...)}
}

func tagged(tag Tag, err error) error {
	var fe *FieldError
	if errors.As(err, &fe) && fe.Tag == "" {
		return &FieldError{Tag: tag, Field: fe.Field, Problem: fe.Problem, Range: fe.Range}
	}
	return err
}

func within(field string, err error) error {
	var fe *FieldError
	if errors.As(err, &fe) {
		return &FieldError{Field: field + "." + fe.Field, Problem: fe.Problem, Range: fe.Range}
	}
	return err
}

// decodeBody decodes and removes the fields of a body. Fields without "omitempty" or "omitzero" are required.
func decodeBody(fields map[string]json.RawMessage, t reflect.Type) (Body, error) {
	body := reflect.New(t).Elem()
	for _, field := range reflect.VisibleFields(t) {
		if field.Anonymous {
			continue // an embedded struct: VisibleFields also lists its fields
		}
		name, option, _ := strings.Cut(field.Tag.Get("json"), ",")
		if err := takeField(fields, name, body.FieldByIndex(field.Index).Addr().Interface(), option == ""); err != nil {
			return nil, err
		}
	}
	return body.Interface().(Body), nil
}

func takeField(fields map[string]json.RawMessage, name string, into any, required bool) error {
	raw, ok := fields[name]
	delete(fields, name)
	if !ok || string(raw) == "null" {
		if required {
			return fieldf(name, "missing")
		}
		return nil
	}
	if value, ok := into.(*json.RawMessage); ok {
		canonical, err := canonical(raw)
		*value = canonical
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return typeError(name, raw, reflect.TypeOf(into).Elem(), err)
	}
	return nil
}

// typeError explains an error of json.Unmarshal.
func typeError(path string, raw json.RawMessage, t reflect.Type, err error) error {
	var nested *json.UnmarshalTypeError
	if errors.As(err, &nested) && nested.Field != "" {
		return fieldf(join(path, nested.Field), "want %s, got a %s", wanted(nested.Type), nested.Value)
	}
	if errors.As(err, new(base64.CorruptInputError)) {
		return fieldf(join(path, "data"), "want bytes in base64 (RFC 4648)")
	}
	return fieldf(path, "want %s, got %s", wanted(t), describe(raw))
}

// compact removes spaces. It escapes <, > and &, so that encoding/json keeps the result unchanged.
func compact(raw json.RawMessage) (json.RawMessage, error) {
	var compacted, escaped bytes.Buffer
	if err := json.Compact(&compacted, raw); err != nil {
		return nil, err
	}
	json.HTMLEscape(&escaped, compacted.Bytes())
	return escaped.Bytes(), nil
}

// canonical gives equal values equal bytes, except for numbers: they keep their digits. Of fields with the
// same name, it keeps the last.
func canonical(raw json.RawMessage) (json.RawMessage, error) {
	value, err := parse(raw)
	if err != nil {
		return nil, err
	}
	return encode(value)
}

func encode(value any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// parse keeps the digits of numbers.
func parse(raw json.RawMessage) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var value any
	err := dec.Decode(&value)
	return value, err
}

func wanted(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		return "a JSON value"
	case t.PkgPath() == "time":
		return "an RFC 3339 time like 2026-01-02T15:04:05Z"
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		switch t.Elem().Kind() {
		case reflect.String:
			return "a list of strings"
		case reflect.Uint8:
			return "bytes in base64"
		}
		return "a list"
	default:
		return "an object"
	}
}

// describe omits the content of strings, which may be secret.
func describe(data []byte) string {
	data = bytes.TrimSpace(data)
	switch {
	case len(data) == 0:
		return "nothing"
	case !utf8.Valid(data):
		return fmt.Sprintf("%d bytes of invalid UTF-8", len(data))
	case !json.Valid(data):
		return "invalid JSON"
	}
	switch data[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return string(data)
	case 'n':
		return "null"
	default:
		if len(data) > 24 {
			return "a number of " + fmt.Sprint(len(data)) + " digits"
		}
		return "the number " + string(data)
	}
}

// quote redacts the excerpt, because the wrong field may hold a secret.
func quote(s string) string {
	return fmt.Sprintf("%q", Redact(s, 64))
}

func sortedNames(fields map[string]json.RawMessage) []string {
	return slices.Sorted(maps.Keys(fields))
}
