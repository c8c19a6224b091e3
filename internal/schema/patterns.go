package schema

import (
	"maps"
	"regexp"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// CompileParameters compiles the schema of the parameters of a tool. It is like [Compile], but patterns that are
// regular expressions of other languages only, such as those with a lookahead, are not checked. Do not use it for
// rules: text that they would reject may match.
func CompileParameters(source []byte) (*Schema, error) { return compile(source, tolerant) }

func tolerant(pattern string) (jsonschema.Regexp, error) {
	if compiled, err := regexp.Compile(pattern); err == nil {
		return compiled, nil
	}
	return unchecked(pattern), nil
}

// unchecked is a pattern that matches all texts.
type unchecked string

// MatchString implements [jsonschema.Regexp].
func (unchecked) MatchString(string) bool { return true }

// String implements [jsonschema.Regexp].
func (u unchecked) String() string { return string(u) }

func isUnchecked(pattern jsonschema.Regexp) bool {
	_, ok := pattern.(unchecked)
	return ok
}

// withoutUnchecked removes what could reject a text because a pattern in the schemas is not checked.
func withoutUnchecked(all map[*jsonschema.Schema]bool) {
	has := false
	for s := range all {
		has = has || isUnchecked(s.Pattern)
		if slices.ContainsFunc(slices.Collect(maps.Keys(s.PatternProperties)), isUnchecked) {
			has = true
			maps.DeleteFunc(s.PatternProperties, func(p jsonschema.Regexp, _ *jsonschema.Schema) bool { return isUnchecked(p) })
			s.AdditionalProperties, s.UnevaluatedProperties = nil, nil
		}
	}
	if !has {
		return
	}
	for s := range all {
		s.Not, s.If, s.Then, s.Else = nil, nil, nil, nil
		if s.AnyOf == nil {
			s.AnyOf = s.OneOf
		}
		s.OneOf = nil
	}
}
