package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/internal/schema"
)

// maxRepairs bounds how often a schema is compiled: a removed value can have hidden another.
const maxRepairs = 10

// repaired returns the schema of arguments, which are an object. It removes what JSON Schema 2020-12 rejects, such as
// keywords of earlier drafts, and empty arrays in place of objects, as PHP encodes them. So models and checks allow more
// than the server; the server checks the arguments itself.
func repaired(given any) (_ map[string]any, isRepaired bool, err error) {
	var root map[string]any
	if json.Unmarshal(encoded(given), &root) != nil || root == nil {
		root, isRepaired = map[string]any{}, true
	}
	delete(root, "$schema") // some providers reject it
	if target := local(root, root["$ref"]); target != nil {
		delete(root, "$ref")
		target = maps.Clone(target)
		maps.Copy(target, root)
		root, isRepaired = target, true
	}
	delete(root, "nullable") // arguments are never null
	isRepaired = withNull(root) || isRepaired
	for range maxRepairs {
		var fault *schema.Fault
		if _, err := schema.CompileParameters(encoded(root)); !errors.As(err, &fault) || !remove(root, fault) {
			break
		}
		isRepaired = true
	}
	kinds, isList := root["type"].([]any)
	if !isList {
		kinds = []any{root["type"]}
	}
	if root["type"] != nil && !slices.Contains(kinds, any("object")) {
		return nil, true, fmt.Errorf("the input schema is of type %s (MCP passes arguments as an object)", encoded(root["type"]))
	}
	if root["type"] != any("object") {
		root["type"], isRepaired = "object", true
	}
	if root["properties"] == nil {
		root["properties"] = map[string]any{} // OpenAI rejects a schema without properties
	}
	return root, isRepaired, nil
}

// local returns the schema in a document to which a reference refers; nil: none.
func local(document map[string]any, ref any) map[string]any {
	text, _ := ref.(string)
	path, isLocal := strings.CutPrefix(text, "#/")
	if !isLocal {
		return nil
	}
	for name := range strings.SplitSeq(path, "/") {
		document, _ = document[name].(map[string]any)
	}
	return document
}

// walk visits the objects in a value.
func walk(value any, visit func(map[string]any)) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			walk(element, visit)
		}
	case map[string]any:
		visit(value)
		for _, field := range value {
			walk(field, visit)
		}
	}
}

// withNull adds the type null where OpenAPI 3.0 says nullable.
func withNull(root map[string]any) (isRepaired bool) {
	walk(root, func(s map[string]any) {
		kind, isOne := s["type"].(string)
		if s["nullable"] != true || !isOne {
			return
		}
		delete(s, "nullable")
		s["type"], isRepaired = []any{kind, "null"}, true
		if values, ok := s["enum"].([]any); ok {
			s["enum"] = append(values, nil)
		}
	})
	return isRepaired
}

// remove removes the values that the compiler rejects, or, if it names none, references to nothing. A property keeps
// its name.
func remove(root map[string]any, fault *schema.Fault) (isRemoved bool) {
	for _, path := range fault.At {
		isRemoved = removeAt(root, path) || isRemoved
	}
	return isRemoved || len(fault.At) == 0 && withoutReferences(root)
}

// removeAt removes the field at a path, or the field with the list whose element is at the path.
func removeAt(at any, path []string) (isRemoved bool) {
	var holder map[string]any
	field, isProperty, isOfProperties := "", false, false
	for _, name := range path {
		switch value := at.(type) {
		case map[string]any:
			isProperty, isOfProperties = isOfProperties, !isOfProperties && name == "properties"
			holder, field, at = value, name, value[name]
		case []any:
			index, err := strconv.Atoi(name)
			if err != nil || index >= len(value) {
				return false
			}
			isOfProperties, at = false, value[index]
		default:
			return false
		}
	}
	_, isRemoved = holder[field]
	if fields, ok := holder[field].(map[string]any); isProperty && isRemoved && (!ok || len(fields) > 0) {
		holder[field] = map[string]any{}
	} else {
		delete(holder, field)
	}
	return isRemoved
}

func withoutReferences(root map[string]any) (isRemoved bool) {
	walk(root, func(s map[string]any) {
		if ref, ok := s["$ref"].(string); ok && ref != "#" && local(root, ref) == nil {
			delete(s, "$ref")
			isRemoved = true
		}
	})
	return isRemoved
}
