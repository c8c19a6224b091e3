package describe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/constant"
	"go/types"
	"iter"
	"maps"
	"reflect"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Reference is the prefix of a $ref to a component.
const Reference = "#/components/schemas/"

// Schemas are the components that types and references to them have added.
type Schemas struct {
	Source *Source
	// Names are the names of components that differ from those of their types, by package name and type
	// ("reducer.Attachment"): a type with the same name has it.
	Names map[string]string
	// Body returns the additional properties of a component, such as the tag of an event; nil for none. A type
	// that has some is open for other properties, and is part of other types without these properties.
	Body       func(named *types.Named) *jsonschema.Schema
	Components map[string]*jsonschema.Schema
	types      map[string]*types.Named // of the components
}

// Ref returns a reference to a component.
func Ref(name string) *jsonschema.Schema { return &jsonschema.Schema{Ref: Reference + name} }

// Of returns the schema of a type: a reference if it is a component.
func (s *Schemas) Of(t types.Type) *jsonschema.Schema {
	switch t := types.Unalias(t).(type) {
	case *types.Pointer:
		return s.Of(t.Elem())
	case *types.Named:
		return s.named(t)
	case *types.Slice:
		if basic, ok := t.Elem().(*types.Basic); ok && basic.Kind() == types.Byte {
			return &jsonschema.Schema{Type: "string", ContentEncoding: "base64"}
		}
		return &jsonschema.Schema{Type: "array", Items: s.Of(t.Elem())}
	case *types.Map:
		return &jsonschema.Schema{Type: "object", AdditionalProperties: s.Of(t.Elem())}
	case *types.Interface:
		return &jsonschema.Schema{}
	case *types.Basic:
		switch info := t.Info(); {
		case info&types.IsBoolean != 0:
			return &jsonschema.Schema{Type: "boolean"}
		case info&types.IsInteger != 0:
			return &jsonschema.Schema{Type: "integer"}
		case info&types.IsFloat != 0:
			return &jsonschema.Schema{Type: "number"}
		}
		return &jsonschema.Schema{Type: "string"}
	}
	panic(fmt.Sprintf("describe %s: unsupported", t))
}

func (s *Schemas) named(t *types.Named) *jsonschema.Schema {
	switch path := t.Obj().Pkg().Path(); {
	case path == "time" && t.Obj().Name() == "Time":
		return &jsonschema.Schema{Type: "string", Format: "date-time"}
	case s.Source.packages[path] == nil && t.Obj().Name() == "RawMessage":
		return &jsonschema.Schema{}
	case s.Source.packages[path] == nil:
		panic(fmt.Sprintf("describe %s: its package is not loaded", t))
	}
	_, isStruct := t.Underlying().(*types.Struct)
	rules := s.Source.rules(t)
	switch {
	case !isStruct && len(rules) > 0:
		return s.parse(t, rules)
	case !isStruct && len(Constants(t)) == 0:
		return s.Of(t.Underlying())
	case s.Body(t) != nil:
		return s.object(t)
	}
	s.Add(t)
	return Ref(s.name(t))
}

// Add makes a type a component.
func (s *Schemas) Add(t *types.Named) {
	name := s.name(t)
	if known := s.types[name]; known != nil {
		if !types.Identical(known, t) {
			panic(fmt.Sprintf("describe %s: %s has the same name", t, known))
		}
		return
	}
	if s.Components == nil {
		s.Components, s.types = map[string]*jsonschema.Schema{}, map[string]*types.Named{}
	}
	s.types[name] = t
	var schema *jsonschema.Schema
	switch _, isStruct := t.Underlying().(*types.Struct); {
	case !isStruct:
		schema = s.enum(t)
	case s.Source.Method(t, "MarshalJSON") != nil:
		schema = s.parse(t, s.Source.rules(t))
		schema.Description = s.Source.Doc(t.Obj(), Fields(t))
	default:
		schema = s.object(t)
		if body := s.Body(t); body != nil {
			schema.AdditionalProperties = nil
			maps.Copy(schema.Properties, body.Properties)
			schema.PropertyOrder = append(body.PropertyOrder, schema.PropertyOrder...)
			schema.Required = append(body.Required, schema.Required...)
		}
	}
	s.Components[name] = schema
}

func (s *Schemas) name(t *types.Named) string {
	name := t.Obj().Name()
	return Capitalised(cmp.Or(s.Names[t.Obj().Pkg().Name()+"."+name], name))
}

func (s *Schemas) enum(t *types.Named) *jsonschema.Schema {
	schema := &jsonschema.Schema{Description: s.Source.Doc(t.Obj(), nil)}
	var meanings []string
	for _, c := range Constants(t) {
		value := constant.StringVal(c.Val())
		schema.Enum = append(schema.Enum, value)
		if doc := s.Source.Doc(c, nil); doc != "" {
			meanings = append(meanings, "`"+value+"`: "+strings.ToLower(doc[:1])+doc[1:])
		}
	}
	if len(meanings) > 0 {
		schema.Description = strings.TrimPrefix(schema.Description+". "+strings.Join(meanings, "; "), ". ")
	}
	return schema
}

// object returns the schema of a struct, which allows no other properties.
func (s *Schemas) object(t *types.Named) *jsonschema.Schema {
	schema := &jsonschema.Schema{
		Type: "object", Description: s.Source.Doc(t.Obj(), Fields(t)), Properties: map[string]*jsonschema.Schema{},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
	names := Fields(t)
	s.addFields(schema, t.Underlying().(*types.Struct), names)
	for _, rule := range s.Source.rules(t) {
		s.overlay(schema, s.parse(t, []string{rule}))
	}
	if schema.AnyOf != nil { // beside properties, generators of types read it as a union of types
		schema.AllOf, schema.AnyOf = append(schema.AllOf, &jsonschema.Schema{AnyOf: schema.AnyOf}), nil
	}
	return schema
}

func (s *Schemas) addFields(schema *jsonschema.Schema, t *types.Struct, names map[string]string) {
	for field, tag := range fields(t) {
		name, options, _ := strings.Cut(tag.Get("json"), ",")
		property := s.Of(field.Type())
		if doc := s.Source.Doc(field, names); doc != "" {
			property.Description = doc
		}
		if property.Type == "boolean" && options != "" && property.Default == nil && !isPointer(field.Type()) {
			property.Default = json.RawMessage("false")
		}
		for key, value := range constraints(tag.Get("schema")) {
			s.constrain(property, field, key, value)
		}
		schema.Properties[name] = property
		schema.PropertyOrder = append(schema.PropertyOrder, name)
		if options == "" {
			schema.Required = append(schema.Required, name)
		}
	}
}

func isPointer(t types.Type) bool {
	_, ok := t.(*types.Pointer)
	return ok
}

// Fields returns the JSON names of the fields of a struct, with those of embedded structs.
func Fields(t *types.Named) map[string]string {
	names := map[string]string{}
	for field, tag := range fields(t.Underlying().(*types.Struct)) {
		names[field.Name()], _, _ = strings.Cut(tag.Get("json"), ",")
	}
	return names
}

// fields yields the JSON fields of a struct and of embedded structs.
func fields(t *types.Struct) iter.Seq2[*types.Var, reflect.StructTag] {
	return func(yield func(*types.Var, reflect.StructTag) bool) { yieldFields(t, yield) }
}

func yieldFields(t *types.Struct, yield func(*types.Var, reflect.StructTag) bool) bool {
	for i := range t.NumFields() {
		field, tag := t.Field(i), reflect.StructTag(t.Tag(i))
		switch name := tag.Get("json"); {
		case field.Embedded() && name == "":
			embedded := field.Type()
			if pointer, ok := embedded.(*types.Pointer); ok {
				embedded = pointer.Elem()
			}
			if !yieldFields(embedded.Underlying().(*types.Struct), yield) {
				return false
			}
		case field.Exported() && name != "-" && name != "":
			if !yield(field, tag) {
				return false
			}
		}
	}
	return true
}

func constraints(tag string) iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		for part := range strings.SplitSeq(tag, ",") {
			key, value, _ := strings.Cut(part, "=")
			if key != "" && !yield(key, value) {
				return
			}
		}
	}
}

func (s *Schemas) constrain(schema *jsonschema.Schema, field types.Object, key, value string) {
	if rest, ok := strings.CutPrefix(key, "items."); ok {
		s.constrain(cmp.Or(schema.Items, schema.AdditionalProperties), field, rest, value)
		return
	}
	if rest, ok := strings.CutPrefix(key, "names."); ok {
		schema.PropertyNames = cmp.Or(schema.PropertyNames, &jsonschema.Schema{})
		s.constrain(schema.PropertyNames, field, rest, value)
		return
	}
	switch key {
	case "min":
		s.bound(schema, field, value, &schema.Minimum, &schema.MinLength, &schema.MinItems, &schema.MinProperties)
	case "max":
		s.bound(schema, field, value, &schema.Maximum, &schema.MaxLength, &schema.MaxItems, &schema.MaxProperties)
	case "pattern":
		schema.Pattern = constant.StringVal(s.Source.Value(field, value))
	case "format":
		schema.Format = value
	case "media":
		schema.ContentMediaType = value
	case "is":
		*schema = jsonschema.Schema{Ref: Reference + value, Description: schema.Description}
	case "const":
		*schema = jsonschema.Schema{Const: new(any(constant.StringVal(s.Source.Value(field, value)))), Description: schema.Description}
	case "default":
		schema.Default = json.RawMessage(s.Source.Value(field, value).ExactString())
	case "enum":
		*schema = jsonschema.Schema{Description: schema.Description}
		if c, ok := field.Pkg().Scope().Lookup(value).(*types.Const); ok {
			value = constant.StringVal(c.Val())
		}
		for v := range strings.SplitSeq(value, "|") {
			schema.Enum = append(schema.Enum, v)
		}
	case "not":
		schema.Not = &jsonschema.Schema{}
		s.constrain(schema.Not, field, "enum", value)
	case "type":
		if schema.Types = strings.Split(value, "|"); len(schema.Types) == 1 {
			schema.Type, schema.Types = value, nil
		}
	case "id": // see event.Event.MapIDs
	case "unique":
		schema.UniqueItems = true
	default:
		panic(fmt.Sprintf("describe %s: unknown constraint %s", field.Name(), key))
	}
}

func (s *Schemas) bound(schema *jsonschema.Schema, field types.Object, expression string, ofNumber **float64, ofLength, ofItems, ofProperties **int) {
	value := s.Source.Value(field, expression)
	n, _ := constant.Float64Val(constant.ToFloat(value))
	switch count := int(n); schema.Type {
	case "integer", "number":
		*ofNumber = &n
	case "string":
		*ofLength = &count
	case "array":
		*ofItems = &count
	case "object", "": // names of a map are strings
		*ofProperties = &count
	}
}

// parse reads the rules of a type.
func (s *Schemas) parse(t *types.Named, rules []string) *jsonschema.Schema {
	schema := &jsonschema.Schema{}
	if len(rules) == 0 {
		panic(fmt.Sprintf("describe %s: a type with MarshalJSON needs %s", t, directive))
	}
	for _, rule := range rules {
		if err := json.Unmarshal([]byte(rule), schema); err != nil {
			panic(fmt.Sprintf("describe %s: %s: %v", t, rule, err))
		}
	}
	s.resolve(t, reflect.ValueOf(schema))
	return schema
}

// resolve makes the names in $ref references.
func (s *Schemas) resolve(t *types.Named, at reflect.Value) {
	switch at.Kind() {
	case reflect.Pointer:
		schema, ok := at.Interface().(*jsonschema.Schema)
		if !ok || schema == nil {
			return
		}
		if schema.Ref != "" && !strings.Contains(schema.Ref, "#") {
			if named := s.Source.Named(t.Obj().Pkg().Path(), schema.Ref); named != nil {
				s.Add(named)
				schema.Ref = s.name(named)
			}
			schema.Ref = Reference + schema.Ref
		}
		for i := range at.Elem().NumField() {
			s.resolve(t, at.Elem().Field(i))
		}
	case reflect.Slice:
		for i := range at.Len() {
			s.resolve(t, at.Index(i))
		}
	case reflect.Map:
		for _, key := range at.MapKeys() {
			s.resolve(t, at.MapIndex(key))
		}
	}
}

// overlay sets the keywords of a schema that the rules set; those of properties, in the properties.
func (s *Schemas) overlay(schema, rules *jsonschema.Schema) {
	for name, property := range rules.Properties {
		known := schema.Properties[name]
		if known == nil {
			panic("rules of an unknown property " + strconv.Quote(name))
		}
		if property.Ref != "" || property.Enum != nil || property.AnyOf != nil {
			*known = jsonschema.Schema{Description: known.Description}
		}
		s.overlay(known, property)
	}
	from, to := reflect.ValueOf(rules).Elem(), reflect.ValueOf(schema).Elem()
	for i := range from.NumField() {
		if name := from.Type().Field(i).Name; name != "Properties" && !from.Field(i).IsZero() {
			to.Field(i).Set(from.Field(i))
		}
	}
}
