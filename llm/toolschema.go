package llm

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// This file adapts the JSON Schemas of tools to providers. An adapted schema may allow more or
// less than the original; arguments are validated against the original.
//
//   - OpenAI requires type, properties and the items of arrays, and OpenAI and Anthropic reject
//     combinations like anyOf at the top level.
//     https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
//     https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use
//   - Gemini accepts only the fields of the Schema object of OpenAPI 3.0, and rejects parameters without
//     properties. https://ai.google.dev/api/caching#Schema

// field is a field of a JSON object. Models fill in a schema in the order of its fields.
type field struct {
	name  string
	value json.RawMessage
}

type fields []field

// fieldsOf returns nil for another value.
func fieldsOf(object json.RawMessage) (all fields) {
	v := valueOf(object)
	if !v.isObject() {
		return nil
	}
	all = fields{}
	for name, value := range v.fields() {
		all = append(all, field{string(name), json.RawMessage(value)})
	}
	return all
}

func (f fields) get(name string) json.RawMessage {
	for _, field := range f {
		if field.name == name {
			return field.value
		}
	}
	return nil
}

func (f fields) set(name string, value json.RawMessage) fields {
	for i := range f {
		if f[i].name == name {
			f[i].value = value
			return f
		}
	}
	return append(f, field{name, value})
}

func (f fields) without(names ...string) fields {
	return slices.DeleteFunc(f, func(field field) bool { return slices.Contains(names, field.name) })
}

func (f fields) json() json.RawMessage {
	var b bytes.Buffer
	for i, field := range f {
		b.WriteByte("{,"[min(i, 1)])
		b.Write(encoded(field.name))
		b.WriteByte(':')
		b.Write(field.value)
	}
	if len(f) == 0 {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return b.Bytes()
}

func (f fields) text(name string) (text string) {
	_ = json.Unmarshal(f.get(name), &text)
	return text
}

// Bounds of an adapted schema. Schemas beyond them allow any value.
const (
	maxSchemaDepth = 32
	maxSchemas     = 5000
)

var combinations = []string{"allOf", "anyOf", "oneOf"}

// parameters returns nil to omit the schema. The result lacks some keywords.
func (q toolQuirks) parameters(schema event.Object, without []string) json.RawMessage {
	top := fieldsOf(json.RawMessage(schema))
	a := &adapter{toolQuirks: q, root: fieldsOf(json.RawMessage(schema)), omitted: without}
	for _, name := range combinations {
		top = a.merge(top, name)
	}
	top = top.without("enum", "not", "if", "then", "else")
	top = append(fields{{"type", json.RawMessage(`"object"`)}}, top.without("type")...)
	if fieldsOf(top.get("properties")) == nil {
		top = top.set("properties", json.RawMessage("{}"))
	}
	top = a.adapt(top, 0)
	if q.openAPISchema && len(fieldsOf(top.get("properties"))) == 0 {
		return nil
	}
	return top.json()
}

type adapter struct {
	toolQuirks
	root    fields
	omitted []string // keywords
	schemas int      // adapted so far
	open    []string // references that are being followed
}

// merge replaces a combination of objects by one object with the properties of all. What the object
// itself and the parts of allOf require remains required.
func (a *adapter) merge(object fields, name string) fields {
	var parts []json.RawMessage
	if json.Unmarshal(object.get(name), &parts) != nil {
		return object
	}
	object = slices.Clone(object).without(name)
	properties := fieldsOf(object.get("properties"))
	var required []string
	_ = json.Unmarshal(object.get("required"), &required)
	for _, part := range parts {
		schema := a.resolve(fieldsOf(part), 0)
		for _, property := range fieldsOf(schema.get("properties")) {
			if properties.get(property.name) == nil {
				properties = append(properties, property)
			}
		}
		var more []string
		if name == "allOf" && json.Unmarshal(schema.get("required"), &more) == nil {
			required = append(required, more...)
		}
	}
	if properties != nil {
		object = object.set("properties", properties.json())
	}
	if len(required) > 0 {
		slices.Sort(required)
		object = object.set("required", encoded(slices.Compact(required)))
	}
	return object
}

func (a *adapter) resolve(schema fields, depth int) fields {
	path, isLocal := strings.CutPrefix(schema.text("$ref"), "#/")
	if !isLocal || depth > maxSchemaDepth {
		return schema
	}
	target := a.root
	for name := range strings.SplitSeq(path, "/") {
		target = fieldsOf(target.get(strings.NewReplacer("~1", "/", "~0", "~").Replace(name)))
	}
	return a.resolve(target, depth+1)
}

func (a *adapter) adapt(schema fields, depth int) fields {
	a.schemas++
	if depth > maxSchemaDepth || a.schemas > maxSchemas {
		return fields{}
	}
	if a.openAPISchema {
		if ref := schema.text("$ref"); ref != "" {
			if slices.Contains(a.open, ref) {
				return fields{{"type", json.RawMessage(`"object"`)}}
			}
			a.open = append(a.open, ref)
			defer func() { a.open = a.open[:len(a.open)-1] }()
		}
		schema = a.openAPI(a.resolve(schema, 0))
	}
	if len(a.omitted) > 0 {
		schema = slices.Clone(schema).without(a.omitted...)
	}
	if schema.text("type") == "array" && schema.get("items") == nil && schema.get("prefixItems") == nil {
		schema = append(slices.Clip(schema), field{"items", json.RawMessage("{}")})
	}
	adapted := make(fields, len(schema))
	for i, f := range schema {
		switch f.name {
		case "properties", "$defs", "definitions":
			inner := fieldsOf(f.value)
			for j := range inner {
				inner[j].value = a.adaptJSON(inner[j].value, depth)
			}
			if inner != nil {
				f.value = inner.json()
			}
		case "items", "additionalProperties":
			f.value = a.adaptJSON(f.value, depth)
		case "anyOf", "oneOf", "allOf", "prefixItems":
			var parts []json.RawMessage
			if json.Unmarshal(f.value, &parts) == nil {
				for j := range parts {
					parts[j] = a.adaptJSON(parts[j], depth)
				}
				f.value = encoded(parts)
			}
		}
		adapted[i] = f
	}
	return adapted
}

// A schema may also be a boolean.
func (a *adapter) adaptJSON(schema json.RawMessage, depth int) json.RawMessage {
	inner := fieldsOf(schema)
	switch {
	case inner != nil:
		return a.adapt(inner, depth+1).json()
	case a.openAPISchema:
		return json.RawMessage("{}")
	}
	return schema
}

var openAPIFields = []string{ // of a Schema object of Gemini
	"type", "format", "title", "description", "nullable", "enum", "items", "minItems", "maxItems", "properties", "required",
	"minProperties", "maxProperties", "minLength", "maxLength", "pattern", "minimum", "maximum", "anyOf",
}

func (a *adapter) openAPI(schema fields) fields {
	schema = slices.Clone(a.merge(schema, "allOf"))
	if parts := schema.get("oneOf"); parts != nil && schema.get("anyOf") == nil {
		schema = schema.set("anyOf", parts)
	}
	if value := schema.get("const"); value != nil {
		schema = schema.set("enum", encoded([]json.RawMessage{value}))
	}
	var types, values []string
	if json.Unmarshal(schema.get("type"), &types) == nil {
		if slices.Contains(types, "null") {
			schema = schema.set("nullable", json.RawMessage("true"))
		}
		types = slices.DeleteFunc(types, func(name string) bool { return name == "null" })
		schema = schema.without("type")
		if len(types) > 0 {
			schema = schema.set("type", encoded(types[0]))
		}
	}
	if json.Unmarshal(schema.get("enum"), &values) == nil {
		schema = schema.set("type", json.RawMessage(`"string"`))
	} else {
		schema = schema.without("enum")
	}
	if format := schema.text("format"); format != "date-time" && format != "enum" {
		schema = schema.without("format")
	}
	schema = a.requireKnown(schema)
	return slices.DeleteFunc(schema, func(f field) bool { return !slices.Contains(openAPIFields, f.name) })
}

func (a *adapter) requireKnown(schema fields) fields {
	var required []string
	if json.Unmarshal(schema.get("required"), &required) != nil {
		return schema.without("required")
	}
	properties := fieldsOf(schema.get("properties"))
	required = slices.DeleteFunc(required, func(name string) bool { return properties.get(name) == nil })
	if len(required) == 0 {
		return schema.without("required")
	}
	return schema.set("required", encoded(required))
}
