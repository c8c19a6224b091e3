package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// CheckNames returns an error if the name of a field differs from a declared name only in case. JSON
// Schema then treats the field as unknown and does not apply the rules of the declared one, while
// programs that ignore case, such as those with encoding/json, read it as the declared one. The error
// is a [*Fault] if the schema takes too many steps.
func (s *Schema) CheckNames(text string) error {
	value, err := parse([]byte(text))
	if err != nil {
		return err
	}
	s.evaluations = 0
	return s.checkNames(value, "", []*jsonschema.Schema{s.compiled})
}

// checkNames checks a value at a path, to which schemas apply.
func (s *Schema) checkNames(value any, at string, schemas []*jsonschema.Schema) error {
	schemas = withInPlace(schemas)
	if s.evaluations += 1 + len(schemas); s.evaluations > s.limit {
		return &Fault{Reason: "the schema takes too many steps"}
	}
	if len(schemas) == 0 {
		return nil
	}
	switch value := value.(type) {
	case map[string]any:
		declared := declaredNames(schemas)
		folded := map[string]string{}
		for _, name := range slices.Sorted(maps.Keys(declared)) {
			folded[fold(name)] = name
		}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			path := at + "/" + name
			if want, ok := folded[fold(name)]; ok && !declared[name] {
				return fmt.Errorf("%s: unknown field (want %s)", path, want)
			}
			if err := s.checkNames(value[name], path, fieldSchemas(schemas, name)); err != nil {
				return err
			}
		}
	case []any:
		elements := elementSchemas(schemas)
		for i, element := range value {
			if err := s.checkNames(element, fmt.Sprintf("%s/%d", at, i), elements); err != nil {
				return err
			}
		}
	}
	return nil
}

// fold returns the same text for all names that encoding/json takes for the same field.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		for {
			next := unicode.SimpleFold(r)
			if next <= r {
				return next
			}
			r = next
		}
	}, name)
}

// withInPlace returns schemas and those that they apply to the same value.
func withInPlace(schemas []*jsonschema.Schema) []*jsonschema.Schema {
	var all []*jsonschema.Schema
	seen := map[*jsonschema.Schema]bool{nil: true}
	for next := slices.Clone(schemas); len(next) > 0; {
		schema := next[0]
		if next = next[1:]; seen[schema] {
			continue
		}
		seen[schema] = true
		all = append(all, schema)
		next = append(next, inPlace(schema)...)
		if schema.DynamicRef != nil {
			next = append(next, schema.DynamicRef.Ref)
		}
	}
	return all
}

// declaredNames returns the names of the fields that schemas mention.
func declaredNames(schemas []*jsonschema.Schema) map[string]bool {
	declared := map[string]bool{}
	add := func(names ...string) {
		for _, name := range names {
			declared[name] = true
		}
	}
	for _, s := range schemas {
		add(s.Required...)
		for name := range s.Properties {
			add(name)
		}
		for name, required := range s.DependentRequired {
			add(name)
			add(required...)
		}
		for name := range s.DependentSchemas {
			add(name)
		}
		for name, dependency := range s.Dependencies {
			add(name)
			required, _ := dependency.([]string)
			add(required...)
		}
	}
	return declared
}

// fieldSchemas returns the schemas that can apply to a field.
func fieldSchemas(schemas []*jsonschema.Schema, name string) []*jsonschema.Schema {
	var of []*jsonschema.Schema
	for _, s := range schemas {
		additional, _ := s.AdditionalProperties.(*jsonschema.Schema)
		of = append(of, s.Properties[name], additional, s.UnevaluatedProperties)
		for pattern, schema := range s.PatternProperties {
			if pattern.MatchString(name) {
				of = append(of, schema)
			}
		}
	}
	return of
}

// elementSchemas returns the schemas that can apply to an element of a list.
func elementSchemas(schemas []*jsonschema.Schema) []*jsonschema.Schema {
	var of []*jsonschema.Schema
	for _, s := range schemas {
		of = append(append(of, s.Items2020, s.Contains, s.UnevaluatedItems), s.PrefixItems...)
		for _, items := range []any{s.Items, s.AdditionalItems} {
			switch items := items.(type) {
			case *jsonschema.Schema:
				of = append(of, items)
			case []*jsonschema.Schema:
				of = append(of, items...)
			}
		}
	}
	return of
}
