package mcp_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/internal/schema"
	"github.com/seed-9ed7edd4/chronicle/tool/mcp"
)

func repaired(t require.TestingT, given string) (repaired string, isRepaired bool, err error) {
	var value any
	require.NoError(t, json.Unmarshal([]byte(given), &value))
	fixed, isRepaired, err := mcp.Repaired(value)
	if err != nil {
		return "", isRepaired, err
	}
	data, err := json.Marshal(fixed)
	require.NoError(t, err)
	return string(data), isRepaired, nil
}

func TestCorrectSchemasStay(t *testing.T) {
	for _, given := range []string{
		`{"type":"object","properties":{}}`,
		`{"type":"object","properties":{"depth":{"type":["number","null"],"minimum":0,"exclusiveMaximum":12}},"required":["depth"],"additionalProperties":false}`,
		`{"type":"object","properties":{"at":true,"on":{"enum":["a",1,null]}},"required":[]}`,
		`{"type":"object","properties":{"tree":{"$ref":"#/$defs/node"}},"$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"}}}}}`,
		`{"type":"object","properties":{"type":{"type":"string"},"required":{"type":"boolean"},"items":{"const":{"items":[]}}}}`,
		`{"type":"object","properties":{"code":{"type":"string","pattern":"^(?!X)"}},"patternProperties":{"^(?=x)":{}}}`,
		`{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A","default":[]}},"dependentRequired":{"a":["b"]},"oneOf":[{"required":["a"]},{"required":["b"]}]}`,
	} {
		got, isRepaired, err := repaired(t, given)
		require.NoError(t, err)
		require.JSONEq(t, given, got)
		require.False(t, isRepaired, given)
	}
}

func TestSchemasAreRepaired(t *testing.T) {
	const none = `{"type":"object","properties":{}}`
	one := func(property string) string { return `{"type":"object","properties":{"a":` + property + `}}` }
	for _, test := range []struct{ given, want string }{
		{`null`, none},
		{`true`, none},
		{`[]`, none},
		{`{}`, none},
		{`{"$schema":"http://json-schema.org/draft-07/schema#"}`, none},
		{`{"type":null}`, none},
		{`{"type":["object","null"]}`, none},
		{`{"type":"OBJECT","properties":{"a":{"type":"string"}}}`, one(`{"type":"string"}`)},
		{`{"properties":{"a":{"type":"string"}}}`, one(`{"type":"string"}`)},
		// Empty and other values of keywords.
		{`{"type":"object","properties":[],"required":[]}`, `{"type":"object","properties":{},"required":[]}`},
		{`{"type":"object","properties":null}`, none},
		{`{"type":"object","required":{},"additionalProperties":[],"anyOf":[],"$defs":[],"title":7,"description":null}`, none},
		{`{"type":"object","required":null,"allOf":{},"not":null}`, none},
		{`{"type":"object","properties":{"a":{}},"required":"a"}`, one(`{}`)},
		{`{"type":"object","properties":{"a":{}},"required":["a",1]}`, one(`{}`)},
		{one(`null`), one(`{}`)},
		{one(`[]`), one(`{}`)},
		{one(`"the depth"`), one(`{}`)},
		{one(`{"type":"str","description":"depth"}`), one(`{"description":"depth"}`)},
		{one(`{"type":["integer","date"]}`), one(`{}`)},
		{one(`{"pattern":null,"minLength":-1,"maxLength":2.5,"minimum":"0","multipleOf":0,"uniqueItems":"yes"}`), one(`{}`)},
		{one(`{"anyOf":[{"type":"string","minLength":"1"},{"type":"null"}]}`), one(`{"anyOf":[{"type":"string"},{"type":"null"}]}`)},
		{one(`{"anyOf":[7,{"type":"null"}]}`), one(`{}`)},
		{one(`{"type":"object","properties":{"properties":{"type":"object","properties":[]}}}`), one(`{"type":"object","properties":{"properties":{"type":"object"}}}`)},
		// Earlier drafts and OpenAPI.
		{one(`{"type":"number","minimum":0,"exclusiveMinimum":true,"maximum":9}`), one(`{"type":"number","minimum":0,"maximum":9}`)},
		{one(`{"type":"string","required":true}`), one(`{"type":"string"}`)},
		{one(`{"type":"array","items":[{"type":"string"},{}],"additionalItems":false}`), one(`{"type":"array","additionalItems":false}`)},
		{one(`{"type":"string","nullable":true,"enum":["x"]}`), one(`{"type":["string","null"],"enum":["x",null]}`)},
		{one(`{"type":"string","$id":"#a","dependencies":[]}`), one(`{"type":"string"}`)},
		// References.
		{`{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/In","definitions":{"In":{"type":"object","properties":{"a":{"$ref":"#/definitions/D"}}},"D":{"type":"number"}}}`,
			`{"type":"object","properties":{"a":{"$ref":"#/definitions/D"}},"definitions":{"In":{"type":"object","properties":{"a":{"$ref":"#/definitions/D"}}},"D":{"type":"number"}}}`},
		{`{"type":"object","properties":{"a":{"$ref":"#/$defs/none","description":"d"},"b":{"$ref":"#/$defs/b"},"c":{"$ref":"#"},"d":{"$ref":"https://other.example/s.json"}},"$defs":{"b":{"required":null}}}`,
			`{"type":"object","properties":{"a":{"description":"d"},"b":{"$ref":"#/$defs/b"},"c":{"$ref":"#"},"d":{}},"$defs":{"b":{}}}`},
		{one(`{"$ref":7}`), one(`{}`)},
	} {
		got, isRepaired, err := repaired(t, test.given)
		require.NoError(t, err, test.given)
		require.JSONEq(t, test.want, got, test.given)
		require.True(t, isRepaired, test.given)
		_, err = schema.CompileParameters([]byte(got))
		require.NoError(t, err, test.given)
	}
}

func TestArgumentsThatAreNoObjectCannotBeRepaired(t *testing.T) {
	for _, given := range []string{`{"type":"array","items":{}}`, `{"type":"string"}`, `{"type":["array","null"]}`} {
		_, _, err := repaired(t, given)
		require.ErrorContains(t, err, "MCP passes arguments as an object")
	}
}

// Whatever a schema contains, its repair compiles, and another one changes nothing.
func TestRepairedSchemasCompile(t *testing.T) {
	word := rapid.SampledFrom([]string{"a", "b", "object", "array", "string", "int", "^(?!x)", "#/properties/a", "#/$defs/b", "https://tides.example/", ""})
	leaf := rapid.OneOf(
		rapid.Just[any](nil), rapid.Map(rapid.Bool(), func(b bool) any { return b }), rapid.Map(word, func(s string) any { return s }),
		rapid.Map(rapid.Float64Range(-3, 3), func(f float64) any { return f }), rapid.Just[any](1.0),
	)
	name := rapid.SampledFrom(strings.Fields("$ref $defs additionalProperties allOf anyOf dependencies enum exclusiveMinimum items minimum not nullable pattern properties required type a b"))
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		if depth == 0 {
			return leaf
		}
		object := rapid.Map(rapid.MapOfN(name, value(depth-1), 0, 4), func(m map[string]any) any { return m })
		return rapid.OneOf(leaf, object, object, rapid.Map(rapid.SliceOfN(value(depth-1), 0, 3), func(l []any) any { return l }))
	}
	rapid.Check(t, func(t *rapid.T) {
		given, err := json.Marshal(value(4).Draw(t, "schema"))
		require.NoError(t, err)
		first, _, err := repaired(t, string(given))
		if err != nil {
			return // not of type "object"
		}
		if _, err := schema.CompileParameters([]byte(first)); err != nil {
			// What is left is a reference that leads to itself.
			require.ErrorContains(t, err, "refers to itself", "%s\n%s", given, first)
			return
		}
		again, isRepaired, err := repaired(t, first)
		require.NoError(t, err)
		require.JSONEq(t, first, again)
		require.False(t, isRepaired, first)
	})
}

func FuzzRepair(f *testing.F) {
	for _, seed := range []string{
		`{"type":"object","properties":{"a":{"$ref":"#/properties/a"}}}`, `{"$ref":"#"}`, `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/a"}}}`,
		`{"items":[{"nullable":true}],"required":{"a":1}}`, `[{"exclusiveMinimum":true}]`, `{"properties":{"a":"b"},"$id":"#"}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, given string) {
		var value any
		if json.Unmarshal([]byte(given), &value) != nil {
			return
		}
		fixed, _, err := mcp.Repaired(value)
		if err == nil && (fixed["type"] != "object" || fixed["properties"] == nil) {
			t.Fatalf("%s is not of an object", given)
		}
	})
}
