package tool

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// noParameters is for types without fields: OpenAI rejects a schema without properties.
const noParameters = `{"type":"object","properties":{},"additionalProperties":false}`

func parametersOf(in reflect.Type) (event.Object, error) {
	inferred, err := jsonschema.ForType(in, &jsonschema.ForOptions{})
	if err != nil {
		return nil, fmt.Errorf("input type %v: %w", in, err)
	}
	if inferred.Type != "object" {
		return nil, fmt.Errorf("input type %v: want a struct, or a map with strings as keys", in)
	}
	if in.Kind() == reflect.Struct && len(inferred.Properties) == 0 {
		return event.Object(noParameters), nil
	}
	withoutNull(inferred)
	data, err := json.Marshal(inferred)
	if err != nil {
		return nil, fmt.Errorf("input type %v: %w", in, err)
	}
	return event.Object(data), nil
}

// withoutNull removes null from the types of pointers and slices; some providers accept one type
// only. A pointer becomes optional instead.
func withoutNull(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	for name, property := range s.Properties {
		if slices.Contains(property.Types, "null") && !slices.Contains(property.Types, "array") {
			s.Required = slices.DeleteFunc(s.Required, func(required string) bool { return required == name })
		}
		withoutNull(property)
	}
	withoutNull(s.Items)
	withoutNull(s.AdditionalProperties)
	if types := slices.DeleteFunc(s.Types, func(name string) bool { return name == "null" }); len(types) == 1 {
		s.Type, s.Types = types[0], nil
	}
}
