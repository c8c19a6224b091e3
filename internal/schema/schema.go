// Package schema validates JSON texts against JSON Schemas. Both are untrusted: schemas load no
// other documents, and validation has a limit.
package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/seed-9ed7edd4/chronicle/event"
)

const (
	// maxEvaluations bounds the cost of a validation: how often a schema is applied to a value.
	// An answer of the maximum length needs fewer, unless many schemas apply to the same value.
	maxEvaluations = 1 << 20
	// maxNumber bounds numbers, in digits and in the exponent.
	maxNumber  = 400
	maxReasons = 5
	// maxDepth bounds the depth of a schema: the library stores the path of each level.
	maxDepth = 100
)

// url identifies the schema in references.
const url = "schema:///"

// Schema validates texts. It must not be used concurrently.
type Schema struct {
	compiled           *jsonschema.Schema
	evaluations, limit int
}

// Fault means that a schema is invalid, or that no text can be validated with it.
type Fault struct {
	Reason string
	At     [][]string // paths of the values that are invalid by the schema's dialect; nil: another reason
}

func (f *Fault) Error() string { return f.Reason }

// Compile compiles a JSON Schema. Without "$schema", its draft is 2020-12. Errors are of type
// [*Fault].
func Compile(source []byte) (*Schema, error) { return compile(source, nil) }

func compile(source []byte, engine jsonschema.RegexpEngine) (s *Schema, err error) {
	document, err := parse(source)
	if err != nil {
		return nil, &Fault{Reason: err.Error()}
	}
	if isDeeper(document, maxDepth) {
		return nil, &Fault{Reason: fmt.Sprintf("nested more than %d levels deep", maxDepth)}
	}
	defer func() {
		// The library panics on internal inconsistencies, as in
		// https://github.com/santhosh-tekuri/jsonschema/issues/224. Unnecessary if it returned errors.
		if p := recover(); p != nil {
			s, err = nil, &Fault{Reason: fmt.Sprintf("invalid: %v", p)}
		}
	}()
	s = &Schema{limit: maxEvaluations}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseLoader(noLoader{})
	compiler.UseRegexpEngine(engine)
	if err = compiler.AddResource(url, document); err == nil {
		s.compiled, err = compiler.Compile(url)
	}
	if err != nil {
		return nil, faultOf(err)
	}
	all, done := map[*jsonschema.Schema]bool{}, map[*jsonschema.Schema]bool{}
	s.count(reflect.ValueOf(s.compiled), all)
	if engine != nil {
		withoutUnchecked(all)
	}
	var loops []string
	for schema := range all {
		if loop := findLoop(schema, done, map[*jsonschema.Schema]bool{}); loop != nil {
			loops = append(loops, cmp.Or(strings.TrimPrefix(loop.Location, url+"#"), "root"))
		}
	}
	if len(loops) > 0 {
		return nil, &Fault{Reason: slices.Min(loops) + ": the schema refers to itself without an end"}
	}
	return s, nil
}

func isDeeper(value any, depth int) bool {
	isNested := func(v any) bool { return isDeeper(v, depth-1) }
	switch value := value.(type) {
	case map[string]any:
		return depth == 0 || slices.ContainsFunc(slices.Collect(maps.Values(value)), isNested)
	case []any:
		return depth == 0 || slices.ContainsFunc(value, isNested)
	}
	return false
}

type noLoader struct{}

func (noLoader) Load(string) (any, error) {
	return nil, errors.New("not loaded")
}

func faultOf(err error) *Fault {
	var invalid *jsonschema.SchemaValidationError
	var mismatch *jsonschema.ValidationError
	if errors.As(err, &invalid) && errors.As(invalid.Err, &mismatch) {
		return &Fault{Reason: reasons(mismatch), At: places(nil, mismatch)}
	}
	return &Fault{Reason: compileReason(err)}
}

// places appends the paths of the values without a more precise reason.
func places(at [][]string, mismatch *jsonschema.ValidationError) [][]string {
	if len(mismatch.Causes) == 0 {
		return append(at, mismatch.InstanceLocation)
	}
	for _, cause := range mismatch.Causes {
		at = places(at, cause)
	}
	return at
}

func compileReason(err error) string {
	var load *jsonschema.LoadURLError
	if errors.As(err, &load) {
		// In the text of the library, a colon follows the URL. If the URL ends with a word like passwd,
		// redaction would remove what follows.
		return fmt.Sprintf("%q is another document, and references to other documents are not loaded", load.URL)
	}
	return strings.ReplaceAll(err.Error(), url, "")
}

// Check returns why a text is invalid. The error is a [*Fault] if the schema, not the text, is at fault.
func (s *Schema) Check(text string) (err error) {
	value, err := parse([]byte(text))
	if err != nil {
		return err
	}
	defer func() {
		if p := recover(); p != nil {
			err = &Fault{Reason: fmt.Sprintf("validation failed: %v", p)}
		}
	}()
	s.evaluations = 0
	err = s.compiled.Validate(value)
	var mismatch *jsonschema.ValidationError
	if !errors.As(err, &mismatch) {
		return err
	}
	if hasLoop(mismatch) {
		return &Fault{Reason: "a reference leads back to itself: " + reasons(mismatch)}
	}
	return errors.New(reasons(mismatch))
}

// findLoop returns a schema that applies itself to the same value, through references and
// keywords such as allOf; nil if there is none. done are schemas without a loop, and open those
// that lead to s.
func findLoop(s *jsonschema.Schema, done, open map[*jsonschema.Schema]bool) *jsonschema.Schema {
	if s == nil || done[s] {
		return nil
	}
	if open[s] {
		return s
	}
	open[s] = true
	for _, next := range inPlace(s) {
		if loop := findLoop(next, done, open); loop != nil {
			return loop
		}
	}
	delete(open, s)
	done[s] = true
	return nil
}

// inPlace returns the schemas that a schema applies to its own value; some may be nil.
func inPlace(s *jsonschema.Schema) []*jsonschema.Schema {
	next := slices.Concat([]*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else},
		s.AllOf, s.AnyOf, s.OneOf, slices.Collect(maps.Values(s.DependentSchemas)))
	for _, dependency := range s.Dependencies {
		schema, _ := dependency.(*jsonschema.Schema)
		next = append(next, schema)
	}
	return next
}

// hasLoop reports whether a mismatch has a reference cycle as a cause. findLoop does not find those
// of dynamic references.
func hasLoop(mismatch *jsonschema.ValidationError) bool {
	if _, isLoop := mismatch.ErrorKind.(*kind.RefCycle); isLoop {
		return true
	}
	return slices.ContainsFunc(mismatch.Causes, hasLoop)
}

func IsObject(text string) error {
	value, err := parse([]byte(text))
	if err != nil {
		return err
	}
	if _, ok := value.(map[string]any); !ok {
		return errors.New("want a JSON object")
	}
	return nil
}

// OfFormat returns a function that says why a text does not match a response format. The function is
// nil if every text matches. It must not be used concurrently. Errors are of type [*Fault].
func OfFormat(f *event.ResponseFormat) (func(text string) error, error) {
	switch {
	case f == nil || f.Type == event.FormatText:
		return nil, nil
	case f.Type == event.FormatJSONObject:
		return IsObject, nil
	}
	compiled, err := Compile(f.Schema)
	if err != nil {
		return nil, err
	}
	return compiled.Check, nil
}

func reasons(mismatch *jsonschema.ValidationError) string {
	found := leaves(nil, *mismatch.DetailedOutput())
	more := len(found) > maxReasons
	found = found[:min(len(found), maxReasons)]
	slices.Sort(found) // the library has no order
	if more {
		found = append(found, "…")
	}
	return strings.Join(found, "; ")
}

// leaves appends the reasons that have no causes of their own.
func leaves(found []string, unit jsonschema.OutputUnit) []string {
	if len(unit.Errors) == 0 && unit.Error != nil && len(found) <= maxReasons {
		return append(found, fmt.Sprintf("%s: %s", cmp.Or(unit.InstanceLocation, "root"), unit.Error))
	}
	for _, cause := range unit.Errors {
		found = leaves(found, cause)
	}
	return found
}

// parse decodes one JSON value; numbers keep their digits.
func parse(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	err := decoder.Decode(&value)
	if err == nil {
		if _, err = decoder.Token(); errors.Is(err, io.EOF) {
			return value, checkNumbers(value)
		}
		err = errors.New("more text follows the JSON")
	}
	return nil, fmt.Errorf("not JSON: %w", err)
}

// checkNumbers rejects numbers whose exact value takes much memory, such as 1e1000000.
func checkNumbers(value any) error {
	switch value := value.(type) {
	case json.Number:
		digits, exponent, _ := strings.Cut(strings.ToLower(value.String()), "e")
		n, err := strconv.Atoi(exponent)
		if len(digits) > maxNumber || exponent != "" && (err != nil || n > maxNumber || n < -maxNumber) {
			return fmt.Errorf("a number is out of range (at most %d digits, and an exponent of at most %[1]d)", maxNumber)
		}
	case map[string]any:
		for _, field := range value {
			if err := checkNumbers(field); err != nil {
				return err
			}
		}
	case []any:
		for _, element := range value {
			if err := checkNumbers(element); err != nil {
				return err
			}
		}
	}
	return nil
}

// count makes each evaluation of the schemas reachable from v count towards the limit. Schemas can apply others
// to the same value exponentially often, and the library has no limit of its own. The check of the format
// counts the evaluations, because the library calls it before it applies other schemas.
func (s *Schema) count(v reflect.Value, seen map[*jsonschema.Schema]bool) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if schema, ok := v.Interface().(*jsonschema.Schema); ok && schema != nil {
			if seen[schema] {
				return
			}
			seen[schema] = true
			schema.Format = s.counting(schema.Format)
		}
		if !v.IsNil() {
			s.count(v.Elem(), seen)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				s.count(v.Field(i), seen)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			s.count(v.Index(i), seen)
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			s.count(entries.Value(), seen)
		}
	}
}

func (s *Schema) counting(format *jsonschema.Format) *jsonschema.Format {
	counting := &jsonschema.Format{Name: "counting", Validate: func(any) error { return nil }}
	if format != nil {
		*counting = *format
	}
	check := counting.Validate
	counting.Validate = func(value any) error {
		if s.evaluations++; s.evaluations > s.limit {
			panic("the schema takes too many steps")
		}
		return check(value)
	}
	return counting
}
