package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
)

// rule says what the objects of a type may contain besides the fields that are read.
type rule struct {
	ignored []string // fields that change no answer, or choose what the operator of the worker chooses
	types   []string // supported values of the field "type"; nil: any
}

var rules = map[reflect.Type]rule{
	reflect.TypeFor[request]():       {ignored: ignoredSettings},
	reflect.TypeFor[chatRequest]():   {ignored: ignoredSettings},
	reflect.TypeFor[streamOptions](): {ignored: []string{"include_obfuscation"}},
	reflect.TypeFor[format]():        {types: []string{event.FormatText, event.FormatJSONObject, event.FormatJSONSchema}},
	reflect.TypeFor[chatFormat]():    {types: []string{event.FormatText, event.FormatJSONObject, event.FormatJSONSchema}},
	reflect.TypeFor[tool]():          {ignored: []string{"strict", "server_description"}, types: []string{"function", "mcp"}},
	reflect.TypeFor[namedTool]():     {types: []string{"function"}},
	// Items and messages that an answer returned are sent back as they are.
	reflect.TypeFor[inputItem](): {
		ignored: []string{"status", "summary", "phase", "parsed_arguments", "annotations", "reasoning_content", "parsed"},
		types:   []string{"message", "function_call", "function_call_output", "mcp_call", "mcp_approval_response", "reasoning", "item_reference"},
	},
	reflect.TypeFor[inputPart](): {
		ignored: []string{"annotations", "logprobs", "parsed", "detail", "prompt_cache_breakpoint"},
		types: []string{"input_text", "output_text", "summary_text", "refusal", "input_image", "input_file",
			"text", "image_url", "file", "input_audio"},
	},
	reflect.TypeFor[imageURL]():     {ignored: []string{"detail"}},
	reflect.TypeFor[chatCall]():     {types: []string{"function"}},
	reflect.TypeFor[chatFunction](): {ignored: []string{"parsed_arguments"}},
}

var ignoredSettings = []string{"service_tier", "truncation", "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options"}

func unsupported(field, format string, args ...any) error {
	p := gateway.BadRequest(field, format, args...)
	p.Type = "urn:chronicle:problem:unsupported-parameter"
	return p
}

// decode decodes a value of a request, which is at a path: "" is the body. It rejects fields that the type of into does not
// have, also nested ones, unless they are ignored or null.
func decode(path string, data []byte, into any) error {
	if path == "" && !isObject(data) {
		return gateway.BadRequest("", "the body is no JSON object")
	}
	if err := check(path, data, reflect.TypeOf(into)); err != nil {
		return err
	}
	err := json.Unmarshal(data, into)
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		field := join(path, strings.TrimPrefix(mismatch.Field, "common.")) // the embedded struct
		return gateway.BadRequest(field, "%s has the wrong type: %s", field, mismatch.Value)
	}
	if err != nil {
		return gateway.BadRequest(path, "the body is invalid: %s", event.Redact(err.Error(), 200))
	}
	return nil
}

func isObject(data []byte) bool {
	var fields map[string]json.RawMessage
	return json.Unmarshal(data, &fields) == nil
}

func join(path, field string) string { return strings.Trim(path+"."+field, ".") }

// check rejects what a rule does not allow. It leaves wrong types to the decoder.
func check(path string, data []byte, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Slice:
		var elements []json.RawMessage
		_ = json.Unmarshal(data, &elements)
		for i, element := range elements {
			if err := check(fmt.Sprintf("%s[%d]", path, i), element, t.Elem()); err != nil {
				return err
			}
		}
	case reflect.Struct:
		return checkObject(path, data, t)
	}
	return nil
}

func checkObject(path string, data []byte, t reflect.Type) error {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(data, &fields)
	allowed := rules[t]
	var kind string
	if _ = json.Unmarshal(fields["type"], &kind); kind != "" && allowed.types != nil && !slices.Contains(allowed.types, kind) {
		field := join(path, "type")
		return unsupported(field, "%s %q is not supported (want %s)", field, event.Redact(kind, 50), strings.Join(allowed.types, ", "))
	}
	known := map[string]reflect.Type{}
	for _, field := range reflect.VisibleFields(t) {
		if name := field.Tag.Get("json"); name != "" {
			name, _, _ = strings.Cut(name, ",")
			known[name] = field.Type
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		field, value := join(path, event.Redact(name, 100)), fields[name]
		of, isKnown := known[name]
		switch {
		case string(value) == "null" || slices.Contains(allowed.ignored, name):
		case !isKnown:
			return unsupported(field, "%s is not supported (leave it out)", field)
		default:
			if err := check(field, value, of); err != nil {
				return err
			}
		}
	}
	return nil
}
