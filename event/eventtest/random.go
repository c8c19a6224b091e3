package eventtest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// random returns a valid body of the type of the example. It begins with the example, or with its required fields, gives
// fields random values, and takes back each value that makes a valid body invalid.
func random(t *rapid.T, example event.Body) event.Body {
	of := reflect.ValueOf(example)
	r := randomizer{T: t, body: reflect.New(of.Type()).Elem(), changes: rapid.SampledFrom([]int{1, 8}).Draw(t, "changes in ten")}
	r.body.Set(of)
	if rapid.Bool().Draw(t, "has required fields only") {
		for _, field := range reflect.VisibleFields(of.Type()) {
			if strings.Contains(field.Tag.Get("json"), ",omit") {
				r.body.FieldByIndex(field.Index).SetZero()
			}
		}
		if r.change(r.body, of, reflect.StructField{}); r.isValid() {
			return r.result()
		}
		r.body.Set(of)
	}
	r.change(r.body, of, reflect.StructField{})
	return r.result()
}

type randomizer struct {
	*rapid.T
	body    reflect.Value
	changes int // of ten values
}

func (r *randomizer) result() event.Body { return r.body.Interface().(event.Body) }

func (r *randomizer) isValid() bool { return event.New(r.result()).Validate() == nil }

// set gives a part of the body a value, unless the body is valid and would not be with it.
func (r *randomizer) set(part, value reflect.Value) {
	wasValid, old := r.isValid(), reflect.New(part.Type()).Elem()
	old.Set(part)
	part.Set(value.Convert(part.Type()))
	if wasValid && !r.isValid() {
		part.Set(old)
	}
}

// whole are values of types whose fields depend on each other, and of JSON that keeps its form.
var whole = map[reflect.Type][]any{
	reflect.TypeFor[event.Source](): {
		event.Source{Type: event.SourceFile, Path: "notes/plan.txt"},
		event.Source{Type: event.SourceURL, URL: "data:text/plain,hello"},
		event.Source{Type: event.SourceBlob, Data: []byte{0, 1, 0xff}},
		event.Source{Type: event.SourceBlob, Ref: "sha256/" + strings.Repeat("0123456789abcdef", 4)},
	},
	reflect.TypeFor[event.ProviderState](): {
		event.ProviderState{ProviderID: "openrouter", Model: "m", BaseURL: "https://openrouter.ai/api/v1", Data: []byte(
			`{"z":1.50e3,"reasoning_details":[{"data":"c2lnbmVk+/==\u003c\u0026\u003e\u00e9é","index":0}]}`)},
		event.ProviderState{ProviderID: "gemini", Model: "m", BaseURL: "http://127.0.0.1:8000/v1", CallIDs: []string{"call<1>"}},
	},
	reflect.TypeFor[event.ResponseFormat](): {event.ResponseFormat{Type: event.FormatText}, event.ResponseFormat{Type: event.FormatJSONObject}},
	reflect.TypeFor[event.ToolChoice]():     {event.ToolChoice{Name: "weather"}},
	reflect.TypeFor[event.Tool]():           {event.Tool{Name: "weather", Parameters: event.Object(`{}`)}},
	reflect.TypeFor[event.ApprovalRule]():   {event.ApprovalRule{Tool: "*"}},
	reflect.TypeFor[event.Object]():         {event.Object(nil), event.Object(`{}`), event.Object(`{"top_k":4,"x":{"y\u003c":1.50e3}}`)},
	reflect.TypeFor[map[string]string]():    {map[string]string(nil), map[string]string{"team": "<&>", "x": ""}},
}

// fields are the values of fields in the examples, by name and type.
var fields = map[string]reflect.Value{}

func init() {
	collect(reflect.ValueOf(event.Usage{Quirks: []string{"call_repeated", "parameter_dropped"}}))
	for _, body := range event.Examples() {
		collect(reflect.ValueOf(body))
	}
}

func collect(value reflect.Value) {
	switch value.Kind() {
	case reflect.Pointer:
		collect(value.Elem())
	case reflect.Struct:
		for i := range value.NumField() {
			if field := value.Type().Field(i); field.IsExported() && !value.Field(i).IsZero() {
				fields[field.Name+" "+field.Type.String()] = value.Field(i)
				collect(value.Field(i))
			}
		}
	}
}

// change gives a part of the body, or its parts, random values. The example is a value of the part, which stays as it is.
func (r *randomizer) change(part, example reflect.Value, field reflect.StructField) {
	if other, ok := fields[field.Name+" "+part.Type().String()]; ok && example.IsZero() {
		example = other
	}
	keeps := rapid.IntRange(0, 9).Draw(r.T, "keeps") >= r.changes
	values := whole[part.Type()]
	switch kind := part.Kind(); {
	case part.Type() == reflect.TypeFor[time.Time]():
		r.set(part, reflect.ValueOf(moment(r.T)))
	case part.Type() == reflect.TypeFor[json.RawMessage]():
		if !keeps {
			r.set(part, reflect.ValueOf(rapid.OneOf(Value(), rapid.Just(json.RawMessage(nil))).Draw(r.T, "value")))
		}
	case values != nil:
		if !keeps {
			r.set(part, reflect.ValueOf(rapid.SampledFrom(append(values, example.Interface())).Draw(r.T, "whole")))
		}
	case kind == reflect.Struct:
		for i := range part.NumField() {
			r.change(part.Field(i), example.Field(i), part.Type().Field(i))
		}
	case kind == reflect.Pointer:
		r.changePointer(part, example, field, keeps)
	case kind == reflect.Slice:
		r.changeSlice(part, example, keeps)
	case !keeps:
		r.set(part, r.simple(part, example, field))
	}
}

func (r *randomizer) changePointer(part, example reflect.Value, field reflect.StructField, keeps bool) {
	if !keeps && rapid.Bool().Draw(r.T, "is nil") {
		r.set(part, reflect.Zero(part.Type()))
		return
	}
	from := part
	if !keeps {
		from = example
	}
	if from.IsNil() {
		return
	}
	copied := reflect.New(part.Type().Elem())
	copied.Elem().Set(from.Elem())
	r.set(part, copied)
	if !part.IsNil() && !example.IsNil() {
		r.change(part.Elem(), example.Elem(), field)
	}
}

// changeSlice takes some elements of the example.
func (r *randomizer) changeSlice(part, example reflect.Value, keeps bool) {
	some := reflect.Zero(part.Type())
	if keeps {
		some = reflect.AppendSlice(some, part)
	} else {
		for i := range example.Len() {
			if rapid.Bool().Draw(r.T, "has element") {
				some = reflect.Append(some, example.Index(i))
			}
		}
	}
	r.set(part, some)
	for i := range part.Len() {
		r.change(part.Index(i), part.Index(i), reflect.StructField{})
	}
}

// simple returns a value of a type without parts.
func (r *randomizer) simple(part, example reflect.Value, field reflect.StructField) reflect.Value {
	switch part.Kind() {
	case reflect.Bool:
		return reflect.ValueOf(rapid.Bool().Draw(r.T, "flag"))
	case reflect.String:
		return reflect.ValueOf(r.text(part, example, field))
	case reflect.Float64:
		return reflect.ValueOf(rapid.Float64Range(-3, 3).Draw(r.T, "number"))
	case reflect.Int, reflect.Int64:
		if strings.Contains(schema(field), ",format=int64,") {
			return reflect.ValueOf(rapid.Int64().Draw(r.T, "number"))
		}
		low := int64(0)
		if strings.Contains(schema(field), ",min=1,") {
			low = 1 // also where validation accepts 0
		}
		bits := rapid.SampledFrom([]int{2, 4, 7, 20, 40}).Draw(r.T, "bits")
		return reflect.ValueOf(rapid.Int64Range(low, 1<<bits).Draw(r.T, "number"))
	}
	r.Fatalf("generate %s: unsupported", part.Type())
	return part
}

// text returns a value of an enumeration, an id, a name, the text of the example, or any text.
func (r *randomizer) text(part, example reflect.Value, field reflect.StructField) string {
	if values := part.MethodByName("Values"); values.IsValid() {
		all := values.Call(nil)[0]
		if i := rapid.IntRange(-1, all.Len()-1).Draw(r.T, "value"); i >= 0 {
			return all.Index(i).String()
		}
		return ""
	}
	switch number := rapid.IntRange(0, 9).Draw(r.T, "number"); {
	case field.Name == "ToolCallID":
		return fmt.Sprintf("call_%d", number)
	case !strings.Contains(schema(field), ",id,"):
	case number == 0:
		return ""
	case field.Name == "RequestID":
		return event.FormatRequestID("demo", number)
	default:
		return event.FormatID("demo", number)
	}
	if strings.Contains(schema(field), ",is=") {
		return rapid.SampledFrom([]string{name(r.T), example.String()}).Draw(r.T, "name")
	}
	return rapid.SampledFrom([]string{text(r.T), name(r.T), example.String()}).Draw(r.T, "text")
}

// schema returns the constraints of a field, each between commas.
func schema(field reflect.StructField) string { return "," + field.Tag.Get("schema") + "," }
