package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// repair makes a JSON Schema of 2020-12 from what servers send: earlier drafts, OpenAPI, and empty arrays in place of
// objects, as PHP encodes them. A keyword whose value cannot be repaired is removed, so models and checks allow more
// than the server; the server checks the arguments itself.
type repair struct {
	isRepaired bool
	references []map[string]any // schemas with $ref
	id         string           // that references may begin with
}

// repaired returns the schema of arguments, which are an object.
func repaired(schema any) (_ map[string]any, isRepaired bool, err error) {
	r := &repair{}
	if text, ok := schema.(string); ok && json.Unmarshal([]byte(text), &schema) == nil {
		r.isRepaired = true
	}
	root, ok := schema.(map[string]any)
	if !ok {
		root, r.isRepaired = map[string]any{}, true
	}
	root = maps.Clone(root)
	r.id, _ = root["$id"].(string)
	delete(root, "$schema") // some providers reject it
	delete(root, "$id")
	if isBareProperties(root) {
		root, r.isRepaired = map[string]any{"properties": root}, true
	}
	for range 8 { // references may refer to references
		ref, _ := root["$ref"].(string)
		target, ok := r.target(root, ref).(map[string]any)
		if !ok {
			break
		}
		r.isRepaired = true
		delete(root, "$ref")
		target = maps.Clone(target)
		maps.Copy(target, root)
		root = target
	}
	root = r.object(root, 0)
	types, _ := root["type"].([]any)
	name, isOne := root["type"].(string)
	_, hasProperties := root["properties"]
	switch {
	case name == "object":
	case (isOne || types != nil && !slices.Contains(types, "object")) && !hasProperties:
		return nil, true, fmt.Errorf("the input schema is of type %s (MCP passes arguments as an object)", encoded(root["type"]))
	default:
		root["type"], r.isRepaired = "object", true
	}
	if !hasProperties {
		root["properties"] = map[string]any{} // OpenAI rejects a schema without properties
	}
	for _, s := range r.references {
		if ref, _ := s["$ref"].(string); r.target(root, ref) == nil {
			delete(s, "$ref")
			r.isRepaired = true
		}
	}
	return root, r.isRepaired, nil
}

// isBareProperties reports whether an object has no keywords, only schemas by name.
func isBareProperties(root map[string]any) bool {
	for name, value := range root {
		_, isKeyword := keywords[name]
		_, isObject := value.(map[string]any)
		if isKeyword || !isObject {
			return false
		}
	}
	return len(root) > 0
}

// target returns what a reference within the document refers to; nil: nothing.
func (r *repair) target(root map[string]any, ref string) any {
	path, isLocal := strings.CutPrefix(ref, "#")
	if !isLocal {
		return nil
	}
	var at any = root
	for _, name := range strings.Split(path, "/")[1:] {
		fields, _ := at.(map[string]any)
		at = fields[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]
	}
	if path != "" && path[0] != '/' {
		return nil // an anchor
	}
	return at
}

// keyword repairs the value of a keyword; false removes it.
type keyword func(r *repair, value any, depth int) (any, bool)

var keywords map[string]keyword

func init() {
	keywords = map[string]keyword{"type": (*repair).types, "required": (*repair).names, "enum": (*repair).values, "examples": (*repair).values}
	for kind, of := range map[string]keyword{
		"allOf anyOf oneOf prefixItems":                                   (*repair).list,
		"properties patternProperties $defs definitions dependentSchemas": (*repair).schemas,
		"items additionalProperties not if then else contains propertyNames unevaluatedItems unevaluatedProperties contentSchema additionalItems": (*repair).schema,
		"title description $comment pattern format contentEncoding contentMediaType $ref $anchor $dynamicRef $dynamicAnchor":                      is[string],
		"minimum maximum exclusiveMinimum exclusiveMaximum":                                                                                       is[float64],
		"uniqueItems deprecated readOnly writeOnly":                                                                                               is[bool],
		"minLength maxLength minItems maxItems minProperties maxProperties minContains maxContains": func(_ *repair, v any, _ int) (any, bool) {
			n, ok := v.(float64)
			return v, ok && n >= 0 && n == math.Trunc(n)
		},
		"multipleOf": func(_ *repair, v any, _ int) (any, bool) {
			n, ok := v.(float64)
			return v, ok && n > 0
		},
		"dependentRequired": (*repair).lists,
		"$id $schema $vocabulary dependencies $recursiveRef $recursiveAnchor": func(*repair, any, int) (any, bool) { return nil, false },
	} {
		for name := range strings.FieldsSeq(kind) {
			keywords[name] = of
		}
	}
}

func is[T any](_ *repair, value any, _ int) (any, bool) {
	_, ok := value.(T)
	return value, ok
}

// maxRepairDepth is beyond what can be compiled.
const maxRepairDepth = 200

// schema repairs a schema.
func (r *repair) schema(value any, depth int) (any, bool) {
	switch value := value.(type) {
	case bool:
		return value, true
	case map[string]any:
		if depth < maxRepairDepth {
			return r.object(value, depth+1), true
		}
	case string: // the name of a type, or a description
		r.isRepaired = true
		if types, ok := r.types(value, depth); ok {
			return map[string]any{"type": types}, true
		}
		return map[string]any{"description": value}, true
	}
	r.isRepaired = true
	return map[string]any{}, true
}

func (r *repair) object(given map[string]any, depth int) map[string]any {
	s := r.modern(given)
	for name, value := range s {
		repair, isKnown := keywords[name]
		if !isKnown {
			continue
		}
		fixed, ok := repair(r, value, depth)
		if !ok {
			r.isRepaired = true
			delete(s, name)
			continue
		}
		s[name] = fixed
	}
	if ref, ok := s["$ref"].(string); ok {
		if local, isOwn := strings.CutPrefix(ref, r.id); isOwn && r.id != "" {
			s["$ref"] = local
		}
		r.references = append(r.references, s)
	}
	return s
}

// modern replaces keywords of earlier drafts and of OpenAPI.
func (r *repair) modern(given map[string]any) map[string]any {
	s := maps.Clone(given)
	for exclusive, bound := range map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"} {
		if isExclusive, ok := s[exclusive].(bool); ok { // draft 4
			delete(s, exclusive)
			r.isRepaired = true
			if limit, ok := s[bound]; ok && isExclusive {
				delete(s, bound)
				s[exclusive] = limit
			}
		}
	}
	items, isTuple := s["items"].([]any)
	rest, hasRest := s["additionalItems"]
	if isTuple { // draft 7
		delete(s, "items")
		if len(items) > 0 {
			s["prefixItems"] = items
		}
		if hasRest {
			s["items"] = rest
		}
	}
	delete(s, "additionalItems")
	r.isRepaired = r.isRepaired || isTuple || hasRest
	if isNullable, ok := s["nullable"].(bool); ok { // OpenAPI 3.0
		delete(s, "nullable")
		r.isRepaired = true
		if name, ok := s["type"].(string); ok && isNullable {
			s["type"] = []any{name, "null"}
			if values, ok := s["enum"].([]any); ok {
				s["enum"] = append(slices.Clip(values), nil)
			}
		}
	}
	properties, _ := s["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if property, ok := properties[name].(map[string]any); ok && property["required"] == true { // draft 3
			required, _ := s["required"].([]any)
			s["required"] = append(slices.Clip(required), name)
		}
	}
	return s
}

// schemas repairs an object of schemas.
func (r *repair) schemas(value any, depth int) (any, bool) {
	given, ok := value.(map[string]any)
	if list, isList := value.([]any); isList {
		r.isRepaired = true
		given, ok = named(list), true
	}
	fixed := map[string]any{}
	for name, schema := range given {
		fixed[name], _ = r.schema(schema, depth)
	}
	return fixed, ok
}

// named returns a list of schemas with names as an object.
func named(list []any) map[string]any {
	fields := map[string]any{}
	for _, element := range list {
		schema, _ := element.(map[string]any)
		if name, ok := schema["name"].(string); ok {
			schema = maps.Clone(schema)
			delete(schema, "name")
			fields[name] = schema
		}
	}
	return fields
}

// list repairs an array of schemas, which must not be empty.
func (r *repair) list(value any, depth int) (any, bool) {
	var fixed []any
	for _, schema := range r.elements(value) {
		one, _ := r.schema(schema, depth)
		fixed = append(fixed, one)
	}
	return fixed, len(fixed) > 0
}

func (r *repair) values(value any, _ int) (any, bool) {
	elements := r.elements(value)
	return elements, len(elements) > 0
}

// elements returns the elements of an array, or the values of an object, as PHP encodes some arrays.
func (r *repair) elements(value any) []any {
	switch value := value.(type) {
	case []any:
		return value
	case map[string]any:
		r.isRepaired = true
		var elements []any
		for _, name := range slices.Sorted(maps.Keys(value)) {
			elements = append(elements, value[name])
		}
		return elements
	}
	return nil
}

// names repairs required.
func (r *repair) names(value any, _ int) (any, bool) {
	names := []any{}
	given := r.elements(value)
	for _, element := range given {
		if _, ok := element.(string); ok && !slices.Contains(names, element) {
			names = append(names, element)
		}
	}
	r.isRepaired = r.isRepaired || len(names) < len(given)
	_, isList := value.([]any)
	return names, isList || len(names) > 0
}

// lists repairs an object of lists of names.
func (r *repair) lists(value any, depth int) (any, bool) {
	fixed := map[string]any{}
	given, ok := value.(map[string]any)
	for name, list := range given {
		fixed[name], _ = r.names(list, depth)
	}
	return fixed, ok
}

// typeNames are the names of types in schemas, and others that servers use.
var typeNames = map[string]string{
	"object": "object", "array": "array", "string": "string", "number": "number", "integer": "integer", "boolean": "boolean", "null": "null",
	"dict": "object", "map": "object", "list": "array", "str": "string", "float": "number", "double": "number", "decimal": "number",
	"int": "integer", "long": "integer", "bool": "boolean", "none": "null",
}

// types repairs type.
func (r *repair) types(value any, _ int) (any, bool) {
	var names []any
	for _, element := range append(r.elements(value), value) {
		given, _ := element.(string)
		name := typeNames[strings.ToLower(given)]
		r.isRepaired = r.isRepaired || given != "" && name != given
		if name != "" && !slices.Contains(names, any(name)) {
			names = append(names, name)
		}
	}
	switch len(names) {
	case 0:
		return nil, false
	case 1:
		return names[0], true
	}
	return names, true
}
